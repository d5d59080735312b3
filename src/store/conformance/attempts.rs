//! Cases: the count of attempts. It rises with each grant, for all nodes together, and never falls. And what a claim finds again
//! (`lost::`): a grant whose answer and whose lease were both lost is the same attempt still, until somebody has followed it or it
//! has ended; a slot is done by its verdict where the marker is gone.

use std::time::Duration;

use crate::job::MAX_ATTEMPTS_LIMIT;
use crate::slot::{DoneMark, Lease, Mark, Outcome as Ended, Slot};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, given_back, granted, is_about, is_recent, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::layer::ChaosFault;
use crate::store::{Applied, Claim, ClaimRequest, Intervention, Op, Renewal, Store};

pub(super) const CASES: &[Case] = &[
    case!("attempts", numbers_rise_over_all_nodes_and_connections, I2, I5),
    case!("attempts", a_crashed_attempt_counts, I2, I5),
    case!("attempts", every_grant_has_its_own_record, I2, L2),
    case!("attempts", a_lost_counter_goes_on_from_the_records, I2, I5),
    case!("attempts", a_stale_record_in_an_empty_store_keeps_the_numbers_rising, I2),
    case!("attempts", a_restored_lease_keeps_the_numbers_rising, I2),
    case!("attempts", no_number_beyond_the_fence_is_granted, I2, I5),
    case!("attempts", fences_rise_with_each_grant, I2),
    case!("lost", a_claim_unheard_until_its_lease_had_lapsed_burns_no_attempt, I2, I5),
    case!("lost", the_last_attempt_is_found_again_too, I5),
    case!("lost", an_attempt_found_again_keeps_the_others_out, I1, I5),
    case!("lost", an_attempt_is_found_again_where_the_counter_was_lost, I2, I5),
    case!("lost", an_attempt_that_was_followed_is_not_found_again, I1, I2, I4),
    case!("lost", an_attempt_that_has_ended_is_not_found_again, I4, I5),
    case!("lost", an_attempt_that_was_forgiven_is_not_found_again, I5),
    case!("lost", an_attempt_is_found_again_by_its_own_token_alone, I2, I5),
    case!("lost", an_attempt_found_again_waits_like_any_other, I6),
    case!("lost", a_slot_whose_done_marker_was_lost_is_done, I3),
    case!("lost", a_slot_marked_done_stays_done_without_its_marker, I3),
    case!("lost", no_lease_is_restored_where_the_done_marker_was_lost, I3),
    case!("lost", a_reset_opens_a_slot_whose_done_marker_was_lost, I3),
];

async fn numbers_rise_over_all_nodes_and_connections(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for (attempt, node) in (1..).zip(["a", "b", "c", "a"]) {
        let connection = bench.another().await?;
        let request = ClaimRequest { max_attempts: 9, ..bench.request(&slot, node)? };
        let claim = connection.claim(&request).await?;
        let (number, used) = take!(claim, Claim::Claimed { attempt, used, .. } => (attempt, used));
        ensure_eq!((number, used), (attempt, attempt));
        let lease = request.granted(number, bench.began);
        connection.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    }
    ensure_eq!(bench.record(&slot).await?.attempts, 4);
    Ok(())
}

async fn a_crashed_attempt_counts(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for _ in 0..3 {
        bench.grant(&slot, "a").await?;
        bench.expire(&slot).await?;
    }
    ensure_eq!(bench.claim(&slot, "a").await?, Claim::Exhausted { used: 3 });
    let known = bench.record(&slot).await?;
    let shown: Vec<_> = known.runs.iter().map(|run| (run.attempt, known.outcome_of(run))).collect();
    let crashed = Some(crate::slot::Outcome::Crashed);
    ensure_eq!(shown, vec![(1, crashed), (2, crashed), (3, crashed)]);
    Ok(())
}

async fn every_grant_has_its_own_record(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    // Somebody else's failure comes too late, after its lease has lapsed.
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    // The leases of the next two lapse too.
    for (attempt, outcomes) in [(2, vec![Some(Ended::Failure), None]), (3, vec![Some(Ended::Failure), None, None])] {
        let request = bench.request(&slot, "b")?;
        let next = granted(&request, bench.store.claim(&request).await?)?;
        let known = bench.record(&slot).await?;
        ensure_eq!(next.attempt, attempt);
        ensure_eq!(known.runs.iter().map(|run| run.outcome).collect::<Vec<_>>(), outcomes);
        ensure_eq!(known.runs.last().map(|run| (run.attempt, run.token)), Some((attempt, request.token)));
        bench.expire(&slot).await?;
    }
    Ok(())
}

