//! Cases: a holder makes its lease last, and takes nothing from anybody else (`renew::`); time passes, by the store's clock and nobody
//! else's: no run starts outside its slot (`window::`), leases, waits and done markers end by their own TTL and the records stay
//! (`expiry::`).

use std::time::Duration;

use crate::slot::{Lease, Mark, Verdict};
use crate::store::conformance::bench::{
    DONE, LEASE, WAIT, audit, case, failed, given_back, granted, is_about, node_name, patiently, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome};
use crate::store::{Claim, ClaimRequest, Closing, Release, Renewal};

pub(super) const CASES: &[Case] = &[
    case!("renew", a_renewal_lasts_for_the_ttl_from_now_on, I1),
    case!("renew", a_renewal_never_shortens, I1),
    case!("renew", a_lapsed_lease_is_set_again_while_nobody_followed, I1),
    case!("renew", a_lease_is_restored_in_a_store_that_restarted_empty, I1, I2),
    case!("renew", a_restored_lease_keeps_the_others_out, I1, I5),
    case!("renew", a_lease_that_was_followed_is_lost, I1, I4),
    case!("renew", a_lease_followed_by_an_attempt_that_ended_is_lost, I4),
    case!("renew", a_lease_followed_by_a_smaller_number_that_ended_is_lost, I4),
    case!("renew", a_late_copy_of_a_claim_does_not_hide_who_came_between, I4),
    case!("renew", a_settled_lease_is_not_restored, I4),
    case!("renew", after_a_wipe_the_one_who_claimed_anew_keeps_the_slot, I1, I4),
    case!("renew", a_done_slot_says_so, I3),
    case!("renew", a_run_may_go_on_past_the_end_of_its_slot, I6),
    case!("expiry", a_lapsed_lease_lets_the_next_one_in, L1),
    case!("expiry", a_lapsed_lease_blocks_no_later_slot, L1),
    case!("expiry", a_wait_that_is_over_lets_the_next_one_in, L1),
    case!("expiry", a_lease_lapses_by_the_stores_own_clock, I1, L1),
    case!("expiry", the_records_outlive_the_marker, L2),
    case!("expiry", nothing_is_shown_at_a_key_that_ran_out, I1),
    case!("window", a_slot_that_has_not_begun_is_early, I6),
    case!("window", a_slot_that_is_over_is_closed, I6),
    case!("window", a_slot_is_open_from_its_start_to_its_end, I6),
    case!("window", done_is_told_before_early_and_closed, I3),
    case!("window", a_slot_is_not_closed_before_its_end, L2),
];

async fn a_renewal_lasts_for_the_ttl_from_now_on(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let longer = Lease { ttl: LEASE * 2, ..lease };
    ensure_eq!(bench.another().await?.renew(&longer).await?, Renewal::Renewed);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE * 2), "the lease lasts {ttl:?}");
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn a_renewal_never_shortens(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let shorter = Lease { ttl: Duration::from_secs(1), ..lease };
    ensure_eq!(bench.store.renew(&shorter).await?, Renewal::Renewed);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    Ok(())
}

async fn a_lapsed_lease_is_set_again_while_nobody_followed(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Renewed);
    let known = bench.record(&slot).await?;
    ensure_eq!((known.attempts, known.runs.len()), (1, 1));
    Ok(())
}

async fn a_lease_is_restored_in_a_store_that_restarted_empty(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let first = bench.grant(&slot, "a").await?;
    bench.store.fail(&first, &failed(&first), Duration::ZERO).await?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    let known = bench.record(&slot).await?;
    let (by, token) = take!(&known.mark, Mark::Leased { by, token, .. } => (by, token));
    ensure_eq!((by.node.as_str(), by.attempt, *token), ("a", 2, lease.token));
    ensure_eq!((known.attempts, bench.probe.attempts(&slot).await?), (2, Some(2)));
    let run = take!(known.runs.as_slice(), [run] => run);
    ensure_eq!((run.attempt, run.token, run.claimed_at), (2, lease.token, lease.claimed_at));
    ensure_eq!((run.trigger, run.outcome), (lease.trigger, None));
    Ok(())
}

