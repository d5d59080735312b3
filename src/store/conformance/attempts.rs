//! Cases: the count of attempts. It rises with each grant, for all nodes together, and never falls.

use std::time::Duration;

use crate::job::MAX_ATTEMPTS_LIMIT;
use crate::slot::{Lease, Outcome as Ended};
use crate::store::conformance::bench::{DONE, case, failed, given_back, granted, succeeded};
use crate::store::conformance::{Bench, Case, Outcome};
use crate::store::{Claim, ClaimRequest, Renewal};

pub(super) const CASES: &[Case] = &[
    case!("attempts", numbers_rise_over_all_nodes_and_connections, I2, I5),
    case!("attempts", a_crashed_attempt_counts, I2, I5),
    case!("attempts", every_grant_has_its_own_record, I2, L2),
    case!("attempts", a_lost_counter_goes_on_from_the_records, I2, I5),
    case!("attempts", a_stale_record_in_an_empty_store_keeps_the_numbers_rising, I2),
    case!("attempts", a_restored_lease_keeps_the_numbers_rising, I2),
    case!("attempts", no_number_beyond_the_fence_is_granted, I2, I5),
    case!("attempts", fences_rise_with_each_grant, I2),
];

async fn numbers_rise_over_all_nodes_and_connections(bench: &Bench) -> Outcome {
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

async fn a_crashed_attempt_counts(bench: &Bench) -> Outcome {
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

async fn every_grant_has_its_own_record(bench: &Bench) -> Outcome {
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

async fn a_lost_counter_goes_on_from_the_records(bench: &Bench) -> Outcome {
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

async fn a_stale_record_in_an_empty_store_keeps_the_numbers_rising(bench: &Bench) -> Outcome {
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

async fn a_restored_lease_keeps_the_numbers_rising(bench: &Bench) -> Outcome {
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
async fn no_number_beyond_the_fence_is_granted(bench: &Bench) -> Outcome {
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

async fn fences_rise_with_each_grant(bench: &Bench) -> Outcome {
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
