//! The words of a store's test: slots around now, requests, ends.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use cronward::job::NodeName;
use cronward::slot::{Lease, Outcome, RunRecord, Slot, Token, Trigger};
use cronward::store::{Claim, ClaimRequest, Store};

#[allow(clippy::disallowed_methods, reason = "the server under test is judged by the machine's clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A slot that began about an hour ago and lasts as long again; the same for half an hour of calls.
pub fn slot_of(job: &str) -> Slot {
    let start = now().duration_trunc(TimeDelta::minutes(30)).unwrap() - TimeDelta::hours(1);
    Slot::new(job.parse().unwrap(), start, start + TimeDelta::hours(4)).unwrap()
}

/// The slot's key in the namespace `default`.
pub fn mark_of(slot: &Slot) -> String {
    format!("cronward:default:{{{slot}}}")
}

pub fn request(slot: &Slot, claimer: u128) -> ClaimRequest {
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
pub async fn granted(store: &impl Store, request: &ClaimRequest) -> Lease {
    match store.claim(request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("{other:?}"),
    }
}

pub fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord {
        attempt: lease.attempt,
        token: lease.token,
        node: lease.node.clone(),
        trigger: lease.trigger,
        claimed_at: lease.claimed_at,
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(0),
        outcome: Some(outcome),
        exit_code: Some(0),
        signal: None,
        message: None,
        output: None,
    }
}
