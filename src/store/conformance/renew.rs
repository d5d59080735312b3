//! Cases: a holder makes its lease last, and takes nothing from anybody else.

use std::time::Duration;

use crate::slot::{Lease, Mark};
use crate::store::conformance::bench::{DONE, LEASE, WAIT, audit, case, failed, given_back, is_about, succeeded};
use crate::store::conformance::{Bench, Case, Outcome};
use crate::store::{Claim, Release, Renewal};

pub(super) const CASES: &[Case] = &[
    case!("renew", a_renewal_lasts_for_the_ttl_from_now_on, I1),
    case!("renew", a_renewal_never_shortens, I1),
    case!("renew", a_lapsed_lease_is_set_again_while_nobody_followed, I1),
    case!("renew", a_lease_is_restored_in_a_store_that_restarted_empty, I1, I2),
    case!("renew", a_restored_lease_keeps_the_others_out, I1, I5),
    case!("renew", a_lease_that_was_followed_is_lost, I1, I4),
    case!("renew", a_lease_followed_by_an_attempt_that_ended_is_lost, I4),
    case!("renew", a_lease_followed_by_a_smaller_number_that_ended_is_lost, I4),
    case!("renew", a_settled_lease_is_not_restored, I4),
    case!("renew", after_a_wipe_the_one_who_claimed_anew_keeps_the_slot, I1, I4),
    case!("renew", a_done_slot_says_so, I3),
    case!("renew", a_run_may_go_on_past_the_end_of_its_slot, I6),
];

async fn a_renewal_lasts_for_the_ttl_from_now_on(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let longer = Lease { ttl: LEASE * 2, ..lease };
    ensure_eq!(bench.another().await?.renew(&longer).await?, Renewal::Renewed);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE * 2), "the lease lasts {ttl:?}");
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}

async fn a_renewal_never_shortens(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let shorter = Lease { ttl: Duration::from_secs(1), ..lease };
    ensure_eq!(bench.store.renew(&shorter).await?, Renewal::Renewed);
    let ttl = bench.probe.mark_ttl(&slot).await?.unwrap_or_default();
    ensure!(is_about(ttl, LEASE), "the lease lasts {ttl:?}");
    Ok(())
}

async fn a_lapsed_lease_is_set_again_while_nobody_followed(bench: &Bench) -> Outcome {
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

async fn a_lease_is_restored_in_a_store_that_restarted_empty(bench: &Bench) -> Outcome {
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

async fn a_restored_lease_keeps_the_others_out(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.probe.wipe().await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

async fn a_lease_that_was_followed_is_lost(bench: &Bench) -> Outcome {
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

async fn a_lease_followed_by_an_attempt_that_ended_is_lost(bench: &Bench) -> Outcome {
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

async fn a_lease_followed_by_a_smaller_number_that_ended_is_lost(bench: &Bench) -> Outcome {
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

async fn a_settled_lease_is_not_restored(bench: &Bench) -> Outcome {
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

async fn after_a_wipe_the_one_who_claimed_anew_keeps_the_slot(bench: &Bench) -> Outcome {
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

async fn a_done_slot_says_so(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let stale = bench.grant(&slot, "a").await?;
    bench.expire(&slot).await?;
    let holder = bench.grant(&slot, "b").await?;
    bench.store.complete(&holder, &succeeded(&holder), DONE).await?;
    for lease in [&stale, &holder] {
        let mark = take!(bench.store.renew(lease).await?, Renewal::Done(mark) => mark);
        ensure_eq!((mark.by.node.as_str(), mark.by.attempt), ("b", 2));
    }
    ensure_is!(bench.record(&slot).await?.mark, Mark::Done(_));
    Ok(())
}

async fn a_run_may_go_on_past_the_end_of_its_slot(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let over = Lease { slot: bench.span("job", -600, -1)?, ..lease };
    ensure_eq!(bench.store.renew(&over).await?, Renewal::Renewed);
    bench.expire(&slot).await?;
    ensure_eq!(bench.store.renew(&over).await?, Renewal::Restored);
    Ok(())
}
