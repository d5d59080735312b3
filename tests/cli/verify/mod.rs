//! Journals of real daemons, and `cronward verify` over them and over journals of clusters that are broken.

mod cluster;
mod files;
mod nodes;
mod tampered;
