//! Cases: a slot that is over runs only where a person asks for it by name, and then under every rule but the one that it
//! is over.

use std::time::Duration;

use crate::slot::{Slot, Verdict};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, failed, given_back, granted, is_about, node_name, succeeded,
};
use crate::store::conformance::case::case;
use crate::store::conformance::{Bench, Case, Failure, Outcome};
use crate::store::{Claim, ClaimRequest, Closing, Release, Renewal, Settlement};

pub(super) const CASES: &[Case] = &[
    case!("past", a_slot_that_is_over_is_granted_to_who_asks_for_the_past, I6),
    case!("past", what_has_not_begun_is_no_past, I6),
    case!("past", a_slot_that_lasts_is_granted_as_ever, I5),
    case!("past", a_slot_that_is_over_is_held_like_any_other, I1, I5),
    case!("past", a_lease_is_renewed_and_restored_after_the_slots_end, I1, I4),
    case!("past", the_attempts_of_a_slot_that_is_over_are_counted_and_limited, I2, I5),
    case!("past", done_pauses_and_older_runs_hold_in_the_past_too, I3),
    case!("past", success_in_the_past_replaces_the_verdict, I3, I7, L2),
    case!("past", a_failure_in_the_past_leaves_the_verdict, L2),
];

/// A slot that ended an hour ago.
fn over(bench: &Bench) -> Result<Slot, Failure> {
    bench.span("job", -7_200, -3_600)
}

fn asked(bench: &Bench, slot: &Slot, node: &str) -> Result<ClaimRequest, Failure> {
    Ok(ClaimRequest { past: true, ..bench.request(slot, node)? })
}

async fn a_slot_that_is_over_is_granted_to_who_asks_for_the_past(bench: &Bench) -> Outcome {
    let slot = over(bench)?;
    let request = asked(bench, &slot, "a")?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    let left = take!(bench.probe.mark_ttl(&slot).await?, Some(left) => left);
    ensure!(is_about(left, LEASE), "{left:?} remain");
    let next = bench.span("job", -3_600, -60)?;
    ensure_eq!(bench.claim(&next, "a").await?, Claim::Closed, "nobody else is let in by that");
    Ok(())
}

async fn what_has_not_begun_is_no_past(bench: &Bench) -> Outcome {
    let slot = bench.span("job", 3_600, 7_200)?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Early { .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn a_slot_that_lasts_is_granted_as_ever(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Claimed { attempt: 1, .. });
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    Ok(())
}

async fn a_slot_that_is_over_is_held_like_any_other(bench: &Bench) -> Outcome {
    let slot = over(bench)?;
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    let other = take!(bench.store.claim(&asked(bench, &slot, "b")?).await?, Claim::Held { by, .. } => by);
    ensure_eq!((other.node.as_str(), other.attempt), ("a", 1));
    ensure_eq!(bench.claim(&slot, "b").await?, Claim::Closed, "a schedule is not told who holds what is over");
    let again = take!(bench.store.claim(&request).await?, Claim::Claimed { attempt, at, .. } => (attempt, at));
    ensure_eq!(again, (lease.attempt, lease.claimed_at), "a lost reply burns nothing");
    bench.expire(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn a_lease_is_renewed_and_restored_after_the_slots_end(bench: &Bench) -> Outcome {
    let slot = over(bench)?;
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Renewed);
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    ensure_is!(bench.store.close(&slot, 3, &node_name("b")?).await?, Closing::Running { .. });
    bench.store.unlock(&slot, &audit("unlock")).await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Lost { to: None });
    Ok(())
}

async fn the_attempts_of_a_slot_that_is_over_are_counted_and_limited(bench: &Bench) -> Outcome {
    let slot = over(bench)?;
    for attempt in 1..=3 {
        let request = asked(bench, &slot, "a")?;
        let lease = granted(&request, bench.store.claim(&request).await?)?;
        ensure_eq!(lease.attempt, attempt);
        ensure_eq!(bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?, Release::Released);
    }
    ensure_eq!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Exhausted { used: 3 });
    bench.store.reset(&slot, &audit("reset")).await?;
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    ensure_eq!(lease.attempt, 4);
    bench.store.give_back(&lease, &given_back(&lease)).await?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Claimed { attempt: 5, used: 1, .. });
    Ok(())
}

async fn done_pauses_and_older_runs_hold_in_the_past_too(bench: &Bench) -> Outcome {
    let (slot, running) = (over(bench)?, bench.slot("job")?);
    bench.grant(&running, "b").await?;
    let beside = ClaimRequest { exclusive: true, ..asked(bench, &slot, "a")? };
    let by = take!(bench.store.claim(&beside).await?, Claim::Blocked { key, .. } => key);
    ensure_eq!(by, running.key(), "a newer slot counts, too");
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_eq!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Paused { remaining: None });
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Done(_));
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn success_in_the_past_replaces_the_verdict(bench: &Bench) -> Outcome {
    let (slot, node) = (over(bench)?, node_name("b")?);
    ensure_eq!(bench.store.close(&slot, 3, &node).await?, Closing::First(Verdict::Missed));
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    ensure_eq!(bench.store.close(&slot, 3, &node).await?, Closing::Already(Verdict::Missed));
    ensure_eq!(bench.store.complete(&lease, &succeeded(&lease), DONE).await?, Settlement::Recorded);
    ensure_eq!(bench.store.close(&slot, 3, &node).await?, Closing::Already(Verdict::Done));
    let verdict = take!(bench.record(&slot).await?.verdict, Some(record) => record);
    ensure_eq!((verdict.by.as_str(), verdict.attempt), ("a", 1));
    ensure_is!(bench.store.claim(&asked(bench, &slot, "c")?).await?, Claim::Done(_));
    bench.expire(&slot).await?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "c")?).await?, Claim::Done(_));
    Ok(())
}

async fn a_failure_in_the_past_leaves_the_verdict(bench: &Bench) -> Outcome {
    let (slot, node) = (over(bench)?, node_name("b")?);
    ensure_eq!(bench.store.close(&slot, 1, &node).await?, Closing::First(Verdict::Missed));
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Backoff { .. });
    ensure_eq!(bench.store.close(&slot, 1, &node).await?, Closing::Already(Verdict::Missed));
    Ok(())
}
