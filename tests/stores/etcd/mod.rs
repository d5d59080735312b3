//! The etcd store on real members: what only etcd can do to it. That it keeps the contract is shown by the conformance
//! suite; here are a leader that dies, revisions that are compacted away, users, certificates, members that fall silent.

#![cfg(feature = "etcd")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

mod access;
mod cluster;
#[cfg(feature = "daemon")]
mod doctor;
mod fences;
mod figures;
mod keys;
mod locks;
mod tls;
mod wakeups;

use std::sync::Arc;
use std::time::Duration;

use crate::etcd_server::EtcdServer;
use crate::words::{LIMIT, ended, eventually, granted, next, now, request, slot_of};
use cronward::clock::SystemClock;
use cronward::store::StoreOptions;
use cronward::store::etcd::EtcdStore;

/// A store at a url, with a time limit that a busy machine keeps.
async fn open(url: &str) -> EtcdStore {
    open_within(url, Duration::from_secs(30)).await
}

async fn open_within(url: &str, op_timeout: Duration) -> EtcdStore {
    let options = StoreOptions::default().with_op_timeout(op_timeout);
    EtcdStore::open(url, options, Arc::new(SystemClock)).await.unwrap()
}

async fn store(server: &EtcdServer) -> EtcdStore {
    open(&server.url()).await
}
