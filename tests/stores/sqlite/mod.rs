//! What is particular to the SQLite store: one file, several processes, kills, modes, damage. What every store promises is
//! in the conformance suite.
//!
//! Other processes are this test binary again, started with [`child::ROLE`] in the environment.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects"
)]

mod access;
mod bench;
mod child;
mod damage;
mod disk;
#[cfg(feature = "daemon")]
mod doctor;
mod keep;
mod kill;
mod locks;
mod race;
