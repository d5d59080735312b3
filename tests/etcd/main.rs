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

#[path = "../support/etcd_server.rs"]
mod etcd_server;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/tls_files.rs"]
mod tls_files;

mod access;
mod cluster;
mod keys;
mod tls;
mod wakeups;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use cronward::clock::SystemClock;
use cronward::job::NodeName;
use cronward::slot::{Lease, Outcome, RunRecord, Slot, Token, Trigger};
use cronward::store::etcd::EtcdStore;
use cronward::store::{Claim, ClaimRequest, Store, StoreOptions};
use etcd_server::EtcdServer;

/// A busy machine may take long; a test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// A store at a url, with a time limit that a busy machine keeps.
async fn open(url: &str) -> EtcdStore {
    open_within(url, Duration::from_secs(30)).await
}

async fn open_within(url: &str, op_timeout: Duration) -> EtcdStore {
    let options = StoreOptions { op_timeout, ..StoreOptions::default() };
    EtcdStore::open(url, options, Arc::new(SystemClock)).await.unwrap()
}

async fn store(server: &EtcdServer) -> EtcdStore {
    open(&server.url()).await
}

#[allow(clippy::disallowed_methods, reason = "the store is judged by the machine's clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A slot that began an hour ago and lasts another hour.
fn slot_of(job: &str) -> Slot {
    let start = now().duration_trunc(TimeDelta::seconds(1)).unwrap() - TimeDelta::hours(1);
    Slot::new(job.parse().unwrap(), start, start + TimeDelta::hours(2)).unwrap()
}

fn request(slot: &Slot, claimer: u128) -> ClaimRequest {
    ClaimRequest {
        slot: slot.clone(),
        token: Token::from_bits(claimer << 96 | claimer),
        node: NodeName::new(&format!("node-{claimer}")).unwrap(),
        lease_ttl: Duration::from_secs(60),
        max_attempts: 3,
        trigger: Trigger::Schedule,
        not_during: Vec::new(),
    }
}

/// Claims, and panics unless it is granted.
async fn granted(store: &EtcdStore, request: &ClaimRequest) -> Lease {
    match store.claim(request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("not granted: {other:?}"),
    }
}

fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord {
        attempt: lease.attempt,
        token: lease.token,
        node: lease.node.clone(),
        trigger: lease.trigger,
        claimed_at: lease.claimed_at,
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(1),
        outcome: Some(outcome),
        exit_code: Some(i32::from(outcome != Outcome::Success)),
        signal: None,
        message: None,
        output: None,
    }
}

/// Asks again and again until it is so; for what another process does in its own time.
#[allow(clippy::disallowed_methods, reason = "a real server tells nobody when it is ready")]
async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut holds: F) {
    let limit = tokio::time::Instant::now() + LIMIT;
    while !holds().await {
        assert!(tokio::time::Instant::now() < limit, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
