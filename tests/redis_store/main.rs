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

#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/redis_server.rs"]
mod redis_server;
#[path = "../support/tls_files.rs"]
mod tls_files;

mod access;
mod keys;
mod memory;
mod outages;
mod scripts;
mod tls;
mod wakeups;

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use cronward::job::NodeName;
use cronward::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token, Trigger};
use cronward::store::redis::RedisStore;
use cronward::store::{Claim, ClaimRequest, Store, StoreOptions};
use redis_server::RedisServer;

/// A busy machine may take long; a test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// A store at a url, with a time limit that a busy machine keeps.
async fn open(url: &str) -> RedisStore {
    open_within(url, Duration::from_secs(5)).await
}

async fn open_within(url: &str, op_timeout: Duration) -> RedisStore {
    RedisStore::open(url, StoreOptions { op_timeout, ..StoreOptions::default() }).await.unwrap()
}

async fn store(server: &RedisServer) -> RedisStore {
    open(&server.url()).await
}

#[allow(clippy::disallowed_methods, reason = "the server under test is judged by the machine's clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A slot that began an hour ago and lasts another hour.
fn slot_of(job: &str) -> Slot {
    let start = now().duration_trunc(TimeDelta::seconds(1)).unwrap() - TimeDelta::hours(1);
    Slot::new(job.parse().unwrap(), start, start + TimeDelta::hours(2)).unwrap()
}

/// The slot's key in the namespace `default`.
fn mark_of(slot: &Slot) -> String {
    format!("cronward:default:{{{slot}}}")
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
async fn granted(store: &RedisStore, request: &ClaimRequest) -> Lease {
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

fn audit(verb: &str) -> Audit {
    Audit { verb: verb.into(), who: "ann".into(), host: "desk".into(), why: "a \"test\"".into(), at: now() }
}

/// Asks again and again until it is so; for what another process does in its own time.
#[allow(clippy::disallowed_methods, reason = "a real server tells nobody when it is ready")]
async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut holds: F) {
    let limit = tokio::time::Instant::now() + LIMIT;
    while !holds().await {
        assert!(tokio::time::Instant::now() < limit, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