async fn a_lost_counter_goes_on_from_the_records(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    for _ in 0..2 {
        let lease = bench.grant(&slot, "a").await?;
        bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    }
    bench.probe.forget_counter(&slot).await?;
    ensure_eq!(bench.record(&slot).await?.attempts, 2, "what is read agrees with what is granted");
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 3, used: 3, .. });
    bench.expire(&slot).await?;
    bench.probe.forget_counter(&slot).await?;
    ensure_eq!(bench.claim(&slot, "b").await?, Claim::Exhausted { used: 3 });
    Ok(())
}

async fn a_stale_record_in_an_empty_store_keeps_the_numbers_rising(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.record(&slot).await?.attempts, 2);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 3, used: 3, .. });
    Ok(())
}

async fn a_restored_lease_keeps_the_numbers_rising(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let lease = bench.grant(&slot, "b").await?;
    bench.probe.wipe().await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    bench.expire(&slot).await?;
    ensure_eq!(bench.grant(&slot, "c").await?.attempt, 3);
    Ok(())
}

/// The fence keeps three digits for the attempt. A lease of attempt 999 in an empty store stands for 999 grants.
async fn no_number_beyond_the_fence_is_granted(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    let last = Lease { attempt: MAX_ATTEMPTS_LIMIT, ..lease };
    ensure_eq!(bench.store.renew(&last).await?, Renewal::Restored);
    bench.store.give_back(&last, &given_back(&last)).await?;
    let request = ClaimRequest { max_attempts: 5_000, ..bench.request(&slot, "b")? };
    ensure_eq!(bench.store.claim(&request).await?, Claim::Exhausted { used: MAX_ATTEMPTS_LIMIT - 1 });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(MAX_ATTEMPTS_LIMIT));
    bench.store.complete(&last, &succeeded(&last), DONE).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Done(_));
    Ok(())
}

async fn fences_rise_with_each_grant(bench: &Bench) -> CaseOutcome {
    let (earlier, later) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    let mut fences = Vec::new();
    for slot in [&earlier, &later] {
        for _ in 0..3 {
            fences.push(bench.grant(slot, "a").await?.fence());
            bench.expire(slot).await?;
        }
    }
    ensure!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    Ok(())
}

/// A request that was granted as attempt 1 and whose lease has lapsed, and what it was granted.
async fn lapsed(bench: &Bench, slot: &Slot) -> Result<(ClaimRequest, Lease), Failure> {
    let request = bench.request(slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.expire(slot).await?;
    Ok((request, lease))
}

async fn a_claim_unheard_until_its_lease_had_lapsed_burns_no_attempt(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::Claim, ChaosFault::LoseReply);
    let request = bench.request(&slot, "a")?;
    ensure!(store.claim(&request).await.is_err_and(|error| error.applied == Applied::Maybe));
    bench.expire(&slot).await?;
    let first = take!(bench.record(&slot).await?.runs.first(), Some(run) => run.claimed_at);
    bench.after(first).await?;
    let claim = bench.another().await?.claim(&request).await?;
    let (attempt, used, at) = take!(claim, Claim::Claimed { attempt, used, at, .. } => (attempt, used, at));
    ensure_eq!((attempt, used, at), (1, 1, first), "the number and the instant of the grant");
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    let known = bench.record(&slot).await?;
    let (by, token) = take!(&known.mark, Mark::Leased { by, token, .. } => (by, token));
    ensure_eq!((by.node.as_str(), by.attempt, *token), ("a", 1, request.token));
    ensure_eq!((known.attempts, known.runs.len(), bench.probe.attempts(&slot).await?), (1, 1, Some(1)));
    Ok(())
}

async fn the_last_attempt_is_found_again_too(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let only = ClaimRequest { max_attempts: 1, ..bench.request(&slot, "a")? };
    ensure_is!(bench.store.claim(&only).await?, Claim::Claimed { attempt: 1, .. });
    bench.expire(&slot).await?;
    let other = ClaimRequest { max_attempts: 1, ..bench.request(&slot, "b")? };
    ensure_eq!(bench.store.claim(&other).await?, Claim::Exhausted { used: 1 });
    ensure_is!(bench.store.claim(&only).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    Ok(())
}

async fn an_attempt_found_again_keeps_the_others_out(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (request, lease) = lapsed(bench, &slot).await?;
    ensure_eq!(granted(&request, bench.store.claim(&request).await?)?, lease);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Renewed);
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 2, .. });
    Ok(())
}

