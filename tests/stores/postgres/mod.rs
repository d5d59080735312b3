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

#[path = "../../support/server_grants.rs"]
mod server_grants;
#[cfg(feature = "daemon")]
#[path = "../../support/server_rights.rs"]
mod server_rights;
#[path = "../../support/server_runs.rs"]
mod server_runs;

mod access;
mod bench;
mod contention;
#[cfg(feature = "daemon")]
mod doctor;
mod figures;
mod outages;
mod tables;
mod wakeups;
