//! Cases: slots of one job beside each other. An exclusive claim is granted only while no other slot of the job is leased.

use std::time::Duration;

use futures_util::future::join;

use crate::slot::{Lease, Slot};
use crate::store::conformance::bench::{DONE, WAIT, audit, case, failed, given_back, granted, succeeded};
use crate::store::conformance::{Bench, Case, Failure, Outcome};
use crate::store::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal};

pub(super) const CASES: &[Case] = &[
    case!("beside", a_newer_slot_blocks_an_exclusive_claim_too),
    case!("beside", the_oldest_of_several_slots_is_named),
    case!("beside", an_exclusive_lease_does_not_block_a_claim_that_is_not),
    case!("beside", a_lease_that_was_settled_blocks_nobody, L1),
    case!("beside", a_lease_that_was_taken_away_blocks_nobody, L1),
    case!("beside", a_lease_that_was_restored_blocks_again),
    case!("beside", of_two_exclusive_claims_at_once_one_is_granted),
    case!("beside", a_grant_that_is_heard_of_after_the_slots_end_is_given_back, I5, L1),
    case!("beside", a_lapsed_grant_that_is_heard_of_after_the_slots_end_is_given_back, I5),
];

fn exclusive(bench: &Bench, slot: &Slot) -> Result<ClaimRequest, Failure> {
    Ok(ClaimRequest { exclusive: true, ..bench.request(slot, "b")? })
}

/// Two slots of a job, the older one first; both are open.
fn two(bench: &Bench, job: &str) -> Result<[Slot; 2], Failure> {
    Ok([bench.span(job, -900, 7_200)?, bench.slot(job)?])
}

async fn a_newer_slot_blocks_an_exclusive_claim_too(bench: &Bench) -> Outcome {
    let [older, newer] = two(bench, "job")?;
    bench.grant(&newer, "a").await?;
    let key = take!(bench.store.claim(&exclusive(bench, &older)?).await?, Claim::Blocked { key, .. } => key);
    ensure_eq!(key, newer.key());
    ensure_eq!(bench.probe.attempts(&older).await?, None);
    ensure_is!(bench.store.claim(&exclusive(bench, &bench.slot("another")?)?).await?, Claim::Claimed { .. });
    Ok(())
}

async fn the_oldest_of_several_slots_is_named(bench: &Bench) -> Outcome {
    // An hour, a minute and a second of it: the shorter key is the older slot.
    let hour = bench.span("job", -86_400, 7_200)?;
    for start in [-600, -86_400, -660, -3_601] {
        bench.grant(&bench.span("job", start, 7_200)?, "a").await?;
    }
    let request = exclusive(bench, &bench.span("job", -300, 7_200)?)?;
    let key = take!(bench.another().await?.claim(&request).await?, Claim::Blocked { key, .. } => key);
    ensure_eq!(key, hour.key());
    Ok(())
}

async fn an_exclusive_lease_does_not_block_a_claim_that_is_not(bench: &Bench) -> Outcome {
    let [older, newer] = two(bench, "job")?;
    ensure_is!(bench.store.claim(&exclusive(bench, &older)?).await?, Claim::Claimed { .. });
    ensure_is!(bench.claim(&newer, "a").await?, Claim::Claimed { .. });
    Ok(())
}

async fn a_lease_that_was_settled_blocks_nobody(bench: &Bench) -> Outcome {
    for job in ["failed", "waits", "given-back", "done"] {
        let [older, newer] = two(bench, job)?;
        let (lease, request) = (bench.grant(&older, "a").await?, exclusive(bench, &newer)?);
        ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
        match job {
            "failed" => drop(bench.store.fail(&lease, &failed(&lease), Duration::ZERO).await?),
            "waits" => drop(bench.store.fail(&lease, &failed(&lease), WAIT).await?),
            "given-back" => drop(bench.store.give_back(&lease, &given_back(&lease)).await?),
            _ => drop(bench.store.complete(&lease, &succeeded(&lease), DONE).await?),
        }
        ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    }
    Ok(())
}

async fn a_lease_that_was_taken_away_blocks_nobody(bench: &Bench) -> Outcome {
    let [older, newer] = two(bench, "job")?;
    let (lease, request) = (bench.grant(&older, "a").await?, exclusive(bench, &newer)?);
    ensure_is!(bench.store.claim(&request).await?, Claim::Blocked { .. });
    ensure_eq!(bench.store.unlock(&older, &audit("unlock")).await?, Intervention::Applied);
    ensure_is!(bench.store.renew(&lease).await?, Renewal::Lost { .. });
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
    Ok(())
}

async fn a_lease_that_was_restored_blocks_again(bench: &Bench) -> Outcome {
    let [older, newer] = two(bench, "job")?;
    let lease: Lease = bench.grant(&older, "a").await?;
    bench.expire(&older).await?;
    ensure_eq!(bench.store.renew(&lease).await?, Renewal::Restored);
    ensure_is!(bench.store.claim(&exclusive(bench, &newer)?).await?, Claim::Blocked { .. });
    Ok(())
}

async fn of_two_exclusive_claims_at_once_one_is_granted(bench: &Bench) -> Outcome {
    let (here, there) = (bench.another().await?, bench.another().await?);
    for round in 0..20 {
        let [older, newer] = two(bench, &format!("job-{round}"))?;
        let (one, other) = (exclusive(bench, &older)?, exclusive(bench, &newer)?);
        let (one, other) = join(here.claim(&one), there.claim(&other)).await;
        let granted = [one?, other?].iter().filter(|claim| matches!(claim, Claim::Claimed { .. })).count();
        ensure_eq!(granted, 1, "round {round}");
    }
    Ok(())
}

/// The answer to a claim was lost, and the slot is over when its sender reaches the store again.
async fn a_grant_that_is_heard_of_after_the_slots_end_is_given_back(bench: &Bench) -> Outcome {
    let (slot, next) = (bench.slot("job")?, bench.span("job", -60, 7_200)?);
    let request = bench.request(&slot, "a")?;
    granted(&request, bench.store.claim(&request).await?)?;
    let blocked = exclusive(bench, &next)?;
    ensure_is!(bench.store.claim(&blocked).await?, Claim::Blocked { .. });
    let late = ClaimRequest { slot: bench.span("job", -600, -60)?, ..request };
    let claim = bench.another().await?.claim(&late).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    let lease = granted(&late, claim)?;
    ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
    ensure_is!(bench.store.claim(&blocked).await?, Claim::Claimed { attempt: 1, .. });
    ensure_eq!(bench.record(&slot).await?.forgiven, 1);
    ensure_eq!(bench.store.claim(&ClaimRequest { token: bench.token(), ..late }).await?, Claim::Closed);
    Ok(())
}

async fn a_lapsed_grant_that_is_heard_of_after_the_slots_end_is_given_back(bench: &Bench) -> Outcome {
    let (slot, node) = (bench.slot("job")?, crate::store::conformance::bench::node_name("b")?);
    let request = bench.request(&slot, "a")?;
    granted(&request, bench.store.claim(&request).await?)?;
    bench.expire(&slot).await?;
    let late = ClaimRequest { slot: bench.span("job", -600, -60)?, ..request };
    let claim = bench.store.claim(&late).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    let lease = granted(&late, claim)?;
    ensure_eq!(bench.store.give_back(&lease, &given_back(&lease)).await?, Release::Released);
    ensure_eq!(bench.record(&slot).await?.forgiven, 1);
    let verdict = bench.store.close(&late.slot, 1, &node).await?;
    ensure_eq!(verdict, Closing::First(crate::slot::Verdict::Missed), "no attempt was used up");
    Ok(())
}
