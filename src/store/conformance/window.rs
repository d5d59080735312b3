//! Cases: no run starts outside its slot. The store's clock is the judge, and nobody else's.

use std::time::Duration;

use crate::store::conformance::bench::{DONE, audit, is_about};
use crate::store::conformance::case::case;
use crate::store::conformance::{Bench, Case, Outcome};
use crate::store::{Claim, Closing};

pub(super) const CASES: &[Case] = &[
    case!("window", a_slot_that_has_not_begun_is_early, I6),
    case!("window", a_slot_that_is_over_is_closed, I6),
    case!("window", a_slot_is_open_from_its_start_to_its_end, I6),
    case!("window", done_is_told_before_early_and_closed, I3),
    case!("window", a_slot_is_not_closed_before_its_end, L2),
];

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
    let node = crate::store::conformance::bench::node_name("a")?;
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
