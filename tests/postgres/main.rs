//! The PostgreSQL store on a real server: what only a database server can do to it. That it keeps the contract is shown by the
//! conformance suite; here are lost answers, deadlocks, restarts, missing grants, tables that are not there yet.

#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

#[path = "../support/postgres_server.rs"]
mod postgres_server;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/tls_files.rs"]
mod tls_files;

mod access;
mod bench;
mod contention;
mod figures;
mod outages;
mod tables;
mod wakeups;