async fn an_attempt_is_found_again_where_the_counter_was_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (request, _) = lapsed(bench, &slot).await?;
    bench.probe.forget_counter(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn an_attempt_that_was_followed_is_not_found_again(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (request, stale) = lapsed(bench, &slot).await?;
    let next = bench.grant(&slot, "b").await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Held { .. });
    bench.store.fail(&next, &failed(&next), WAIT).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Backoff { .. });
    bench.expire(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 3, used: 3, .. });
    ensure_eq!(bench.store.renew(&Lease { attempt: 3, ..stale }).await?, Renewal::Renewed);
    Ok(())
}

async fn an_attempt_that_has_ended_is_not_found_again(bench: &Bench) -> CaseOutcome {
    let (ended, unlocked) = (bench.slot("ended")?, bench.slot("unlocked")?);
    let (late, lease) = lapsed(bench, &ended).await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    let taken = bench.request(&unlocked, "a")?;
    ensure_is!(bench.store.claim(&taken).await?, Claim::Claimed { attempt: 1, .. });
    bench.store.unlock(&unlocked, &audit("unlock")).await?;
    for request in [late, taken] {
        ensure_eq!(bench.store.claim(&request).await?, Claim::Backoff { remaining: Duration::ZERO });
        ensure_eq!(bench.record(&request.slot).await?.mark, Mark::Free);
        ensure_eq!(bench.grant(&request.slot, "b").await?.attempt, 2);
    }
    Ok(())
}

async fn an_attempt_that_was_forgiven_is_not_found_again(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (request, _) = lapsed(bench, &slot).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 2, used: 1, .. });
    Ok(())
}

async fn an_attempt_is_found_again_by_its_own_token_alone(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (request, _) = lapsed(bench, &slot).await?;
    // The same node, started again: what it had begun is over.
    ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { attempt: 2, used: 2, .. });
    bench.probe.wipe().await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 1);
    bench.expire(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 2, used: 2, .. });
    Ok(())
}

/// Each step adds a reason that comes earlier than those already there.
async fn an_attempt_found_again_waits_like_any_other(bench: &Bench) -> CaseOutcome {
    let (older, slot) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    let (request, _) = lapsed(bench, &slot).await?;
    bench.grant(&older, "b").await?;
    let request = ClaimRequest { exclusive: true, ..request };
    ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Paused { .. });
    // After the slot's end it is never run, and waits for nothing.
    let over = ClaimRequest { slot: bench.span("job", -600, -1)?, ..request.clone() };
    ensure_eq!(bench.store.claim(&over).await?, Claim::Closed);
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    bench.store.resume(slot.job(), &audit("resume")).await?;
    let allowed = ClaimRequest { exclusive: false, ..request };
    ensure_is!(bench.store.claim(&allowed).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    Ok(())
}

async fn a_slot_whose_done_marker_was_lost_is_done(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let (own, next) = (bench.request(&slot, "b")?, bench.request(&slot, "c")?);
    let lease = granted(&own, bench.store.claim(&own).await?)?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let marked = take!(bench.store.claim(&next).await?, Claim::Done(mark) => mark);
    bench.expire(&slot).await?;
    let over = ClaimRequest { slot: bench.span("job", -600, -1)?, ..next.clone() };
    ensure_eq!(marked.token, Some(own.token));
    // The verdict does not say under which token.
    let left = DoneMark { token: None, ..marked };
    for request in [next, own, over] {
        ensure_eq!(bench.store.claim(&request).await?, Claim::Done(left.clone()));
    }
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.attempts, known.runs.len()), (Mark::Free, 2, 2), "nothing is written");
    Ok(())
}

async fn a_slot_marked_done_stays_done_without_its_marker(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    bench.expire(&slot).await?;
    let mark = take!(bench.claim(&slot, "a").await?, Claim::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("alice", 0));
    ensure!(is_recent(bench, mark.at), "done at {}", mark.at);
    Ok(())
}

async fn no_lease_is_restored_where_the_done_marker_was_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.complete(&stale, &succeeded(&stale), DONE).await?;
    bench.expire(&slot).await?;
    let mark = take!(bench.store.renew(&holder).await?, Renewal::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("a", 1));
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    Ok(())
}

async fn a_reset_opens_a_slot_whose_done_marker_was_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 1, .. });
    Ok(())
}
