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
use cronward::job::{LockName, NodeName};
use cronward::resource::{AcquireRequest, Acquired, Demand, Demands, LockHint, LockHold, LockRelease, LockRenewal};
use cronward::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token};
use cronward::store::{Claim, ClaimRequest, LockStore, LockWakeups, Store, Wake, Wakeups};

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

/// A request of its own for these locks, each alone.
pub fn asking(token: u128, locks: &[&str]) -> AcquireRequest {
    let demands = locks.iter().map(|lock| Demand::exclusive(LockName::new(lock).unwrap())).collect();
    let (token, node) = (Token::from_bits(token), NodeName::new(&format!("n{token:x}")).unwrap());
    AcquireRequest::new(token, node, token, Duration::from_secs(60), Demands::new(demands).unwrap())
}

/// It holds them.
pub async fn held(store: &dyn LockStore, request: &AcquireRequest) -> LockHold {
    match store.acquire(request).await.unwrap() {
        Acquired::Held { fence, places, .. } => request.granted(fence, places),
        other => panic!("{other:?}"),
    }
}

/// Many at once over two connections, each of whom wants two of three locks: each stands once in both of its queues, and all of them
/// are served, one after the other.
pub async fn each_is_served_once(stores: &[Arc<dyn LockStore>; 2]) {
    let names = ["x", "y", "z"];
    let asked: Vec<AcquireRequest> =
        (0..12).map(|at| asking(at as u128 + 1, &[names[at % 3], names[(at + 1) % 3]])).collect();
    let calls = asked.iter().enumerate().map(|(at, request)| {
        let (store, request) = (Arc::clone(&stores[at % 2]), request.clone());
        tokio::spawn(async move { store.acquire(&request).await.unwrap() })
    });
    let answers = futures_util::future::join_all(calls.collect::<Vec<_>>()).await;
    let holders = answers.iter().flatten().filter(|answer| matches!(answer, Acquired::Held { .. })).count();
    assert!(holders <= 1, "each two have a lock in common: {answers:?}");
    let locks = names.map(|name| LockName::new(name).unwrap());
    let (_, records) = stores[0].locks(&locks).await.unwrap();
    assert_eq!(records.iter().map(|record| record.entries.len()).collect::<Vec<_>>(), [8, 8, 8]);
    let mut waiting = asked;
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for request in waiting {
            match stores[1].acquire(&request).await.unwrap() {
                Acquired::Held { fence, places, .. } => {
                    let exit = request.granted(fence, places).exit(false);
                    assert_eq!(stores[0].release(&exit).await.unwrap(), LockRelease::Released);
                }
                Acquired::Waiting { .. } => left.push(request),
                other => panic!("{other:?}"),
            }
        }
        assert!(left.len() < before, "somebody is always first");
        waiting = left;
    }
}

/// Whoever may hold a lock is told in another process, and nobody else is.
pub async fn one_is_told_elsewhere([store, other]: &[Arc<dyn LockStore>; 2]) {
    let (first, second) = (asking(1, &["a"]), asking(2, &["a"]));
    let mut hints = [&second, &first].map(|request| other.listen(request.instance));
    let next =
        async |hints: &mut LockWakeups| tokio::time::timeout(LIMIT, hints.recv()).await.expect("a hint").unwrap();
    for hints in &mut hints {
        assert_eq!(next(hints).await, LockHint::Resync);
    }
    let lease = held(&**store, &first).await;
    assert!(matches!(other.acquire(&second).await.unwrap(), Acquired::Waiting { .. }));
    store.release(&lease.exit(false)).await.unwrap();
    assert_eq!(next(&mut hints[0]).await, LockHint::Ready(second.token));
    assert!(hints[1].try_recv().is_err(), "it is not for this one");
}

/// Locks that were used and left are removed once the retention is over, and one that is held is kept.
pub async fn idle_locks_are_removed([patient, hasty]: &[Arc<dyn LockStore>; 2]) {
    let lease = held(&**patient, &asking(1, &["kept"])).await;
    for token in 2..5 {
        let short = AcquireRequest { ttl: Duration::from_millis(1), ..asking(token, &[&format!("gone-{token}")]) };
        let gone = held(&**patient, &short).await;
        patient.release(&gone.exit(false)).await.unwrap();
    }
    assert_eq!(patient.purge_locks().await.unwrap(), 0);
    let gone = async || {
        let mut gone = 0;
        while gone < 3 {
            gone += hasty.purge_locks().await.unwrap();
        }
        gone
    };
    assert_eq!(tokio::time::timeout(LIMIT, gone()).await.expect("they go"), 3);
    let (_, left) = patient.locks(&[]).await.unwrap();
    assert_eq!(left.iter().map(|record| record.lock.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(patient.renew_lock(&lease).await.unwrap(), LockRenewal::Renewed);
}
