//! Cases: who may start. The order of the checks, one lease at a time, one token one grant.

use std::time::Duration;

use crate::slot::{Mark, Outcome as Ended, Trigger};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, granted, is_about, is_recent, node_name, patiently, record, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome};
use crate::store::{Claim, ClaimRequest};

/// What is asked for when nothing can be started any more.
const BRIEF: Duration = Duration::from_secs(2);

pub(super) const CASES: &[Case] = &[
    case!("claim", a_free_slot_is_granted_as_attempt_one, I2, I5),
    case!("claim", a_grant_is_recorded_with_who_when_and_why, L2),
    case!("claim", a_held_slot_is_not_granted_again, I1),
    case!("claim", a_refused_claim_changes_nothing, I1, I2, I4),
    case!("claim", the_same_token_is_one_grant_and_gets_a_full_ttl, I5),
    case!("claim", a_claim_of_the_same_token_never_shortens, I1),
    case!("claim", a_brief_claim_of_the_same_token_lasts_no_longer_than_it_asks),
    case!("claim", a_done_slot_is_never_granted, I3),
    case!("claim", a_failed_slot_waits_before_it_is_granted_again, I5),
    case!("claim", a_late_copy_of_a_request_whose_run_is_over_is_not_granted, I5),
    case!("claim", used_up_attempts_end_the_slot, I5),
    case!("claim", no_attempts_allowed_means_none_granted, I5),
    case!("claim", a_paused_job_is_not_granted),
    case!("claim", an_exclusive_claim_is_blocked_while_an_older_slot_runs),
    case!("claim", the_checks_come_in_the_order_of_the_contract, I1, I3, I5),
    case!("claim", slots_and_jobs_do_not_touch_each_other, I1),
    case!("claim", the_end_is_no_part_of_a_slots_identity, I1),
];

async fn a_free_slot_is_granted_as_attempt_one(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let claim = bench.claim(&slot, "a").await?;
    let (attempt, used, at) = take!(claim, Claim::Claimed { attempt, used, at, .. } => (attempt, used, at));
    ensure_eq!((attempt, used), (1, 1));
    ensure!(is_recent(bench, at), "granted at {at}, the case began at {}", bench.began);
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    Ok(())
}

async fn a_grant_is_recorded_with_who_when_and_why(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = ClaimRequest { trigger: Trigger::Manual, ..bench.request(&slot, "a")? };
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.forgiven), (1, 0));
    let (by, token) = take!(&known.mark, Mark::Leased { by, token, .. } => (by, token));
    ensure_eq!((by.node.as_str(), by.attempt, *token), ("a", 1, request.token));
    let run = take!(known.runs.as_slice(), [run] => run);
    ensure_eq!((run.attempt, run.token, &run.node), (1, request.token, &request.node));
    ensure_eq!((run.trigger, run.claimed_at), (Trigger::Manual, lease.claimed_at));
    ensure_eq!((run.outcome, run.ended_at), (None, None));
    Ok(())
}

async fn a_held_slot_is_not_granted_again(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    let other = bench.another().await?;
    let claim = other.claim(&bench.request(&slot, "b")?).await?;
    let (by, remaining) = take!(claim, Claim::Held { by, remaining } => (by, remaining));
    ensure_eq!((by.node.as_str(), by.attempt), ("a", 1));
    ensure!(is_about(remaining, LEASE), "{remaining:?} remain");
    Ok(())
}

async fn a_refused_claim_changes_nothing(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    let held = bench.record(&slot).await?;
    ensure_eq!((held.attempts, held.runs.len(), bench.probe.attempts(&slot).await?), (1, 1, Some(1)));
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Backoff { .. });
    let waiting = bench.record(&slot).await?;
    ensure_eq!((waiting.attempts, waiting.runs.len(), bench.probe.attempts(&slot).await?), (1, 1, Some(1)));
    let untouched = bench.span("job", 3_600, 7_200)?;
    ensure_is!(bench.claim(&untouched, "b").await?, Claim::Early { .. });
    ensure_eq!(bench.probe.attempts(&untouched).await?, None);
    ensure_eq!(bench.probe.mark_ttl(&untouched).await?, None);
    Ok(())
}

