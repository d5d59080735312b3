//! Cases: readers and writers, permits, and one owner that takes more.

use crate::resource::{AcquireRequest, Acquired, LockRefusal, LockRelease, LockRenewal};
use crate::store::conformance::CaseOutcome;
use crate::store::conformance::locks::bench::{LockBench, LockCase, lock_case, name, read, some, write};

pub(super) const CASES: &[LockCase] = &[
    lock_case!(readers_share, K1),
    lock_case!(readers_behind_writer_go_together, K2),
    lock_case!(permits_add_up, K1),
    lock_case!(big_request_is_not_starved, K2),
    lock_case!(limits_may_differ, K1),
    lock_case!(limit_raised_while_waiting),
    lock_case!(reentry_same_owner, K9),
    lock_case!(recursive_read_behind_writer, K9),
    lock_case!(downgrade, K9),
    lock_case!(writer_that_reads_too, K9),
    lock_case!(each_entry_of_an_owner_lapses_alone, K4, K9),
    lock_case!(readers_and_writers_in_any_order, K1, K2),
    lock_case!(upgrade_refused_not_hung, K9),
];

async fn readers_share(bench: &LockBench) -> CaseOutcome {
    bench.take("a", &[read("x")?]).await?;
    bench.take("b", &[read("x")?]).await?;
    let writer = bench.queue("w", &[write("x")?]).await?;
    bench.queue("c", &[read("x")?]).await?;
    ensure_eq!(bench.nodes("x").await?, ("a b".to_owned(), "w c".to_owned()));
    ensure_eq!(bench.wait(&writer).await?.0, 2);
    Ok(())
}

async fn readers_behind_writer_go_together(bench: &LockBench) -> CaseOutcome {
    let writer = bench.take("w", &[write("x")?]).await?;
    let mut readers = Vec::new();
    for at in 0..20 {
        readers.push(bench.queue(&format!("r{at}"), &[read("x")?]).await?);
    }
    bench.release(&writer).await?;
    for reader in readers.iter().rev() {
        bench.hold(reader).await?;
    }
    Ok(())
}

async fn permits_add_up(bench: &LockBench) -> CaseOutcome {
    let two = bench.take("a", &[some("x", 2, 3)?]).await?;
    bench.take("b", &[some("x", 1, 3)?]).await?;
    let more = bench.queue("c", &[some("x", 2, 3)?]).await?;
    bench.release(&two).await?;
    bench.hold(&more).await?;
    Ok(())
}

async fn big_request_is_not_starved(bench: &LockBench) -> CaseOutcome {
    let first = bench.take("a", &[some("x", 1, 4)?]).await?;
    let second = bench.take("b", &[some("x", 1, 4)?]).await?;
    let whole = bench.queue("w", &[write("x")?]).await?;
    // Two are free, and it was asked for more before.
    let small = bench.queue("c", &[some("x", 1, 4)?]).await?;
    bench.release(&first).await?;
    bench.wait(&small).await?;
    bench.wait(&whole).await?;
    bench.release(&second).await?;
    let whole = bench.hold(&whole).await?;
    bench.wait(&small).await?;
    bench.release(&whole).await?;
    bench.hold(&small).await?;
    Ok(())
}

async fn limits_may_differ(bench: &LockBench) -> CaseOutcome {
    let old = bench.take("a", &[some("x", 3, 4)?]).await?;
    let new = bench.queue("b", &[some("x", 1, 2)?]).await?;
    bench.release(&old).await?;
    let new = bench.hold(&new).await?;
    // The smaller limit counts while whoever named it is there.
    bench.take("c", &[some("x", 1, 4)?]).await?;
    let third = bench.queue("d", &[some("x", 1, 4)?]).await?;
    bench.release(&new).await?;
    bench.hold(&third).await?;
    Ok(())
}

async fn limit_raised_while_waiting(bench: &LockBench) -> CaseOutcome {
    let small = bench.take("a", &[some("x", 1, 1)?]).await?;
    let (b, c) = (bench.queue("b", &[some("x", 1, 3)?]).await?, bench.queue("c", &[some("x", 1, 3)?]).await?);
    bench.release(&small).await?;
    bench.hold(&c).await?;
    bench.hold(&b).await?;
    Ok(())
}

async fn reentry_same_owner(bench: &LockBench) -> CaseOutcome {
    let first = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    let waiting = bench.queue("b", &[write("x")?]).await?;
    let second = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    ensure_eq!(bench.wait(&waiting).await?.0, 2);
    ensure!(second.fence > first.fence, "a grant of its own");
    ensure_eq!(second.places, first.places);
    ensure_eq!(bench.release(&first).await?, LockRelease::Released);
    bench.wait(&waiting).await?;
    ensure_eq!(bench.release(&second).await?, LockRelease::Released);
    bench.hold(&waiting).await?;
    Ok(())
}

