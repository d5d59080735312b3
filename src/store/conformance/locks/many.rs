//! Cases: several locks in one request.

use crate::job::LockName;
use crate::resource::{LockRelease, LockRenewal};
use crate::store::conformance::CaseOutcome;
use crate::store::conformance::locks::bench::{LockBench, LockCase, lock_case, name, read, some, write};

pub(super) const CASES: &[LockCase] = &[
    lock_case!(many_locks_all_or_nothing, K5),
    lock_case!(opposite_order_no_deadlock, L6),
    lock_case!(many_locks_keep_order, K2),
    lock_case!(sixteen_locks_are_one_step, K5),
    lock_case!(all_locks_are_listed_by_name),
];

async fn many_locks_all_or_nothing(bench: &LockBench) -> CaseOutcome {
    let busy = bench.take("a", &[write("y")?]).await?;
    let all = bench.queue("b", &[write("x")?, write("y")?, some("z", 1, 2)?]).await?;
    // It stands in front of x and is told nothing of it.
    ensure_eq!(bench.entries("x").await?.first().map(|entry| entry.by.fence), Some(None));
    bench.queue("c", &[write("x")?]).await?;
    bench.release(&busy).await?;
    let all = bench.hold(&all).await?;
    ensure_eq!(all.places.len(), 3);
    ensure_eq!(bench.store.renew_lock(&all).await?, LockRenewal::Renewed);
    let fences: Vec<_> = [bench.entries("x").await?, bench.entries("y").await?, bench.entries("z").await?]
        .iter()
        .map(|entries| entries.first().and_then(|entry| entry.by.fence))
        .collect();
    ensure_eq!(fences, vec![Some(all.fence); 3]);
    ensure_eq!(bench.release(&all).await?, LockRelease::Released);
    bench.take("d", &[write("y")?, write("z")?]).await?;
    Ok(())
}

async fn opposite_order_no_deadlock(bench: &LockBench) -> CaseOutcome {
    let first = bench.take("a", &[write("x")?, write("y")?]).await?;
    let second = bench.queue("b", &[write("y")?, write("z")?]).await?;
    let third = bench.queue("c", &[write("z")?, write("x")?]).await?;
    bench.release(&first).await?;
    bench.wait(&third).await?;
    let second = bench.hold(&second).await?;
    bench.release(&second).await?;
    bench.hold(&third).await?;
    Ok(())
}

async fn many_locks_keep_order(bench: &LockBench) -> CaseOutcome {
    let busy = bench.take("a", &[write("x")?]).await?;
    let big = bench.queue("b", &[write("x")?, write("y")?]).await?;
    for node in ["c", "d", "e"] {
        bench.queue(node, &[write("y")?]).await?;
    }
    bench.release(&busy).await?;
    bench.hold(&big).await?;
    ensure_eq!(bench.nodes("y").await?, ("b".to_owned(), "c d e".to_owned()));
    Ok(())
}

async fn sixteen_locks_are_one_step(bench: &LockBench) -> CaseOutcome {
    let names: Vec<String> = (0..16).map(|at| format!("l{at}")).collect();
    let demands = names.iter().map(|lock| write(lock)).collect::<Result<Vec<_>, _>>()?;
    let held = bench.take("a", &demands).await?;
    ensure!(held.places.iter().all(|place| held.places.first() == Some(place)), "{:?}", held.places);
    let single = bench.queue("b", &[read("l7")?]).await?;
    bench.release(&held).await?;
    bench.hold(&single).await?;
    Ok(())
}

async fn all_locks_are_listed_by_name(bench: &LockBench) -> CaseOutcome {
    for lock in ["b", "c", "a"] {
        bench.take("n", &[write(lock)?]).await?;
    }
    let (_, all) = bench.store.locks(&[]).await?;
    ensure_eq!(all.iter().map(|record| record.lock.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let names = bench.store.lock_names().await?;
    ensure_eq!(names.iter().map(LockName::as_str).collect::<Vec<_>>(), ["a", "b", "c"]);
    let (_, asked) = bench.store.locks(&[name("c")?, name("nobody")?]).await?;
    ensure_eq!(asked.iter().map(|record| record.entries.len()).collect::<Vec<_>>(), [1, 0]);
    Ok(())
}
