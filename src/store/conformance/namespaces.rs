//! Cases: clusters that share one store never touch (I9).

use std::time::Duration;

use crate::slot::{Mark, SlotRecord};
use crate::store::conformance::bench::{DONE, audit, case, granted, job_name, node_name, record, succeeded};
use crate::store::conformance::{Bench, Case, Outcome};
use crate::store::{Claim, Closing, WakeKind};

pub(super) const CASES: &[Case] = &[
    case!("namespaces", a_slot_held_in_one_is_free_in_another, I9),
    case!("namespaces", done_in_one_is_not_done_in_another, I9),
    case!("namespaces", a_pause_holds_in_one_alone, I9),
    case!("namespaces", the_registry_of_one_is_unknown_to_another, I9),
    case!("namespaces", one_lease_is_nothing_in_another, I9),
    case!("namespaces", wiping_one_leaves_the_other, I9),
    case!("namespaces", hints_stay_in_their_namespace, I9),
];

async fn a_slot_held_in_one_is_free_in_another(bench: &Bench) -> Outcome {
    let (beside, probe) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    ensure_eq!(record(&*beside, &slot).await?, SlotRecord::untouched(slot.clone()));
    ensure_eq!(probe.attempts(&slot).await?, None);
    let claim = beside.claim(&bench.request(&slot, "b")?).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    Ok(())
}

async fn done_in_one_is_not_done_in_another(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_is!(beside.close(&over, 3, &node_name("b")?).await?, Closing::First(_));
    ensure_is!(beside.claim(&bench.request(&slot, "b")?).await?, Claim::Claimed { .. });
    beside.unlock(&slot, &audit("unlock")).await?;
    beside.reset(&slot, &audit("reset")).await?;
    let known = bench.record(&slot).await?;
    ensure_is!(known.mark, Mark::Done(_));
    ensure_eq!(known.audit, Vec::new());
    Ok(())
}

async fn a_pause_holds_in_one_alone(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_eq!(beside.pauses().await?, Vec::new());
    ensure_is!(beside.claim(&bench.request(&slot, "b")?).await?, Claim::Claimed { .. });
    Ok(())
}

async fn the_registry_of_one_is_unknown_to_another(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    let entry = crate::store::JobEntry {
        name: job_name("push")?,
        schedule: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        origin: crate::store::JobOrigin::File,
        first_seen: bench.began,
    };
    bench.store.register(&[entry]).await?;
    ensure_eq!(beside.jobs().await?, Vec::new());
    ensure_eq!(beside.nodes().await?.1, Vec::new());
    Ok(())
}

async fn one_lease_is_nothing_in_another(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let request = bench.request(&slot, "b")?;
    let other = granted(&request, beside.claim(&request).await?)?;
    beside.fail(&other, &crate::store::conformance::bench::failed(&other), Duration::ZERO).await?;
    let token = take!(bench.record(&slot).await?.mark, Mark::Leased { token, .. } => token);
    ensure_eq!(token, lease.token);
    Ok(())
}

async fn wiping_one_leaves_the_other(bench: &Bench) -> Outcome {
    let (beside, probe) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    beside.claim(&bench.request(&slot, "b")?).await?;
    probe.wipe().await?;
    ensure_is!(bench.record(&slot).await?.mark, Mark::Leased { .. });
    Ok(())
}

async fn hints_stay_in_their_namespace(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    // Another connection: one that does not push may still tell itself of its own changes.
    let listener = bench.another().await?;
    let (mut here, mut there) = (listener.subscribe(), beside.subscribe());
    crate::store::conformance::wake::until_told(bench, &mut here, "here", WakeKind::Done).await?;
    // Whatever the other side would be told was published before the hint that was just heard.
    while let Ok(wake) = there.try_recv() {
        ensure_eq!(wake, crate::store::Wake::Resync, "told of another namespace");
    }
    Ok(())
}
