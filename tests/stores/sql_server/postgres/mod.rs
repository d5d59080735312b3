//! The PostgreSQL store on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod access;
mod contention;
mod dialect;
#[cfg(feature = "daemon")]
mod doctor;
mod outages;
mod pooler;
#[path = "../suite/mod.rs"]
mod suite;
mod wakeups;
