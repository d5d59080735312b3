//! Cases: who asks, and who asks again. One token is one entry and one fence, however often and late it is sent.

use crate::resource::{AcquireRequest, Acquired, LockRefusal, LockRelease, LockRenewal};
use crate::store::conformance::CaseOutcome;
use crate::store::conformance::locks::bench::{LockBench, LockCase, TTL, lock_case, name, read, write};

pub(super) const CASES: &[LockCase] = &[
    lock_case!(exclusive_excludes, K1),
    lock_case!(two_processes_exclude_each_other, K1),
    lock_case!(same_token_is_one_entry, K3),
    lock_case!(retry_is_no_reentry, K3),
    lock_case!(fence_rises, K6),
    lock_case!(fence_not_by_retry, K3),
    lock_case!(late_acquire_after_release_is_spent, K7),
    lock_case!(late_renewal_after_release_restores_nothing, K7),
    lock_case!(try_leaves_no_trace),
    lock_case!(own_lease_only, K4),
    lock_case!(namespaces_never_touch, K10),
];

async fn exclusive_excludes(bench: &LockBench) -> CaseOutcome {
    let a = bench.request("a", &[write("x")?])?.labelled("nightly report");
    let held = bench.hold(&a).await?;
    let b = bench.request("b", &[write("x")?])?;
    let (ahead, by, remaining) = take!(
        bench.store.acquire(&b).await?,
        Acquired::Waiting { ahead, by, remaining } => (ahead, by, remaining)
    );
    ensure_eq!((ahead, by.node.as_str(), &*by.label), (1, "a", "nightly report"));
    ensure_eq!((by.owner, by.fence), (a.owner, Some(held.fence)));
    ensure!(remaining <= TTL && remaining > TTL / 2, "{remaining:?}");
    ensure_eq!(bench.nodes("x").await?, ("a".to_owned(), "b".to_owned()));
    ensure_eq!(bench.release(&held).await?, LockRelease::Released);
    bench.hold(&b).await?;
    Ok(())
}

async fn two_processes_exclude_each_other(bench: &LockBench) -> CaseOutcome {
    bench.take("same", &[write("x")?]).await?;
    let other = bench.another().await?;
    ensure_is!(other.acquire(&bench.request("same", &[write("x")?])?).await?, Acquired::Waiting { ahead: 1, .. });
    Ok(())
}

async fn same_token_is_one_entry(bench: &LockBench) -> CaseOutcome {
    let request = bench.request("a", &[write("x")?])?;
    let first = bench.hold(&request).await?;
    ensure_eq!(bench.hold(&request).await?, first);
    ensure_eq!(bench.entries("x").await?.len(), 1);
    ensure_eq!(bench.release(&first).await?, LockRelease::Released);
    ensure_eq!(bench.entries("x").await?, vec![]);
    Ok(())
}

async fn retry_is_no_reentry(bench: &LockBench) -> CaseOutcome {
    let request = bench.request("a", &[write("x")?, read("y")?])?;
    let held = bench.hold(&request).await?;
    for _ in 0..40 {
        bench.hold(&request).await?;
    }
    ensure_eq!(bench.release(&held).await?, LockRelease::Released);
    bench.take("b", &[write("x")?, write("y")?]).await?;
    Ok(())
}

async fn fence_rises(bench: &LockBench) -> CaseOutcome {
    let mut last = None;
    for round in 0..5 {
        let held = bench.take("a", &[write("x")?]).await?;
        ensure!(Some(held.fence) > last, "round {round}");
        last = Some(held.fence);
        bench.release(&held).await?;
        if round == 2 {
            // All data is lost: the numbers go on from the clock, once that is past those that were given within one millisecond.
            while bench.store.locks(&[]).await?.0 <= held.since().unwrap_or_default() {}
            bench.probe.forget(&name("x")?).await?;
        }
    }
    // Beyond what JavaScript and JSON count without rounding nothing is given.
    ensure!(last.is_some_and(|fence| fence.0 < 1 << 53));
    Ok(())
}

