//! The words of a store's test: slots around now, requests, ends, hints, and what holds of every store on a server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use cronward::job::NodeName;
use cronward::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token};
use cronward::store::{Claim, ClaimRequest, Store, Wake, Wakeups};

/// A busy machine may take long; a test that waits for so long has failed.
pub const LIMIT: Duration = Duration::from_secs(120);

#[allow(clippy::disallowed_methods, reason = "the server under test is judged by the machine's clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A slot that began about an hour ago and lasts for three more; the same one each time.
pub fn slot_of(job: &str) -> Slot {
    let start = began().duration_trunc(TimeDelta::minutes(30)).unwrap() - TimeDelta::hours(1);
    Slot::new(job.parse().unwrap(), start, start + TimeDelta::hours(4)).unwrap()
}

/// When the first test asked: the same slot has the same name for as long as this process lives.
fn began() -> DateTime<Utc> {
    static BEGAN: OnceLock<DateTime<Utc>> = OnceLock::new();
    *BEGAN.get_or_init(|| now().duration_trunc(TimeDelta::seconds(1)).unwrap())
}

/// A slot that began an hour ago and lasts another hour, moved by so many hours.
pub fn slot_in(job: &str, hours: i64) -> Slot {
    let start = began() + TimeDelta::hours(hours - 1);
    Slot::new(job.parse().unwrap(), start, start + TimeDelta::hours(2)).unwrap()
}

pub fn slot(job: &str) -> Slot {
    slot_in(job, 0)
}

/// The slot's key in the namespace `default`.
pub fn mark_of(slot: &Slot) -> String {
    format!("cronward:default:{{{slot}}}")
}

pub fn request(slot: &Slot, claimer: u128) -> ClaimRequest {
    ClaimRequest::new(
        slot.clone(),
        Token::from_bits(claimer << 96 | claimer),
        NodeName::new(&format!("node-{claimer}")).unwrap(),
        Duration::from_secs(60),
        3,
    )
}

/// Claims, and panics unless it is granted.
pub async fn granted(store: &(impl Store + ?Sized), request: &ClaimRequest) -> Lease {
    match store.claim(request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("not granted: {other:?}"),
    }
}

pub fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(1),
        exit_code: Some(i32::from(outcome != Outcome::Success)),
        ..RunRecord::ended(lease, outcome)
    }
}

pub fn audit(verb: &str) -> Audit {
    Audit { verb: verb.into(), who: "ann".into(), host: "desk".into(), why: "a \"test\"".into(), at: now() }
}

/// The next hint.
pub async fn next(hints: &mut Wakeups) -> Wake {
    tokio::time::timeout(LIMIT, hints.recv()).await.expect("a hint comes").unwrap()
}

/// Asks again and again until it is so; for what another process does in its own time.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, holds: F) {
    eventually_within((LIMIT, Duration::from_millis(20)), what, holds).await;
}

/// The same with its own limit, and the pause between two looks.
#[allow(clippy::disallowed_methods, reason = "a real server tells nobody when it is ready")]
pub async fn eventually_within<F: AsyncFnMut() -> bool>(
    (limit, pause): (Duration, Duration),
    what: &str,
    mut holds: F,
) {
    let over = tokio::time::Instant::now() + limit;
    while !holds().await {
        assert!(tokio::time::Instant::now() < over, "not within {limit:?}: {what}");
        tokio::time::sleep(pause).await;
    }
}

/// `concurrency = "forbid"`, in both directions: what a claim has looked at may not change before it is granted.
pub async fn of_two_that_exclude_each_other_one_is_granted(stores: [Arc<dyn Store>; 2]) {
    for round in 0..60 {
        let one = slot_of(&format!("push-{round}"));
        let other = Slot::new(one.job().clone(), one.start() - TimeDelta::hours(1), one.end());
        let slots = [one, other.unwrap()];
        let claims = [0, 1].map(|index| {
            let store = Arc::clone(&stores[index]);
            let claimer = u128::try_from(index + 1).unwrap();
            let request = ClaimRequest { exclusive: true, ..request(&slots[index], claimer) };
            tokio::spawn(async move { store.claim(&request).await.unwrap() })
        });
        let mut granted = 0;
        for claim in claims {
            granted += u32::from(matches!(claim.await.unwrap(), Claim::Claimed { .. }));
        }
        assert_eq!(granted, 1, "round {round}");
    }
}
