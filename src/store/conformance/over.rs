//! Cases: slots that are over. Each ends in one verdict, recorded once and told by one node. It runs only where a person asks for it by
//! name, and then under every rule but the one that it is over.

use std::time::Duration;

use futures_util::future::join_all;

use crate::slot::{Lease, Slot, Verdict};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, given_back, granted, is_about, is_recent, node_name, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
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
    case!("close", a_slot_that_nobody_ran_is_missed, L2),
    case!("close", a_slot_whose_attempts_are_used_up_has_failed, L2),
    case!("close", a_slot_with_attempts_left_is_missed, L2),
    case!("close", a_forgiven_attempt_does_not_fail_a_slot, L2),
    case!("close", a_done_slot_is_done_already, L2),
    case!("close", a_paused_slot_that_nobody_ran_is_skipped, L2),
    case!("close", a_slot_touched_by_a_pause_that_is_over_is_skipped, L2),
    case!("close", a_paused_slot_that_was_tried_is_not_skipped, L2),
    case!("close", a_running_slot_is_asked_again_later, L2),
    case!("close", the_verdict_is_told_by_one_node_alone, L2),
    case!("close", success_after_the_verdict_replaces_it, I7, L2),
    case!("close", a_wait_after_a_failure_is_no_run, L2),
];

/// A slot that ended an hour ago.
fn over(bench: &Bench) -> Result<Slot, Failure> {
    bench.span("job", -7_200, -3_600)
}

fn asked(bench: &Bench, slot: &Slot, node: &str) -> Result<ClaimRequest, Failure> {
    Ok(ClaimRequest { past: true, ..bench.request(slot, node)? })
}

