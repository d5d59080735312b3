//! Journals of real daemons, and `cronward verify` over them and over journals of clusters that are broken.
#![cfg(all(feature = "daemon", feature = "sqlite"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects; real processes are judged by the machine's clock"
)]

mod cluster;
mod files;
mod place;
mod tampered;
