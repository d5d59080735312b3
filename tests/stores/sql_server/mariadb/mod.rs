//! The MySQL store on a real MariaDB.

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
mod figures;
mod outages;
#[path = "../suite/mod.rs"]
mod suite;
mod tables;
