//! Redlock on real servers: masters that die, hang and forget. That it keeps the contract while they are well is shown by the
//! conformance suite, and that it stays right in every order of messages by `tests/protocol/model/redlock`.

#![cfg(feature = "redis-redlock")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects, by the machine's own clock"
)]

mod access;
#[cfg(feature = "daemon")]
mod doctor;
mod forgetful;
mod latest;
mod outages;
mod taking;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::redis_server::RedisServer;
use crate::words::{ended, mark_of};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use cronward::clock::SystemClock;
use cronward::job::NodeName;
use cronward::slot::{Lease, Outcome, Slot, Token};
use cronward::store::redis::RedlockStore;
use cronward::store::{Claim, ClaimRequest, Store, StoreError, StoreOptions};

/// A busy machine may take long; a test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(90);
/// TTL of leases that nothing is to lapse of.
const LEASE: Duration = Duration::from_secs(600);

/// Masters that have been there for ever.
fn masters(count: usize) -> Vec<RedisServer> {
    let servers: Vec<RedisServer> = (0..count).map(|_| RedisServer::start()).collect();
    servers.iter().for_each(RedisServer::make_old);
    servers
}

async fn open(servers: &[RedisServer]) -> RedlockStore {
    open_within(servers, Duration::from_secs(80)).await
}

async fn open_within(servers: &[RedisServer], op_timeout: Duration) -> RedlockStore {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let options = StoreOptions::default().with_op_timeout(op_timeout);
    RedlockStore::open(&format!("redlock://{}", hosts.join(",")), options, Arc::new(SystemClock)).await.unwrap()
}

/// A slot that began an hour ago and lasts another hour.
fn slot_of(job: &str) -> Slot {
    let now: DateTime<Utc> = Utc::now().duration_trunc(TimeDelta::seconds(1)).unwrap();
    let hour = TimeDelta::hours(1);
    Slot::new(job.parse().unwrap(), now - hour, now + hour).unwrap()
}

fn request(slot: &Slot, node: &str, token: u128) -> ClaimRequest {
    ClaimRequest::new(slot.clone(), Token::from_bits(token), NodeName::new(node).unwrap(), LEASE, 9)
}

fn lease_of(request: &ClaimRequest, claim: Claim) -> Lease {
    match claim {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("{other:?} instead of a lease"),
    }
}

/// The lease, were the machine so slow that a short one was over before it was told.
async fn grant(store: &RedlockStore, request: &ClaimRequest) -> Lease {
    for _ in 0..20 {
        match store.claim(request).await {
            Err(error) if error.is_transient() && request.lease_ttl < LEASE => {}
            answer => return lease_of(request, answer.unwrap()),
        }
    }
    panic!("no lease of {:?} was told in time", request.lease_ttl);
}

/// The first word of what stands at the slot's key.
fn state(server: &RedisServer, slot: &Slot) -> Option<String> {
    let mark = server.text(&["GET", &mark_of(slot)])?;
    mark.split(' ').next().map(str::to_owned)
}

/// How many of these servers have that there.
fn having(servers: &[&RedisServer], slot: &Slot, word: &str) -> usize {
    servers.iter().filter(|server| state(server, slot).as_deref() == Some(word)).count()
}

/// Claims until it is granted; answers how long that took and what was answered before.
async fn until_granted(store: &RedlockStore, request: &ClaimRequest) -> (Duration, Vec<Result<Claim, StoreError>>) {
    let (began, mut before) = (Instant::now(), Vec::new());
    while began.elapsed() < LIMIT {
        match store.claim(request).await {
            Ok(Claim::Claimed { .. }) => return (began.elapsed(), before),
            other => before.push(other),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not granted within {LIMIT:?}: {:?}", before.last());
}
