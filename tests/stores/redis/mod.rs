//! The Redis store on real servers: what only Redis can do to it. That it keeps the contract is shown by the conformance
//! suite; here are lost replies, full memory, forgotten scripts, refused permissions, servers that stop and come back.

#![cfg(feature = "redis")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod access;
mod changes;
#[cfg(feature = "daemon")]
mod doctor;
mod keys;
mod latest;
mod lock_crowds;
mod lock_hints;
mod locks;
mod memory;
mod messages;
mod outages;
mod outputs;
mod proxies;
mod scripts;
mod tls;
mod wakeups;

use std::time::Duration;

use crate::redis_server::RedisServer;
use crate::words::{LIMIT, audit, ended, eventually, granted, mark_of, next, now, request, slot_of};
use cronward::store::StoreOptions;
use cronward::store::redis::RedisStore;

/// A store at a url, with a time limit that a busy machine keeps.
async fn open(url: &str) -> RedisStore {
    open_within(url, Duration::from_secs(5)).await
}

async fn open_within(url: &str, op_timeout: Duration) -> RedisStore {
    RedisStore::open(url, StoreOptions::default().with_op_timeout(op_timeout)).await.unwrap()
}

async fn store(server: &RedisServer) -> RedisStore {
    open(&server.url()).await
}
