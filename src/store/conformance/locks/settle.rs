//! Cases: how a request ends, and what is lost and found. Nothing of anybody else's is ever changed.

use crate::resource::{LockHold, LockRelease, LockRenewal};
use crate::slot::Fence;
use crate::store::conformance::CaseOutcome;
use crate::store::conformance::locks::bench::{LockBench, LockCase, lock_case, name, read, write};

pub(super) const CASES: &[LockCase] = &[
    lock_case!(release_by_another_changes_nothing, K4),
    lock_case!(stale_release_spares_the_newer, K4),
    lock_case!(release_is_idempotent),
    lock_case!(release_of_lapsed_says_so),
    lock_case!(renewal_restores_what_was_lost, K8),
    lock_case!(a_newcomer_is_never_displaced, K8),
    lock_case!(flush_restores_shared, K8),
    lock_case!(a_lapse_that_somebody_followed_is_lost, K8),
    lock_case!(eviction_of_one_key, K5, K8),
];

async fn release_by_another_changes_nothing(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let waiting = bench.queue("b", &[write("x")?]).await?;
    let stranger =
        LockHold { token: bench.token(), ..bench.request("c", &[write("x")?])?.granted(held.fence, vec![1]) };
    ensure_is!(bench.release(&stranger).await?, LockRelease::Expired | LockRelease::Overtaken { .. });
    ensure_eq!(bench.nodes("x").await?, ("a".to_owned(), "b".to_owned()));
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Renewed);
    bench.wait(&waiting).await?;
    Ok(())
}

async fn stale_release_spares_the_newer(bench: &LockBench) -> CaseOutcome {
    let old = bench.take("a", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, None).await?;
    let new = bench.take("a", &[write("x")?]).await?;
    ensure_is!(bench.release(&old).await?, LockRelease::Overtaken { by: Some(_) });
    ensure_is!(bench.store.renew_lock(&old).await?, LockRenewal::Lost { to: Some(_) });
    ensure_eq!(bench.store.renew_lock(&new).await?, LockRenewal::Renewed);
    Ok(())
}

async fn release_is_idempotent(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?, read("y")?]).await?;
    let waiting = bench.queue("b", &[write("x")?]).await?;
    ensure_eq!(bench.release(&held).await?, LockRelease::Released);
    ensure_eq!(bench.store.release(&held.exit(true)).await?, LockRelease::Released);
    bench.hold(&waiting).await?;
    ensure_eq!(bench.release(&held).await?, LockRelease::Released);
    ensure_eq!(bench.nodes("x").await?, ("b".to_owned(), String::new()));
    Ok(())
}

async fn release_of_lapsed_says_so(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, None).await?;
    ensure_eq!(bench.release(&held).await?, LockRelease::Expired);
    let held = bench.take("a", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, None).await?;
    let other = bench.take("b", &[write("x")?]).await?;
    let by = take!(bench.release(&held).await?, LockRelease::Overtaken { by: Some(by) } => by);
    ensure_eq!((by.node.as_str(), by.fence), ("b", Some(other.fence)));
    // Also once that is over, though nobody is there to be named.
    let held = bench.take_after(other).await?;
    bench.probe.expire(&name("x")?, None).await?;
    let other = bench.take("b", &[write("x")?]).await?;
    bench.release(&other).await?;
    ensure_eq!(bench.release(&held).await?, LockRelease::Overtaken { by: None });
    Ok(())
}

async fn renewal_restores_what_was_lost(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let waiting = bench.queue("b", &[write("x")?]).await?;
    bench.probe.forget(&name("x")?).await?;
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Restored);
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Renewed);
    bench.wait(&waiting).await?;
    let next = bench.hold_after(&held, &waiting).await?;
    ensure!(next.fence > held.fence);
    Ok(())
}

async fn a_newcomer_is_never_displaced(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    bench.probe.forget(&name("x")?).await?;
    let newcomer = bench.take("b", &[write("x")?]).await?;
    let to = take!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { to: Some(to) } => to);
    ensure_eq!(to.node.as_str(), "b");
    ensure_eq!(bench.store.renew_lock(&newcomer).await?, LockRenewal::Renewed);
    Ok(())
}

async fn flush_restores_shared(bench: &LockBench) -> CaseOutcome {
    let mut readers = Vec::new();
    for node in ["a", "b", "c", "d"] {
        readers.push(bench.take(node, &[read("x")?]).await?);
    }
    bench.probe.forget(&name("x")?).await?;
    for reader in readers.iter().rev() {
        ensure_eq!(bench.store.renew_lock(reader).await?, LockRenewal::Restored);
    }
    bench.queue("w", &[write("x")?]).await?;
    ensure_eq!(bench.nodes("x").await?, ("a b c d".to_owned(), "w".to_owned()));
    Ok(())
}

async fn a_lapse_that_somebody_followed_is_lost(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, None).await?;
    // Nobody came: it is set again.
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Restored);
    bench.probe.expire(&name("x")?, None).await?;
    let other = bench.take("b", &[write("x")?]).await?;
    bench.release(&other).await?;
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { to: None });
    // A number that nobody was given is not believed either.
    let made_up = LockHold { fence: Fence(1), ..held };
    ensure_is!(bench.store.renew_lock(&made_up).await?, LockRenewal::Lost { .. });
    Ok(())
}

async fn eviction_of_one_key(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?, write("y")?]).await?;
    let waiting = bench.queue("b", &[write("x")?, write("y")?]).await?;
    bench.probe.forget(&name("y")?).await?;
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Restored);
    bench.probe.forget(&name("y")?).await?;
    // The waiter joins anew in both; the holder still stands in front of it in x, and so in all.
    bench.wait(&waiting).await?;
    ensure_is!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { .. });
    bench.release(&held).await?;
    bench.hold(&waiting).await?;
    Ok(())
}

impl LockBench {
    /// The lock that was released, taken by somebody else.
    async fn take_after(&self, held: LockHold) -> Result<LockHold, super::super::Failure> {
        self.release(&held).await?;
        self.take("a", &held.demands.iter().cloned().collect::<Vec<_>>()).await
    }

    /// Released, it is the next one's.
    async fn hold_after(
        &self,
        held: &LockHold,
        next: &crate::resource::AcquireRequest,
    ) -> Result<LockHold, super::super::Failure> {
        self.release(held).await?;
        self.hold(next).await
    }
}
