//! The MySQL store on a real MariaDB: what only a database server can do to it. That it keeps the contract is shown by the
//! conformance suite; here are lost answers, deadlocks, restarts, missing grants, tables that are not there yet.

#![cfg(feature = "mysql")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

#[path = "../support/mariadb_server.rs"]
mod mariadb_server;
#[cfg(feature = "daemon")]
#[path = "../support/doctor.rs"]
mod patient;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/rotating.rs"]
mod rotating;
#[path = "../support/round_trips.rs"]
mod round_trips;
#[path = "../support/server_grants.rs"]
mod server_grants;
#[cfg(feature = "daemon")]
#[path = "../support/server_rights.rs"]
mod server_rights;
#[path = "../support/tls_files.rs"]
mod tls_files;
#[path = "../support/store_words.rs"]
mod words;

mod access;
mod bench;
mod contention;
#[cfg(feature = "daemon")]
mod doctor;
mod figures;
mod grant;
mod last_run;
mod outages;
mod tables;
