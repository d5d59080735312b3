//! Cases: hints for whoever looks on. A store that tells of changes tells every connection of each write that is to be seen, in its own
//! namespace alone; one that does not is closed at once. The first hint is waited for with changes made anew, for a subscription may
//! only just have begun; from then on each change is told of.

use std::time::Duration;

use crate::slot::Slot;
use crate::store::conformance::bench::{DONE, LEASE, audit, case, failed, given_back, job_name, node_name, succeeded};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{ChangeHint, Changes, Store};

pub(super) const CASES: &[Case] = &[
    case!("changes", what_a_run_comes_to_is_told),
    case!("changes", a_verdict_is_told, L2),
    case!("changes", what_an_operator_does_is_told),
    case!("changes", a_renewal_and_a_refusal_are_not_told),
    case!("changes", two_who_look_on_are_both_told),
    case!("changes", who_looks_on_again_is_told_again),
    case!("changes", changes_stay_in_their_namespace, I9),
];

/// How long the first hint is waited for before a change is made anew.
const LISTEN: Duration = Duration::from_millis(200);

/// The job that is paused again and again until somebody hears of it.
const BEGIN: &str = "begin";

/// The next hint that says what to look at. Those that began the listening may come late: they may be of another server.
async fn next(changes: &mut Changes, limit: Duration) -> Option<ChangeHint> {
    let listening = async {
        loop {
            match changes.recv().await {
                Ok(ChangeHint::Resync) => {}
                Ok(ChangeHint::Job(job)) if job.as_str() == BEGIN => {}
                Ok(hint) => return Some(hint),
                Err(_) => return None,
            }
        }
    };
    tokio::time::timeout(limit, listening).await.ok().flatten()
}

/// Looks on, from when that is heard of; none at a store that does not tell.
async fn looks_on(bench: &Bench, store: &dyn Store) -> Result<Option<Changes>, Failure> {
    let mut changes = store.changes();
    if !store.capability().tells_changes {
        ensure_is!(changes.recv().await, Err(tokio::sync::broadcast::error::RecvError::Closed));
        return Ok(None);
    }
    let job = job_name(BEGIN)?;
    let tries = bench.scale().patience.as_millis() / LISTEN.as_millis() + 1;
    for _ in 0..tries {
        bench.store.pause(&job, None, &audit("pause")).await?;
        let begun = async { while changes.recv().await.is_ok_and(|hint| hint != ChangeHint::Job(job.clone())) {} };
        if tokio::time::timeout(LISTEN, begun).await.is_ok() {
            return Ok(Some(changes));
        }
    }
    Err(Failure::from(format!("no change was told of within {:?}", bench.scale().patience)))
}

/// The next hint is about this job. What was told of a slot of it may be told again: a network that delivers an operator's request twice
/// has two writes made of it.
async fn is_told_of_job(bench: &Bench, changes: &mut Changes, slot: &Slot, what: &str) -> CaseOutcome {
    let mut hint = next(changes, bench.scale().patience).await;
    while hint == Some(ChangeHint::of(slot)) {
        hint = next(changes, bench.scale().patience).await;
    }
    ensure_eq!(hint, Some(ChangeHint::Job(slot.job().clone())), "{what}");
    Ok(())
}

/// The next hint is about this slot.
async fn is_told(bench: &Bench, changes: &mut Changes, slot: &Slot, what: &str) -> CaseOutcome {
    ensure_eq!(next(changes, bench.scale().patience).await, Some(ChangeHint::of(slot)), "{what}");
    Ok(())
}

async fn what_a_run_comes_to_is_told(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let Some(mut changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let slot = bench.slot("job")?;
    let first = bench.grant(&slot, "a").await?;
    is_told(bench, &mut changes, &slot, "a run begins").await?;
    bench.store.fail(&first, &failed(&first), Duration::ZERO).await?;
    is_told(bench, &mut changes, &slot, "it failed").await?;
    let second = bench.grant(&slot, "b").await?;
    is_told(bench, &mut changes, &slot, "another begins").await?;
    bench.store.give_back(&second, &given_back(&second)).await?;
    is_told(bench, &mut changes, &slot, "it was given back").await?;
    let third = bench.grant(&slot, "c").await?;
    is_told(bench, &mut changes, &slot, "a third begins").await?;
    bench.store.complete(&third, &succeeded(&third), DONE).await?;
    is_told(bench, &mut changes, &slot, "it is done").await
}

async fn a_verdict_is_told(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let Some(mut changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let over = bench.span("job", -7_200, -3_600)?;
    bench.store.close(&over, 3, &node_name("a")?).await?;
    is_told(bench, &mut changes, &over, "it was missed").await
}

async fn what_an_operator_does_is_told(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let Some(mut changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let slot = bench.slot("job")?;
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    is_told(bench, &mut changes, &slot, "marked done").await?;
    bench.store.reset(&slot, &audit("reset")).await?;
    is_told(bench, &mut changes, &slot, "opened").await?;
    bench.grant(&slot, "a").await?;
    is_told(bench, &mut changes, &slot, "a run begins").await?;
    bench.store.unlock(&slot, &audit("unlock")).await?;
    is_told(bench, &mut changes, &slot, "taken").await?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    is_told_of_job(bench, &mut changes, &slot, "paused").await?;
    bench.store.resume(slot.job(), &audit("resume")).await?;
    is_told_of_job(bench, &mut changes, &slot, "resumed").await
}

async fn a_renewal_and_a_refusal_are_not_told(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let Some(mut changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let (slot, other) = (bench.slot("job")?, bench.slot("other")?);
    let lease = bench.grant(&slot, "a").await?;
    is_told(bench, &mut changes, &slot, "a run begins").await?;
    bench.store.renew(&crate::slot::Lease { ttl: LEASE * 2, ..lease.clone() }).await?;
    bench.claim(&slot, "b").await?;
    bench.store.inspect(std::slice::from_ref(&slot)).await?;
    bench.store.close(&slot, 3, &node_name("b")?).await?;
    bench.grant(&other, "a").await?;
    is_told(bench, &mut changes, &other, "nothing was to be seen before").await
}

async fn two_who_look_on_are_both_told(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    let Some(mut first) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let mut second = listener.changes();
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    is_told(bench, &mut first, &slot, "the first").await?;
    is_told(bench, &mut second, &slot, "the second, over the same connection").await?;
    drop(first);
    bench.store.unlock(&slot, &audit("unlock")).await?;
    is_told(bench, &mut second, &slot, "the one who stays").await
}

async fn who_looks_on_again_is_told_again(bench: &Bench) -> CaseOutcome {
    let listener = bench.another().await?;
    for _ in 0..3 {
        let Some(changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
        drop(changes);
    }
    Ok(())
}

async fn changes_stay_in_their_namespace(bench: &Bench) -> CaseOutcome {
    let (beside, _probe) = bench.neighbour().await?;
    let listener = bench.another().await?;
    let Some(mut changes) = looks_on(bench, &*listener).await? else { return Ok(()) };
    let (there, here) = (bench.slot("there")?, bench.slot("here")?);
    beside.claim(&bench.request(&there, "a")?).await?;
    beside.pause(there.job(), None, &audit("pause")).await?;
    bench.grant(&here, "a").await?;
    is_told(bench, &mut changes, &here, "and nothing of the neighbour's").await
}