async fn the_same_token_is_one_grant_and_gets_a_full_ttl(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let short = ClaimRequest { lease_ttl: LEASE / 2, ..bench.request(&slot, "a")? };
    let first = granted(&short, bench.store.claim(&short).await?)?;
    let again = ClaimRequest { lease_ttl: LEASE, ..short };
    let claim = bench.another().await?.claim(&again).await?;
    let (attempt, used, at) = take!(claim, Claim::Claimed { attempt, used, at, .. } => (attempt, used, at));
    ensure_eq!((attempt, used, at), (1, 1, first.claimed_at));
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    ensure_eq!(bench.record(&slot).await?.runs.len(), 1);
    Ok(())
}

async fn a_claim_of_the_same_token_never_shortens(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let brief = ClaimRequest { token: lease.token, lease_ttl: BRIEF, ..bench.request(&slot, "a")? };
    ensure_is!(bench.another().await?.claim(&brief).await?, Claim::Claimed { attempt: 1, .. });
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    Ok(())
}

/// Whoever asks when nothing can be started any more lets no lease last that nobody uses.
async fn a_brief_claim_of_the_same_token_lasts_no_longer_than_it_asks(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let first = ClaimRequest { lease_ttl: Duration::from_secs(5), ..bench.request(&slot, "a")? };
    let lease = granted(&first, bench.store.claim(&first).await?)?;
    for _ in 0..5 {
        // Longer than a setup in a hurry waits for a hint.
        let looked = patiently(bench, async || {
            let left = bench.probe.mark_ttl(&slot).await?;
            Ok(left.is_none_or(|left| left < BRIEF).then_some(()))
        });
        if looked.await.is_ok() {
            break;
        }
    }
    let claim = bench.store.claim(&ClaimRequest { lease_ttl: BRIEF, ..first }).await?;
    let (attempt, at) = take!(claim, Claim::Claimed { attempt, at, .. } => (attempt, at));
    ensure_eq!((attempt, at), (1, lease.claimed_at));
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(ttl <= BRIEF, "the lease lasts {ttl:?}");
    Ok(())
}

