//! Journals of real daemons, and `cronward verify` over them and over journals of clusters that are broken.

mod cluster;
mod files;
mod locks;
mod nodes;
mod tampered;
