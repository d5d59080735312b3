//! The protocol without a process or a server: the schedule, and every history of a small cluster.

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
