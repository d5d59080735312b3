//! Cases: a reply is lost, and the operation is repeated as the contract allows. The state is as if it had been done once.

use crate::slot::{Mark, Verdict};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, given_back, granted, is_about, node_name, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome};
use crate::store::layer::ChaosFault;
use crate::store::{Applied, Claim, Closing, Intervention, Op, Release, Renewal, Settlement, Store, StoreError};

pub(super) const CASES: &[Case] = &[
    case!("idempotence", a_lost_reply_to_a_claim_burns_no_attempt, I5),
    case!("idempotence", a_lost_reply_to_a_renewal_does_no_harm, I1),
    case!("idempotence", a_lost_reply_to_a_restoration_does_no_harm, I1, I2),
    case!("idempotence", a_lost_reply_to_a_completion_leaves_it_recorded, I3, I7),
    case!("idempotence", a_lost_reply_to_a_failure_begins_one_wait, I4, I5),
    case!("idempotence", a_repeated_failure_spares_the_next_holder, I1, I4),
    case!("idempotence", a_lost_reply_to_a_give_back_refunds_once, I5),
    case!("idempotence", a_repeated_give_back_spares_the_next_holder, I1, I4, I5),
    case!("idempotence", a_lost_reply_to_a_close_keeps_the_verdict, L2),
    case!("idempotence", a_lost_reply_to_a_reset_does_no_harm, I2),
    case!("idempotence", a_lost_reply_to_an_unlock_spares_the_next_holder, I1),
    case!("idempotence", a_lost_reply_to_mark_done_leaves_it_done, I3),
    case!("idempotence", a_lost_reply_to_a_pause_or_resume_does_no_harm),
    case!("idempotence", a_lost_request_changes_nothing, I8),
];

/// The call failed, and may have been applied.
fn unheard<T>(reply: Result<T, StoreError>) -> bool {
    reply.err().is_some_and(|error| error.applied == Applied::Maybe)
}

async fn a_lost_reply_to_a_claim_burns_no_attempt(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::Claim, ChaosFault::LoseReply);
    let request = bench.request(&slot, "a")?;
    ensure!(unheard(store.claim(&request).await));
    let lease = granted(&request, store.claim(&request).await?)?;
    ensure_eq!((lease.attempt, bench.probe.attempts(&slot).await?), (1, Some(1)));
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.runs.len()), (1, 1));
    ensure_eq!(known.runs.first().map(|run| run.claimed_at), Some(lease.claimed_at));
    Ok(())
}

async fn a_lost_reply_to_a_renewal_does_no_harm(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::Renew, ChaosFault::LoseReply);
    ensure!(unheard(store.renew(&lease).await));
    ensure_eq!(store.renew(&lease).await?, Renewal::Renewed);
    let left = take!(bench.record(&slot).await?.mark, Mark::Leased { remaining, .. } => remaining);
    ensure!(is_about(left, LEASE), "{left:?} remain");
    Ok(())
}

async fn a_lost_reply_to_a_restoration_does_no_harm(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    let store = bench.faulty(Op::Renew, ChaosFault::LoseReply);
    ensure!(unheard(store.renew(&lease).await));
    ensure_eq!(store.renew(&lease).await?, Renewal::Renewed);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.runs.len()), (1, 1));
    Ok(())
}

async fn a_lost_reply_to_a_completion_leaves_it_recorded(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::Complete, ChaosFault::LoseReply);
    ensure!(unheard(store.complete(&lease, &succeeded(&lease), DONE).await));
    let before = bench.record(&slot).await?;
    ensure_eq!(store.complete(&lease, &succeeded(&lease), DONE * 2).await?, Settlement::Recorded);
    ensure_eq!(bench.record(&slot).await?, before);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, DONE), "the marker lasts {ttl:?}");
    Ok(())
}

async fn a_lost_reply_to_a_failure_begins_one_wait(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::Fail, ChaosFault::LoseReply);
    ensure!(unheard(store.fail(&lease, &failed(&lease), WAIT).await));
    ensure_eq!(store.fail(&lease, &failed(&lease), WAIT * 2).await?, Release::Released);
    let left = take!(bench.record(&slot).await?.mark, Mark::Backoff { remaining, .. } => remaining);
    ensure!(is_about(left, WAIT), "{left:?} remain: the wait was begun anew");
    bench.expire(&slot).await?;
    ensure_eq!(store.fail(&lease, &failed(&lease), WAIT).await?, Release::Released);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.runs), (Mark::Free, vec![failed(&lease)]));
    Ok(())
}

