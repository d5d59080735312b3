//! The real binary, as a person and a script see it: exit codes, streams, words. With it what it reads, `jobs.toml` and journals,
//! and the commands that it starts.
#![cfg(feature = "daemon")]
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

mod completing;
mod config;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod decided;
#[cfg(feature = "sqlite")]
mod demo;
mod exec;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod explained;
mod file_size;
mod files;
#[cfg(feature = "sqlite")]
mod filled;
#[cfg(feature = "sqlite")]
mod first_process;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod guarding;
mod importing;
#[cfg(feature = "sqlite")]
mod json;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod keeping;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod key;
#[cfg(all(feature = "sqlite", feature = "redis"))]
#[path = "../cluster/link.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod link;
#[cfg(feature = "sqlite")]
mod listings;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod lock_losses;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod lock_store;
#[cfg(feature = "sqlite")]
mod locking;
#[cfg(feature = "sqlite")]
mod looking;
mod outside;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod past;
#[cfg(all(feature = "sqlite", feature = "http"))]
mod port;
#[cfg(all(feature = "sqlite", feature = "redis", feature = "http"))]
mod port_secret;
#[cfg(all(feature = "sqlite", feature = "http"))]
mod port_tls;
mod process;
mod program;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod redacted;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod reported;
#[cfg(feature = "sqlite")]
mod slots;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod snapshots;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod standstill;
mod streams;
#[path = "../support/mod.rs"]
mod support;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod takeover;
#[cfg(feature = "sqlite")]
mod terminal;
#[cfg(feature = "redis")]
mod threads;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod triggered;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod unfinished;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod unlocked;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod unrecorded;
mod usage;
#[cfg(feature = "sqlite")]
mod verify;
mod vixie;
#[path = "../cluster/wait.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod wait;
#[cfg(feature = "sqlite")]
mod watching;
#[cfg(all(feature = "sqlite", feature = "redis"))]
mod within;
#[path = "../support/zone_file.rs"]
mod zone_file;
mod zones;

#[cfg(all(feature = "sqlite", feature = "redis"))]
use support::{proxy, redis_server};