async fn a_restored_lease_keeps_the_others_out(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

async fn a_lease_that_was_followed_is_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    let to = take!(bench.store.renew(&stale).await?, Renewal::Lost { to: Some(to) } => to);
    ensure_eq!((to.node.as_str(), to.attempt), ("b", 2));
    let known = bench.record(&slot).await?;
    let token = take!(known.mark, Mark::Leased { token, .. } => token);
    ensure_eq!(token, holder.token, "the stale renewal took the lease");
    ensure_eq!(bench.store.renew(&holder).await?, Renewal::Renewed);
    Ok(())
}

async fn a_lease_followed_by_an_attempt_that_ended_is_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.fail(&holder, &failed(&holder), WAIT).await?;
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None });
    ensure_is!(bench.record(&slot).await?.mark, Mark::Backoff { .. });
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None });
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    Ok(())
}

async fn a_lease_followed_by_a_smaller_number_that_ended_is_lost(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let stale = bench.grant(&slot, "b").await?;
    // The store loses its data, and numbers begin anew.
    bench.probe.wipe().await?;
    bench.after(stale.claimed_at).await?;
    let next = bench.grant(&slot, "c").await?;
    ensure_eq!((stale.attempt, next.attempt), (2, 1));
    ensure_eq!(bench.store.fail(&next, &failed(&next), Duration::ZERO).await?, Release::Released);
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None });
    Ok(())
}

async fn a_late_copy_of_a_claim_does_not_hide_who_came_between(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let request = bench.request(&slot, "a")?;
    let stale = granted(&request, bench.store.claim(&request).await?)?;
    // The store loses its data, somebody else comes and goes, and then a copy of the claim arrives.
    bench.probe.wipe().await?;
    bench.after(stale.claimed_at).await?;
    let next = bench.grant(&slot, "b").await?;
    ensure_eq!((stale.attempt, next.attempt), (1, 1));
    ensure_eq!(bench.store.fail(&next, &failed(&next), Duration::ZERO).await?, Release::Released);
    let late = granted(&request, bench.store.claim(&request).await?)?;
    ensure_eq!(late.attempt, 2);
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None });
    ensure_eq!(bench.store.renew(&late).await?, Renewal::Renewed);
    let by = take!(bench.store.fail(&stale, &failed(&stale), WAIT).await?, Release::Overtaken { by } => by);
    ensure_eq!((by.node.as_str(), by.attempt), ("b", 1));
    Ok(())
}

async fn a_settled_lease_is_not_restored(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let waiting = bench.grant(&slot, "a").await?;
    bench.store.fail(&waiting, &failed(&waiting), WAIT).await?;
    ensure_eq!(bench.store.renew(&waiting).await?, Renewal::Lost { to: None });
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&waiting).await?, Renewal::Lost { to: None });
    let returned = bench.grant(&slot, "a").await?;
    bench.store.give_back(&returned, &given_back(&returned)).await?;
    ensure_eq!(bench.store.renew(&returned).await?, Renewal::Lost { to: None });
    let unlocked = bench.grant(&slot, "a").await?;
    bench.store.unlock(&slot, &audit("unlock")).await?;
    ensure_eq!(bench.store.renew(&unlocked).await?, Renewal::Lost { to: None });
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    Ok(())
}

async fn after_a_wipe_the_one_who_claimed_anew_keeps_the_slot(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    let holder = bench.grant(&slot, "b").await?;
    ensure_eq!((stale.attempt, holder.attempt), (1, 1));
    let to = take!(bench.store.renew(&stale).await?, Renewal::Lost { to: Some(to) } => to);
    ensure_eq!(to.node.as_str(), "b");
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None });
    ensure_eq!(bench.store.renew(&holder).await?, Renewal::Restored);
    bench.store.fail(&holder, &failed(&holder), Duration::ZERO).await?;
    ensure_eq!(bench.store.renew(&stale).await?, Renewal::Lost { to: None }, "also once the other has ended");
    Ok(())
}

async fn a_done_slot_says_so(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.complete(&holder, &succeeded(&holder), DONE).await?;
    for lease in [&stale, &holder] {
        let mark = take!(bench.store.renew(lease).await?, Renewal::Done(mark) => mark);
        ensure_eq!((mark.by.node.as_str(), mark.by.attempt, mark.token), ("b", 2, Some(holder.token)));
    }
    ensure_is!(bench.record(&slot).await?.mark, Mark::Done(_));
    Ok(())
}