async fn a_repeated_failure_spares_the_next_holder(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::Fail, ChaosFault::LoseReply);
    ensure!(unheard(store.fail(&lease, &failed(&lease), std::time::Duration::ZERO).await));
    let next = bench.grant(&slot, "b").await?;
    ensure_is!(store.fail(&lease, &failed(&lease), WAIT).await?, Release::Overtaken { .. });
    let token = take!(bench.record(&slot).await?.mark, Mark::Leased { token, .. } => token);
    ensure_eq!(token, next.token);
    Ok(())
}

async fn a_lost_reply_to_a_give_back_refunds_once(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::GiveBack, ChaosFault::LoseReply);
    ensure!(unheard(store.give_back(&lease, &given_back(&lease)).await));
    ensure_eq!(store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.forgiven, known.mark), (1, 1, Mark::Free));
    Ok(())
}

async fn a_repeated_give_back_spares_the_next_holder(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::GiveBack, ChaosFault::LoseReply);
    ensure!(unheard(store.give_back(&lease, &given_back(&lease)).await));
    let next = bench.grant(&slot, "b").await?;
    ensure_is!(store.give_back(&lease, &given_back(&lease)).await?, Release::Overtaken { .. });
    let known = bench.record(&slot).await?;
    let token = take!(known.mark, Mark::Leased { token, .. } => token);
    ensure_eq!((token, known.forgiven), (next.token, 1));
    Ok(())
}

async fn a_lost_reply_to_a_close_keeps_the_verdict(bench: &Bench) -> CaseOutcome {
    let (slot, node) = (bench.span("job", -7_200, -3_600)?, node_name("a")?);
    let store = bench.faulty(Op::Close, ChaosFault::LoseReply);
    ensure!(unheard(store.close(&slot, 3, &node).await));
    ensure_eq!(store.close(&slot, 3, &node).await?, Closing::Already(Verdict::Missed));
    // Whoever asks again can tell from the record that the verdict was its own to announce.
    ensure_eq!(bench.record(&slot).await?.verdict.map(|record| record.by), Some(node));
    Ok(())
}

async fn a_lost_reply_to_a_reset_does_no_harm(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    let store = bench.faulty(Op::Reset, ChaosFault::LoseReply);
    ensure!(unheard(store.reset(&slot, &audit("reset")).await));
    ensure_eq!(store.reset(&slot, &audit("reset")).await?, Intervention::Applied);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.forgiven, known.mark), (1, 1, Mark::Free));
    Ok(())
}

async fn a_lost_reply_to_an_unlock_spares_the_next_holder(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    let store = bench.faulty(Op::Unlock, ChaosFault::LoseReply);
    ensure!(unheard(store.unlock(&slot, &audit("unlock")).await));
    ensure_eq!(store.unlock(&slot, &audit("unlock")).await?, Intervention::Unchanged);
    ensure_eq!(bench.record(&slot).await?.audit.len(), 1);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, .. });
    Ok(())
}

async fn a_lost_reply_to_mark_done_leaves_it_done(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::MarkDone, ChaosFault::LoseReply);
    ensure!(unheard(store.mark_done(&slot, &audit("mark_done"), DONE).await));
    let before = bench.record(&slot).await?;
    ensure_eq!(store.mark_done(&slot, &audit("mark_done"), DONE * 2).await?, Intervention::Unchanged);
    ensure_eq!(bench.record(&slot).await?, before);
    Ok(())
}

async fn a_lost_reply_to_a_pause_or_resume_does_no_harm(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::Pause, ChaosFault::LoseReply);
    ensure!(unheard(store.pause(slot.job(), None, &audit("pause")).await));
    ensure_eq!(store.pause(slot.job(), None, &audit("pause")).await?, Intervention::Applied);
    ensure_eq!(bench.claim(&slot, "a").await?, Claim::Paused { remaining: None });
    let store = bench.faulty(Op::Resume, ChaosFault::LoseReply);
    ensure!(unheard(store.resume(slot.job(), &audit("resume")).await));
    ensure_eq!(store.resume(slot.job(), &audit("resume")).await?, Intervention::Unchanged);
    ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { .. });
    Ok(())
}

async fn a_lost_request_changes_nothing(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let store = bench.faulty(Op::Claim, ChaosFault::LoseRequest);
    let request = bench.request(&slot, "a")?;
    ensure!(unheard(store.claim(&request).await));
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    ensure_is!(store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    Ok(())
}
