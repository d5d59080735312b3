//! The protocol without a process or a server: the schedule, every history of a small cluster, and whole clusters in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod model;
mod schedule;
#[cfg(feature = "sim")]
mod simulation;