async fn a_run_may_go_on_past_the_end_of_its_slot(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let over = Lease { slot: bench.span("job", -600, -1)?, ..lease };
    ensure_eq!(bench.store.renew(&over).await?, Renewal::Renewed);
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&over).await?, Renewal::Restored);
    Ok(())
}

async fn a_lapsed_lease_lets_the_next_one_in(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    bench.expire(&slot).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 2, .. });
    Ok(())
}

async fn a_lapsed_lease_blocks_no_later_slot(bench: &Bench) -> CaseOutcome {
    let (older, slot) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    bench.grant(&older, "a").await?;
    bench.expire(&older).await?;
    let request = ClaimRequest { exclusive: true, ..bench.request(&slot, "b")? };
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { .. });
    Ok(())
}

async fn a_wait_that_is_over_lets_the_next_one_in(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

/// The one case that takes real time: 200 ms, and then as long as the store lets a lease stand beyond its TTL.
async fn a_lease_lapses_by_the_stores_own_clock(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let ttl = Duration::from_millis(200);
    let short = ClaimRequest { lease_ttl: ttl, ..bench.request(&slot, "a")? };
    let lease = granted(&short, bench.store.claim(&short).await?)?;
    let request = bench.request(&slot, "b")?;
    let asked = patiently(bench, async || match bench.store.claim(&request).await? {
        Claim::Held { .. } => Ok(None),
        other => Ok(Some(granted(&request, other)?)),
    });
    let next = asked.await?;
    ensure_eq!(next.attempt, 2);
    let stood = crate::clock::between(lease.claimed_at, next.claimed_at);
    ensure!(stood >= ttl, "a lease of {ttl:?} was given away after {stood:?}");
    Ok(())
}

async fn the_records_outlive_the_marker(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    bench.expire(&slot).await?;
    let known = bench.record(&slot).await?;
    ensure_eq!((known.mark, known.attempts), (Mark::Free, 1));
    ensure_eq!(known.runs, vec![succeeded(&lease)]);
    ensure_eq!(known.verdict.map(|record| record.verdict), Some(Verdict::Done));
    Ok(())
}

async fn nothing_is_shown_at_a_key_that_ran_out(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.record(&slot).await?.mark, Mark::Free);
    ensure_eq!(bench.probe.mark_ttl(&slot).await?, None);
    bench.store.renew(&lease).await?;
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, lease.ttl), "the lease lasts {ttl:?}");
    Ok(())
}

async fn a_slot_that_has_not_begun_is_early(bench: &Bench) -> CaseOutcome {
    let slot = bench.span("job", 3_600, 7_200)?;
    let remaining = take!(bench.claim(&slot, "a").await?, Claim::Early { remaining } => remaining);
    ensure!(is_about(remaining, Duration::from_secs(3_600)), "{remaining:?} remain");
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn a_slot_that_is_over_is_closed(bench: &Bench) -> CaseOutcome {
    for slot in [bench.span("job", -7_200, -3_600)?, bench.span("job", -60, -1)?, bench.span("job", -2, 0)?] {
        ensure_eq!(bench.claim(&slot, "a").await?, Claim::Closed, "{slot}");
        ensure_eq!(bench.probe.attempts(&slot).await?, None);
    }
    Ok(())
}

async fn a_slot_is_open_from_its_start_to_its_end(bench: &Bench) -> CaseOutcome {
    for (job, start, end) in [("starts", 0, 3_600), ("ends", -86_400, 60), ("short", -1, 60)] {
        let slot = bench.span(job, start, end)?;
        ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { .. });
    }
    Ok(())
}

async fn done_is_told_before_early_and_closed(bench: &Bench) -> CaseOutcome {
    for slot in [bench.span("early", 3_600, 7_200)?, bench.span("closed", -7_200, -3_600)?] {
        bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
        ensure_is!(bench.claim(&slot, "a").await?, Claim::Done(_));
    }
    Ok(())
}

async fn a_slot_is_not_closed_before_its_end(bench: &Bench) -> CaseOutcome {
    let node = node_name("a")?;
    for (job, start) in [("now", -600), ("next", 1_800)] {
        let slot = bench.span(job, start, 3_600)?;
        let remaining = take!(
            bench.store.close(&slot, 3, &node).await?, Closing::Open { remaining } => remaining
        );
        ensure!(is_about(remaining, Duration::from_secs(3_600)), "{remaining:?} remain");
        ensure_eq!(bench.record(&slot).await?.verdict, None);
    }
    Ok(())
}
