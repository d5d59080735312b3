//! The real binary, as a person and a script see it: exit codes, streams, words.
#![cfg(feature = "daemon")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod files;
#[cfg(feature = "sqlite")]
mod filled;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod guarding;
#[cfg(feature = "sqlite")]
mod listings;
mod outside;
mod program;
#[cfg(feature = "sqlite")]
mod slots;
mod streams;
mod usage;
