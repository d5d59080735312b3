//! Cases: what a claim finds again. A grant whose answer and whose lease were both lost is the same attempt still, until
//! somebody has followed it or it has ended; a slot is done by its verdict where the marker is gone.

use std::time::Duration;

use crate::slot::{Lease, Mark, Slot};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, granted, is_about, is_recent, succeeded,
};
use crate::store::conformance::{Bench, Case, Failure, Outcome};
use crate::store::layer::Fault;
use crate::store::{Applied, Claim, ClaimRequest, Intervention, Op, Renewal, Store};

pub(super) const CASES: &[Case] = &[
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

/// A request that was granted as attempt 1 and whose lease has lapsed, and what it was granted.
async fn lapsed(bench: &Bench, slot: &Slot) -> Result<(ClaimRequest, Lease), Failure> {
    let request = bench.request(slot, "a")?;
    let lease = granted(&request, bench.store.claim(&request).await?)?;
    bench.expire(slot).await?;
    Ok((request, lease))
}

async fn a_claim_unheard_until_its_lease_had_lapsed_burns_no_attempt(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::Claim, Fault::LoseReply);
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

async fn the_last_attempt_is_found_again_too(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let only = ClaimRequest { max_attempts: 1, ..bench.request(&slot, "a")? };
    ensure_is!(bench.store.claim(&only).await?, Claim::Claimed { attempt: 1, .. });
    bench.expire(&slot).await?;
    let other = ClaimRequest { max_attempts: 1, ..bench.request(&slot, "b")? };
    ensure_eq!(bench.store.claim(&other).await?, Claim::Exhausted { used: 1 });
    ensure_is!(bench.store.claim(&only).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    Ok(())
}

async fn an_attempt_found_again_keeps_the_others_out(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let (request, lease) = lapsed(bench, &slot).await?;
    ensure_eq!(granted(&request, bench.store.claim(&request).await?)?, lease);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Renewed);
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 2, .. });
    Ok(())
}

async fn an_attempt_is_found_again_where_the_counter_was_lost(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let (request, _) = lapsed(bench, &slot).await?;
    bench.probe.forget_counter(&slot).await?;
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, used: 1, .. });
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn an_attempt_that_was_followed_is_not_found_again(bench: &Bench) -> Outcome {
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

async fn an_attempt_that_has_ended_is_not_found_again(bench: &Bench) -> Outcome {
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

async fn an_attempt_that_was_forgiven_is_not_found_again(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let (request, _) = lapsed(bench, &slot).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 2, used: 1, .. });
    Ok(())
}

async fn an_attempt_is_found_again_by_its_own_token_alone(bench: &Bench) -> Outcome {
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
async fn an_attempt_found_again_waits_like_any_other(bench: &Bench) -> Outcome {
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

async fn a_slot_whose_done_marker_was_lost_is_done(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let (own, next) = (bench.request(&slot, "b")?, bench.request(&slot, "c")?);
    let lease = granted(&own, bench.store.claim(&own).await?)?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    let marked = take!(bench.store.claim(&next).await?, Claim::Done(mark) => mark);
    bench.expire(&slot).await?;
    let over = ClaimRequest { slot: bench.span("job", -600, -1)?, ..next.clone() };
    for request in [next, own, over] {
        ensure_eq!(bench.store.claim(&request).await?, Claim::Done(marked.clone()));
    }
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.attempts, known.runs.len()), (Mark::Free, 2, 2), "nothing is written");
    Ok(())
}

async fn a_slot_marked_done_stays_done_without_its_marker(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
    bench.expire(&slot).await?;
    let mark = take!(bench.claim(&slot, "a").await?, Claim::Done(mark) => mark);
    ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("alice", 0));
    ensure!(is_recent(bench, mark.at), "done at {}", mark.at);
    Ok(())
}

async fn no_lease_is_restored_where_the_done_marker_was_lost(bench: &Bench) -> Outcome {
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

async fn a_reset_opens_a_slot_whose_done_marker_was_lost(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 1, .. });
    Ok(())
}