async fn fence_not_by_retry(bench: &LockBench) -> CaseOutcome {
    let request = bench.request("a", &[read("x")?])?;
    let first = bench.hold(&request).await?;
    bench.take("b", &[read("x")?]).await?;
    ensure_eq!(bench.hold(&request).await?.fence, first.fence);
    ensure_eq!(bench.store.renew_lock(&first).await?, LockRenewal::Renewed);
    ensure_eq!(bench.hold(&request).await?.fence, first.fence);
    Ok(())
}

async fn late_acquire_after_release_is_spent(bench: &LockBench) -> CaseOutcome {
    // The release overtakes the request.
    let request = bench.request("a", &[write("x")?])?;
    ensure_eq!(bench.store.release(&request.exit(true)).await?, LockRelease::Released);
    ensure_eq!(bench.store.acquire(&request).await?, Acquired::Refused(LockRefusal::Spent));
    // A copy of it is under way while it is left.
    let request = bench.request("a", &[write("x")?])?;
    let held = bench.hold(&request).await?;
    ensure_eq!(bench.store.release(&held.exit(true)).await?, LockRelease::Released);
    ensure_eq!(bench.store.acquire(&request).await?, Acquired::Refused(LockRefusal::Spent));
    ensure_eq!(bench.entries("x").await?, vec![]);
    Ok(())
}

async fn late_renewal_after_release_restores_nothing(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    bench.release(&held).await?;
    ensure_is!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { .. });
    // It lapsed on the way.
    let held = bench.take("a", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, None).await?;
    bench.release(&held).await?;
    ensure_is!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { .. });
    ensure_eq!(bench.entries("x").await?, vec![]);
    Ok(())
}

async fn try_leaves_no_trace(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let at_once = |request: AcquireRequest| AcquireRequest { queue: false, ..request };
    let busy = bench.store.acquire(&at_once(bench.request("b", &[write("y")?, write("x")?])?)).await?;
    let by = take!(busy, Acquired::Busy { by, .. } => by);
    ensure_eq!(by.node.as_str(), "a");
    ensure_eq!((bench.entries("x").await?.len(), bench.entries("y").await?.len()), (1, 0));
    // Free, but asked for before.
    let waiting = bench.queue("c", &[write("x")?]).await?;
    bench.release(&held).await?;
    let busy = bench.store.acquire(&at_once(bench.request("b", &[write("x")?])?)).await?;
    ensure_is!(busy, Acquired::Busy { .. });
    let held = bench.hold(&waiting).await?;
    bench.release(&held).await?;
    bench.hold(&at_once(bench.request("b", &[write("x")?])?)).await?;
    Ok(())
}

async fn own_lease_only(bench: &LockBench) -> CaseOutcome {
    let long = bench.take("a", &[read("x")?]).await?;
    let request = AcquireRequest { ttl: TTL / 6, ..bench.request("b", &[read("x")?])? };
    bench.hold(&request).await?;
    let entries = bench.entries("x").await?;
    let remaining: Vec<_> = entries.iter().map(|entry| entry.remaining).collect();
    ensure!(remaining.first().is_some_and(|left| *left > TTL / 2), "{remaining:?}");
    ensure!(remaining.last().is_some_and(|left| *left <= TTL / 6), "{remaining:?}");
    // Never shorter than before, and of nobody else.
    let short = crate::resource::LockHold { ttl: TTL / 6, ..long };
    ensure_eq!(bench.store.renew_lock(&short).await?, LockRenewal::Renewed);
    let kept = bench.entries("x").await?;
    ensure!(kept.first().is_some_and(|entry| entry.remaining > TTL / 2));
    Ok(())
}

async fn namespaces_never_touch(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let beside = bench.neighbour().await?;
    let request = bench.request("b", &[write("x")?])?;
    ensure_is!(beside.acquire(&request).await?, Acquired::Held { .. });
    ensure_is!(beside.release(&held.exit(false)).await?, LockRelease::Expired | LockRelease::Overtaken { .. });
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Renewed);
    let (_, all) = beside.locks(&[]).await?;
    let nodes: Vec<_> = all.iter().flat_map(|lock| &lock.entries).map(|entry| entry.by.node.to_string()).collect();
    ensure_eq!(nodes, ["b"]);
    Ok(())
}
