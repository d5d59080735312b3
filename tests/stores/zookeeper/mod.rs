//! The ZooKeeper store on real servers: what only ZooKeeper can do to it. That it keeps the contract is shown by the
//! conformance suite; here are sessions that end, servers that stop and come back, users, and time.

#![cfg(feature = "zookeeper")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod access;
#[cfg(feature = "daemon")]
mod doctor;
mod ensemble;
mod figures;
mod locks;
mod nodes;
mod outages;
mod owner;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use crate::words::{audit, ended, eventually, granted, next, now, request, slot_of};
use crate::zookeeper_server::ZookeeperServer;
use cronward::clock::SystemClock;
use cronward::store::StoreOptions;
use cronward::store::zookeeper::ZookeeperStore;

/// A store at a url, with a time limit that a busy machine keeps.
async fn open(url: &str) -> ZookeeperStore {
    open_within(url, Duration::from_secs(30)).await
}

async fn open_within(url: &str, op_timeout: Duration) -> ZookeeperStore {
    let options = StoreOptions::default().with_op_timeout(op_timeout);
    ZookeeperStore::open(url, options, Arc::new(SystemClock)).await.unwrap()
}

async fn store(server: &ZookeeperServer) -> ZookeeperStore {
    open(&server.url()).await
}
