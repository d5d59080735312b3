//! Cases: time passes, by the store's clock and nobody else's. No run starts outside its slot. Leases, waits and done markers end by
//! their own TTL; the records stay.

use std::time::Duration;

use crate::slot::{Mark, Verdict};
use crate::store::conformance::bench::{
    DONE, WAIT, audit, case, failed, granted, is_about, node_name, patiently, succeeded,
};
use crate::store::conformance::{Bench, Case, Outcome};
use crate::store::{Claim, ClaimRequest, Closing};

pub(super) const CASES: &[Case] = &[
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

async fn a_lapsed_lease_lets_the_next_one_in(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Held { .. });
    bench.expire(&slot).await?;
    ensure_is!(bench.claim(&slot, "b").await?, Claim::Claimed { attempt: 2, used: 2, .. });
    Ok(())
}

async fn a_lapsed_lease_blocks_no_later_slot(bench: &Bench) -> Outcome {
    let (older, slot) = (bench.span("job", -900, 7_200)?, bench.slot("job")?);
    bench.grant(&older, "a").await?;
    bench.expire(&older).await?;
    let request = ClaimRequest { exclusive: true, ..bench.request(&slot, "b")? };
    ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { .. });
    Ok(())
}

async fn a_wait_that_is_over_lets_the_next_one_in(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    bench.store.fail(&lease, &failed(&lease), WAIT).await?;
    bench.expire(&slot).await?;
    ensure_eq!(bench.grant(&slot, "b").await?.attempt, 2);
    Ok(())
}

/// The one case that takes real time: 200 ms, and then as long as the store lets a lease stand beyond its TTL.
async fn a_lease_lapses_by_the_stores_own_clock(bench: &Bench) -> Outcome {
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

async fn the_records_outlive_the_marker(bench: &Bench) -> Outcome {
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

async fn nothing_is_shown_at_a_key_that_ran_out(bench: &Bench) -> Outcome {
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

async fn a_slot_that_has_not_begun_is_early(bench: &Bench) -> Outcome {
    let slot = bench.span("job", 3_600, 7_200)?;
    let remaining = take!(bench.claim(&slot, "a").await?, Claim::Early { remaining } => remaining);
    ensure!(is_about(remaining, Duration::from_secs(3_600)), "{remaining:?} remain");
    ensure_eq!(bench.probe.attempts(&slot).await?, None);
    Ok(())
}

async fn a_slot_that_is_over_is_closed(bench: &Bench) -> Outcome {
    for slot in [bench.span("job", -7_200, -3_600)?, bench.span("job", -60, -1)?, bench.span("job", -2, 0)?] {
        ensure_eq!(bench.claim(&slot, "a").await?, Claim::Closed, "{slot}");
        ensure_eq!(bench.probe.attempts(&slot).await?, None);
    }
    Ok(())
}

async fn a_slot_is_open_from_its_start_to_its_end(bench: &Bench) -> Outcome {
    for (job, start, end) in [("starts", 0, 3_600), ("ends", -86_400, 60), ("short", -1, 60)] {
        let slot = bench.span(job, start, end)?;
        ensure_is!(bench.claim(&slot, "a").await?, Claim::Claimed { .. });
    }
    Ok(())
}

async fn done_is_told_before_early_and_closed(bench: &Bench) -> Outcome {
    for slot in [bench.span("early", 3_600, 7_200)?, bench.span("closed", -7_200, -3_600)?] {
        bench.store.mark_done(&slot, &audit("mark_done"), DONE).await?;
        ensure_is!(bench.claim(&slot, "a").await?, Claim::Done(_));
    }
    Ok(())
}

async fn a_slot_is_not_closed_before_its_end(bench: &Bench) -> Outcome {
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