async fn a_slot_that_is_over_is_granted_to_who_asks_for_the_past(bench: &Bench) -> CaseOutcome {
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

async fn what_has_not_begun_is_no_past(bench: &Bench) -> CaseOutcome {
    let slot = bench.span("job", 3_600, 7_200)?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Early { .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn a_slot_that_lasts_is_granted_as_ever(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Claimed { attempt: 1, .. });
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    Ok(())
}

async fn a_slot_that_is_over_is_held_like_any_other(bench: &Bench) -> CaseOutcome {
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

async fn a_lease_is_renewed_and_restored_after_the_slots_end(bench: &Bench) -> CaseOutcome {
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

async fn the_attempts_of_a_slot_that_is_over_are_counted_and_limited(bench: &Bench) -> CaseOutcome {
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

async fn done_pauses_and_older_runs_hold_in_the_past_too(bench: &Bench) -> CaseOutcome {
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

async fn success_in_the_past_replaces_the_verdict(bench: &Bench) -> CaseOutcome {
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

async fn a_failure_in_the_past_leaves_the_verdict(bench: &Bench) -> CaseOutcome {
    let (slot, node) = (over(bench)?, node_name("b")?);
    ensure_eq!(bench.store.close(&slot, 1, &node).await?, Closing::First(Verdict::Missed));
    let request = asked(bench, &slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.store.claim(&asked(bench, &slot, "a")?).await?, Claim::Backoff { .. });
    ensure_eq!(bench.store.close(&slot, 1, &node).await?, Closing::Already(Verdict::Missed));
    Ok(())
}

async fn a_slot_that_nobody_ran_is_missed(bench: &Bench) -> CaseOutcome {
    let (slot, node) = (bench.span("job", -7_200, -3_600)?, node_name("a")?);
    ensure_eq!(bench.store.close(&slot, 3, &node).await?, Closing::First(Verdict::Missed));
    let verdict = take!(bench.record(&slot).await?.verdict, Some(record) => record);
    ensure_eq!((verdict.verdict, &verdict.by), (Verdict::Missed, &node));
    ensure!(is_recent(bench, verdict.at), "recorded at {}", verdict.at);
    let other = bench.another().await?;
    ensure_eq!(other.close(&slot, 3, &node_name("b")?).await?, Closing::Already(Verdict::Missed));
    ensure_eq!(bench.record(&slot).await?.verdict, Some(verdict));
    Ok(())
}

async fn a_slot_whose_attempts_are_used_up_has_failed(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    for _ in 0..2 {
        let lease = bench.grant(&slot, "a").await?;
        bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    }
    ensure_eq!(bench.store.close(&over, 2, &node_name("a")?).await?, Closing::First(Verdict::Failed));
    Ok(())
}

async fn a_slot_with_attempts_left_is_missed(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.store.close(&over, 2, &node_name("a")?).await?, Closing::First(Verdict::Missed));
    Ok(())
}

async fn a_forgiven_attempt_does_not_fail_a_slot(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    bench.store.reset(&slot, &audit("reset")).await?;
    ensure_eq!(bench.store.close(&over, 1, &node_name("a")?).await?, Closing::First(Verdict::Missed));
    Ok(())
}

async fn a_done_slot_is_done_already(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_eq!(bench.store.close(&over, 3, &node_name("b")?).await?, Closing::Already(Verdict::Done));
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.close(&over, 3, &node_name("b")?).await?, Closing::Already(Verdict::Done));
    Ok(())
}

/// Pauses the slot's job and answers the slot with an end after that, which is past by the time it is asked.
async fn paused_and_over(bench: &Bench, slot: &Slot) -> Result<Slot, Failure> {
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    let since = take!(bench.store.pauses().await?.first(), Some((_, pause)) => pause.since);
    let end = bench.after(since).await?;
    Slot::new(slot.job().clone(), slot.start(), end).map_err(|error| Failure::from(error.to_string()))
}

async fn a_paused_slot_that_nobody_ran_is_skipped(bench: &Bench) -> CaseOutcome {
    let node = node_name("a")?;
    let touched = paused_and_over(bench, &bench.slot("job")?).await?;
    ensure_eq!(bench.store.close(&touched, 3, &node).await?, Closing::First(Verdict::Skipped));
    let before = bench.span("job", -660, -1)?;
    ensure_eq!(bench.store.close(&before, 3, &node).await?, Closing::First(Verdict::Missed), "over before the pause");
    let other = bench.span("other", -600, -1)?;
    ensure_eq!(bench.store.close(&other, 3, &node).await?, Closing::First(Verdict::Missed), "another job's pause");
    Ok(())
}

async fn a_slot_touched_by_a_pause_that_is_over_is_skipped(bench: &Bench) -> CaseOutcome {
    let (slot, node) = (bench.slot("job")?, node_name("a")?);
    let touched = paused_and_over(bench, &slot).await?;
    bench.store.resume(slot.job(), &audit("resume")).await?;
    ensure_eq!(bench.store.close(&touched, 3, &node).await?, Closing::First(Verdict::Skipped));
    Ok(())
}

async fn a_paused_slot_that_was_tried_is_not_skipped(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    let touched = paused_and_over(bench, &slot).await?;
    ensure_eq!(bench.store.close(&touched, 3, &node_name("a")?).await?, Closing::First(Verdict::Missed));
    Ok(())
}

async fn a_running_slot_is_asked_again_later(bench: &Bench) -> CaseOutcome {
    let (slot, over, node) = (bench.slot("job")?, bench.span("job", -600, -1)?, node_name("b")?);
    bench.grant(&slot, "a").await?;
    let closing = bench.store.close(&over, 1, &node).await?;
    let (by, remaining) = take!(closing, Closing::Running { by, remaining } => (by, remaining));
    ensure_eq!((by.node.as_str(), by.attempt), ("a", 1));
    ensure!(is_about(remaining, LEASE), "{remaining:?} remain");
    ensure_eq!(bench.record(&slot).await?.verdict, None);
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.close(&over, 1, &node).await?, Closing::First(Verdict::Failed));
    Ok(())
}

async fn the_verdict_is_told_by_one_node_alone(bench: &Bench) -> CaseOutcome {
    let slot = bench.span("job", -7_200, -3_600)?;
    let mut nodes = Vec::new();
    for index in 0..16 {
        nodes.push((bench.another().await?, node_name(&format!("n{index}"))?));
    }
    let closings = join_all(nodes.iter().map(|(store, node)| store.close(&slot, 3, node))).await;
    let mut firsts = 0;
    for closing in closings {
        match closing? {
            Closing::First(verdict) => {
                ensure_eq!(verdict, Verdict::Missed);
                firsts += 1;
            }
            other => ensure_eq!(other, Closing::Already(Verdict::Missed)),
        }
    }
    ensure_eq!(firsts, 1, "nodes that would tell");
    Ok(())
}

async fn success_after_the_verdict_replaces_it(bench: &Bench) -> CaseOutcome {
    let (slot, over, node) = (bench.slot("job")?, bench.span("job", -600, -1)?, node_name("b")?);
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.close(&over, 1, &node).await?, Closing::First(Verdict::Failed));
    let late = Lease { slot: over.clone(), ..lease };
    ensure_eq!(bench.store.renew(&late).await?, Renewal::Restored);
    ensure_eq!(bench.store.close(&over, 1, &node).await?, Closing::Already(Verdict::Failed));
    bench.store.complete(&late, &succeeded(&late), DONE).await?;
    let verdict = take!(bench.record(&slot).await?.verdict, Some(record) => record);
    ensure_eq!((verdict.verdict, verdict.by.as_str()), (Verdict::Done, "a"));
    ensure_eq!(bench.store.close(&over, 1, &node).await?, Closing::Already(Verdict::Done));
    Ok(())
}

async fn a_wait_after_a_failure_is_no_run(bench: &Bench) -> CaseOutcome {
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_eq!(bench.store.close(&over, 3, &node_name("a")?).await?, Closing::First(Verdict::Missed));
    Ok(())
}