async fn recursive_read_behind_writer(bench: &LockBench) -> CaseOutcome {
    bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    bench.queue("w", &[write("x")?]).await?;
    bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    bench.queue("b", &[read("x")?]).await?;
    ensure_eq!(bench.nodes("x").await?, ("a a".to_owned(), "w b".to_owned()));
    Ok(())
}

async fn downgrade(bench: &LockBench) -> CaseOutcome {
    let writing = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    let (w, r) = (bench.queue("w", &[write("x")?]).await?, bench.queue("r", &[read("x")?]).await?);
    let reading = bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    bench.release(&writing).await?;
    bench.wait(&w).await?;
    bench.wait(&r).await?;
    bench.release(&reading).await?;
    bench.hold(&w).await?;
    Ok(())
}

async fn writer_that_reads_too(bench: &LockBench) -> CaseOutcome {
    let writing = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    let reading = bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    let reader = bench.queue("r", &[read("x")?]).await?;
    bench.release(&reading).await?;
    bench.wait(&reader).await?;
    let again = bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    bench.release(&writing).await?;
    bench.hold(&reader).await?;
    let writer = bench.queue("w", &[write("x")?]).await?;
    bench.release(&again).await?;
    bench.wait(&writer).await?;
    Ok(())
}

async fn each_entry_of_an_owner_lapses_alone(bench: &LockBench) -> CaseOutcome {
    let writing = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    let reading = bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    let (reader, writer) = (bench.queue("r", &[read("x")?]).await?, bench.queue("w", &[write("x")?]).await?);
    bench.probe.expire(&name("x")?, Some(writing.token)).await?;
    let other = bench.hold(&reader).await?;
    bench.wait(&writer).await?;
    bench.probe.expire(&name("x")?, Some(other.token)).await?;
    let (_, by) = bench.wait(&writer).await?;
    ensure_eq!(by.node.as_str(), "a");
    ensure_eq!(bench.store.renew_lock(&reading).await?, LockRenewal::Renewed);
    bench.probe.expire(&name("x")?, Some(reading.token)).await?;
    bench.hold(&writer).await?;
    Ok(())
}

/// Thirty over two connections, of whom every third writes: whoever is asked holds where all in front are readers as it is, or nobody is there.
async fn readers_and_writers_in_any_order(bench: &LockBench) -> CaseOutcome {
    let another = bench.another().await?;
    let connection = |at: usize| if at.is_multiple_of(2) { &bench.store } else { &another };
    let mut queue = Vec::new();
    for at in 0..30_usize {
        let demand = if at % 3 == 1 { write("x")? } else { read("x")? };
        let request = bench.request(&format!("n{at}"), &[demand])?;
        connection(at).acquire(&request).await?;
        queue.push((at % 3 == 1, request));
    }
    let mut turn = 0;
    while let Some((first_writes, _)) = queue.first() {
        // Another one of those who hold leaves each time.
        let holding = if *first_writes { 1 } else { queue.iter().take_while(|(writes, _)| !writes).count() };
        let mut leaves = None;
        for (at, (_, request)) in queue.iter().enumerate() {
            let answer = connection(at + turn).acquire(request).await?;
            match answer {
                Acquired::Held { fence, places, .. } if at < holding => {
                    if at == turn % holding {
                        leaves = Some((at, request.granted(fence, places)));
                    }
                }
                Acquired::Waiting { .. } if at >= holding => {}
                other => return Err(format!("{at} behind {holding} who hold: {other:?}").into()),
            }
        }
        let Some((at, hold)) = leaves else { return Err("nobody holds".to_owned().into()) };
        ensure_eq!(connection(turn).release(&hold.exit(false)).await?, LockRelease::Released);
        queue.remove(at);
        turn += 1;
    }
    ensure_eq!(bench.nodes("x").await?, (String::new(), String::new()));
    Ok(())
}

async fn upgrade_refused_not_hung(bench: &LockBench) -> CaseOutcome {
    let own = bench.hold(&bench.owned("o", "a", &[read("x")?])?).await?;
    let other = bench.take("b", &[read("x")?]).await?;
    let upgrade = bench.owned("o", "a", &[write("x")?])?;
    ensure_eq!(bench.store.acquire(&upgrade).await?, Acquired::Refused(LockRefusal::WaitsForItself));
    let at_once = AcquireRequest { queue: false, ..upgrade };
    let by = take!(bench.store.acquire(&at_once).await?, Acquired::Busy { by, .. } => by);
    ensure_eq!(by.node.as_str(), "b");
    ensure_eq!(bench.nodes("x").await?, ("a b".to_owned(), String::new()));
    bench.release(&other).await?;
    let upgraded = bench.hold(&bench.owned("o", "a", &[write("x")?])?).await?;
    ensure!(upgraded.fence > other.fence);
    bench.queue("c", &[read("x")?]).await?;
    bench.release(&upgraded).await?;
    ensure_eq!(bench.nodes("x").await?, ("a c".to_owned(), String::new()));
    bench.release(&own).await?;
    Ok(())
}