async fn a_done_slot_is_never_granted(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    for node in ["a", "b"] {
        let mark = take!(bench.claim(&slot, node).await?, Claim::Done(mark) => mark);
        ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("a", 1));
        ensure!(is_recent(bench, mark.at), "done at {}", mark.at);
    }
    let own = ClaimRequest { token: lease.token, ..bench.request(&slot, "a")? };
    ensure_is!(bench.store.claim(&own).await?, Claim::Done(_));
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn a_failed_slot_waits_before_it_is_granted_again(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    let remaining = take!(bench.claim(&slot, "b").await?, Claim::Backoff { remaining } => remaining);
    ensure!(is_about(remaining, WAIT), "{remaining:?} remain");
    // The token that failed is no exception: its grant is over.
    let own = ClaimRequest { token: lease.token, ..bench.request(&slot, "a")? };
    ensure_is!(bench.store.claim(&own).await?, Claim::Backoff { .. });
    bench.expire(&slot).await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

async fn a_late_copy_of_a_request_whose_run_is_over_is_not_granted(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = bench.request(&slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.store.claim(&request).await?, Claim::Backoff { remaining: Duration::ZERO });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

async fn used_up_attempts_end_the_slot(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for attempt in 1..=3 {
        let lease = bench.grant(&slot, "a").await?;
        ensure_eq!(lease.attempt, attempt);
        bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    }
    ensure_eq!(bench.claim(&slot, "b").await?, Claim::Exhausted { used: 3 });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(3));
    // A node with a larger limit in its file goes on counting where the others stopped.
    let more = ClaimRequest { max_attempts: 4, ..bench.request(&slot, "b")? };
    ensure_is!(bench.store.claim(&more).await?, Claim::Claimed { attempt: 4, used: 4, .. });
    Ok(())
}

async fn no_attempts_allowed_means_none_granted(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let none = ClaimRequest { max_attempts: 0, ..bench.request(&slot, "a")? };
    ensure_eq!(bench.store.claim(&none).await?, Claim::Exhausted { used: 0 });
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn a_paused_job_is_not_granted(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_eq!(bench.another().await?.claim(&bench.request(&slot, "a")?).await?, Claim::Paused { remaining: None });
    ensure_is!(bench.claim(&bench.slot("other")?, "a").await?, Claim::Claimed { .. });
    bench.store.pause(slot.job(), Some(bench.at(600)), &audit("pause")).await?;
    let remaining = take!(bench.claim(&slot, "a").await?, Claim::Paused { remaining: Some(left) } => left);
    ensure!(is_about(remaining, Duration::from_secs(600)), "{remaining:?} remain");
    bench.store.pause(slot.job(), Some(bench.at(-1)), &audit("pause")).await?;
    ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn an_exclusive_claim_is_blocked_while_an_older_slot_runs(bench: &Bench) -> CaseOutcome {
    let (older, slot) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    let lease = bench.grant(&older, "a").await?;
    let request = ClaimRequest { exclusive: true, ..bench.request(&slot, "b")? };
    let claim = bench.another().await?.claim(&request).await?;
    let (blocker, by, remaining) = take!(claim, Claim::Blocked { key, by, remaining } => (key, by, remaining));
    ensure_eq!((blocker, by.node.as_str(), by.attempt), (older.key(), "a", 1));
    ensure!(is_about(remaining, LEASE), "{remaining:?} remain");
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    // A wait after a failure is no run, and neither is a done marker.
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    Ok(())
}

/// Each step adds a reason that comes earlier than those already there.
async fn the_checks_come_in_the_order_of_the_contract(bench: &Bench) -> CaseOutcome {
    let (older, slot) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    bench.grant(&older, "a").await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    bench.expire(&slot).await?;
    let request = ClaimRequest { exclusive: true, ..bench.request(&slot, "b")? };
    ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Paused { .. });
    bench.store.resume(slot.job(), &audit("resume")).await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Backoff { .. });
    let used_up = ClaimRequest { max_attempts: 2, ..request.clone() };
    ensure_is!(bench.store.claim(&used_up).await?, Claim::Exhausted { used: 2 });
    bench.store.resume(slot.job(), &audit("resume")).await?;
    bench.expire(&slot).await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    let none_left = ClaimRequest { max_attempts: 1, ..request.clone() };
    ensure_is!(bench.store.claim(&none_left).await?, Claim::Held { .. });
    let own = ClaimRequest { token: lease.token, ..none_left };
    ensure_is!(bench.store.claim(&own).await?, Claim::Claimed { attempt: 3, used: 3, .. });
    let over = bench.span("job", -600, -1)?;
    let late = ClaimRequest { slot: over.clone(), ..own.clone() };
    ensure_is!(bench.store.claim(&late).await?, Claim::Claimed { attempt: 3, used: 3, .. });
    ensure_is!(bench.store.claim(&ClaimRequest { token: bench.token(), ..late }).await?, Claim::Closed);
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_is!(bench.store.claim(&ClaimRequest { slot: over, ..own }).await?, Claim::Done(_));
    Ok(())
}

async fn slots_and_jobs_do_not_touch_each_other(bench: &Bench) -> CaseOutcome {
    let slots = [bench.slot("job")?, bench.slot("job.b")?, bench.slot("jo")?, bench.span("job", -540, 7_200)?];
    for slot in &slots {
        ensure_eq!(bench.grant(slot, "a").await?.attempt, 1, "{slot}");
    }
    bench.expire(&slots[0]).await?;
    for slot in &slots[1..] {
        ensure_is!(bench.claim(slot, "b").await?, Claim::Held { .. });
    }
    ensure_eq!(bench.grant(&slots[0], "b").await?.attempt, 2);
    Ok(())
}

/// Two files that give the period differently still mean the same work when it starts at the same instant.
async fn the_end_is_no_part_of_a_slots_identity(bench: &Bench) -> CaseOutcome {
    let (slot, longer) = (bench.span("job", -600, 3_600)?, bench.span("job", -600, 7_200)?);
    let lease = bench.grant(&slot, "a").await?;
    ensure_is!(bench.claim(&longer, "b").await?, Claim::Held { .. });
    let known = record(&*bench.store, &longer).await?;
    ensure_eq!((&known.slot, known.attempts), (&longer, 1));
    ensure_eq!(known.runs.first().and_then(|run| run.outcome), None::<Ended>);
    ensure_eq!(lease.node, node_name("a")?);
    Ok(())
}
