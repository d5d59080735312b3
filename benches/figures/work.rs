//! Jobs, slots and records to measure with.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use cronward::clock::{Clock, SystemClock};
use cronward::job::{JobName, JobSpec, NodeName, Policy, Program};
use cronward::slot::{Lease, Outcome, OutputTail, Period, RunRecord, Slot, Token};
use cronward::store::{Claim, ClaimRequest, Store, StoreOptions};

/// Both clocks' wall, now.
pub(crate) fn wall() -> DateTime<Utc> {
    SystemClock.now().wall
}

/// How long the work took, by the monotonic clock.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let begun = SystemClock.now().mono;
    let result = work.await;
    (SystemClock.now().mono.since(begun), result)
}

pub(crate) fn job_name(number: usize) -> JobName {
    JobName::new(&format!("job-{number}")).unwrap()
}

/// A job that runs `true`, and each of whose ticks is a slot.
pub(crate) fn ticking(number: usize, schedule: &str, policy: Policy) -> JobSpec {
    let program = Program::Direct(vec!["true".to_owned()]);
    JobSpec { period: Period::Tick, policy, ..JobSpec::new(job_name(number), schedule, program) }
}

/// Limits under which a run can last for about this long.
pub(crate) fn reaching_back(span: Duration) -> Policy {
    let second = Duration::from_secs(1);
    Policy { timeout: Some(span - 2 * second), kill_after: second, lease_ttl: second, ..Policy::default() }
}

/// A claim of a slot that is current for two hours around now.
pub(crate) fn claim(number: usize) -> ClaimRequest {
    let start = wall().trunc_subsecs(0) - TimeDelta::hours(1);
    let slot = Slot::new(job_name(number), start, start + TimeDelta::hours(2)).unwrap();
    let policy = Policy::default();
    ClaimRequest::new(
        slot,
        Token::from_bits(0x9e37_79b9_7f4a_7c15_u128 << 64 | number as u128),
        NodeName::new("bench-node").unwrap(),
        policy.lease_ttl,
        policy.max_attempts,
    )
}

/// The record of a run that went well and said a line.
pub(crate) fn success(lease: &Lease) -> RunRecord {
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(1),
        exit_code: Some(0),
        output: Some(OutputTail { text: "pushed 1,234 invoices\n".to_owned(), dropped_bytes: 0, loss: None }),
        ..RunRecord::ended(lease, Outcome::Success)
    }
}

/// Claims a slot of its own; panics when it is not granted.
pub(crate) async fn acquire(store: &dyn Store, number: usize) -> Lease {
    let request = claim(number);
    match store.claim(&request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("the claim of {} answered {other:?}", request.slot),
    }
}

/// The whole guarded cycle: claim and complete.
pub(crate) async fn guard(store: &dyn Store, number: usize) {
    let lease = acquire(store, number).await;
    let done_ttl = Policy::default().done_ttl_for(&lease.slot);
    store.complete(&lease, &success(&lease), done_ttl).await.unwrap();
}

/// The real adapter.
pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    cronward::store::open(url, StoreOptions::default()).await.unwrap()
}
