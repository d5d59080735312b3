//! Cases: the order of the queue, and what frees it. Whoever asked first holds first; whoever is dead costs one TTL, with all others
//! that are dead.

use crate::resource::{AcquireRequest, Acquired, LockRefusal, LockRelease, LockRenewal, MOST_ENTRIES};
use crate::slot::Token;
use crate::store::Intervention;
use crate::store::conformance::locks::bench::{
    LockBench, LockCase, TTL, heard, listening, lock_case, name, read, write,
};
use crate::store::conformance::{CaseOutcome, Failure};

/// Waiters that die at once.
const DEAD: usize = 500;

pub(super) const CASES: &[LockCase] = &[
    lock_case!(fifo, K2),
    lock_case!(no_overtaking_by_newcomer, K2),
    lock_case!(waiter_keeps_its_place_by_asking, K2, K3),
    lock_case!(k_dead_waiters_cost_one_ttl, L3),
    lock_case!(lapse_frees_without_publish, L4),
    lock_case!(timeout_while_waiting_leaves, K2),
    lock_case!(queue_is_bounded),
    lock_case!(one_release_one_wake, L5),
    lock_case!(each_of_many_who_may_hold_is_told, L5),
    lock_case!(a_departure_from_two_locks_wakes_whom_it_lets_hold, L5),
    lock_case!(the_lock_that_comes_free_last_wakes, L4),
    lock_case!(evicted_is_gone, K7),
];

async fn fifo(bench: &LockBench) -> CaseOutcome {
    let mut held = bench.take("n0", &[write("x")?]).await?;
    let mut waiting = Vec::new();
    for at in 1..=8_u32 {
        let request = bench.queue(&format!("n{at}"), &[write("x")?]).await?;
        ensure_eq!(bench.wait(&request).await?.0, at);
        waiting.push(request);
    }
    for (turn, request) in waiting.iter().enumerate() {
        // However often some of those behind ask meanwhile.
        for other in waiting.iter().skip(turn + 1).rev().step_by(2) {
            bench.wait(other).await?;
        }
        bench.release(&held).await?;
        held = bench.hold(request).await?;
    }
    Ok(())
}

async fn no_overtaking_by_newcomer(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let head = bench.queue("b", &[write("x")?]).await?;
    bench.release(&held).await?;
    // The head has not asked yet.
    let newcomer = bench.request("c", &[write("x")?])?;
    let (ahead, by) = bench.wait(&newcomer).await?;
    ensure_eq!((ahead, by.node.as_str(), by.fence), (1, "b", None));
    bench.hold(&head).await?;
    Ok(())
}

async fn waiter_keeps_its_place_by_asking(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let brief = AcquireRequest { ttl: TTL / 6, ..bench.request("b", &[write("x")?])? };
    bench.wait(&brief).await?;
    bench.queue("c", &[write("x")?]).await?;
    let place = bench.entry("x", &brief).await?.place;
    // What was to end soon lasts from now on, at its place.
    let asked = AcquireRequest { ttl: TTL, ..brief.clone() };
    ensure_eq!(bench.wait(&asked).await?.0, 1);
    let kept = bench.entry("x", &brief).await?;
    ensure!(kept.remaining > TTL / 2, "{:?}", kept.remaining);
    // Nor does who asks for less shorten it.
    ensure_eq!(bench.wait(&brief).await?.0, 1);
    let kept = bench.entry("x", &brief).await?;
    ensure!(kept.remaining > TTL / 2, "{:?}", kept.remaining);
    ensure_eq!(kept.place, place);
    ensure_eq!(bench.nodes("x").await?, ("a".to_owned(), "b c".to_owned()));
    bench.release(&held).await?;
    bench.hold(&asked).await?;
    Ok(())
}

async fn k_dead_waiters_cost_one_ttl(bench: &LockBench) -> CaseOutcome {
    bench.take("dead", &[write("x")?]).await?;
    if !bench.probe.crowd(&name("x")?, DEAD).await? {
        for _ in 0..DEAD {
            bench.queue("dead", &[write("x")?]).await?;
        }
    }
    ensure_eq!(bench.entries("x").await?.len(), DEAD + 1);
    bench.probe.expire(&name("x")?, None).await?;
    bench.take("b", &[write("x")?]).await?;
    ensure_eq!(bench.nodes("x").await?, ("b".to_owned(), String::new()));
    Ok(())
}

async fn lapse_frees_without_publish(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let waiting = bench.queue("b", &[write("x")?]).await?;
    bench.probe.expire(&name("x")?, Some(held.token)).await?;
    bench.hold(&waiting).await?;
    // All that is known of it is gone.
    bench.probe.forget(&name("x")?).await?;
    bench.take("c", &[write("x")?]).await?;
    Ok(())
}

async fn timeout_while_waiting_leaves(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let mut waiting = Vec::new();
    for node in ["b", "c", "d"] {
        waiting.push(bench.queue(node, &[write("x")?]).await?);
    }
    let [_, second, _] = waiting.as_slice() else { return Err(Failure::from("three wait".to_owned())) };
    ensure_eq!(bench.leave(second).await?, LockRelease::Released);
    ensure_eq!(bench.leave(second).await?, LockRelease::Released);
    ensure_eq!(bench.nodes("x").await?, ("a".to_owned(), "b d".to_owned()));
    bench.release(&held).await?;
    ensure_eq!(bench.nodes("x").await?, ("b".to_owned(), "d".to_owned()));
    Ok(())
}

async fn queue_is_bounded(bench: &LockBench) -> CaseOutcome {
    // A store that writes all of a queue with each change takes its time.
    let reader = || Ok::<_, Failure>(AcquireRequest { ttl: 60 * TTL, ..bench.request("a", &[read("x")?])? });
    let first = bench.hold(&reader()?).await?;
    let crowded = bench.probe.crowd(&name("x")?, MOST_ENTRIES - 2).await?;
    for _ in if crowded { MOST_ENTRIES - 1 } else { 1 }..MOST_ENTRIES {
        bench.hold(&reader()?).await?;
    }
    ensure_eq!(bench.entries("x").await?.len(), MOST_ENTRIES);
    let request = bench.request("b", &[read("y")?, read("x")?])?;
    ensure_eq!(bench.store.acquire(&request).await?, Acquired::Refused(LockRefusal::Full));
    ensure_eq!(bench.entries("y").await?, vec![]);
    bench.release(&first).await?;
    bench.hold(&request).await?;
    Ok(())
}

async fn one_release_one_wake(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let waiting = bench.request("b", &[write("x")?])?;
    let mut own = listening(bench, waiting.instance).await?;
    let mut others = listening(bench, Token::from_bits(1)).await?;
    bench.wait(&waiting).await?;
    for _ in 0..63 {
        let behind = AcquireRequest { instance: Token::from_bits(1), ..bench.request("c", &[write("x")?])? };
        bench.wait(&behind).await?;
    }
    let exit = held.exit(false);
    bench.store.release(&exit).await?;
    bench.store.release(&exit).await?;
    ensure_eq!(heard(bench, &mut own, 1).await, [waiting.token]);
    ensure_eq!(heard(bench, &mut others, 0).await, Vec::<Token>::new());
    // As many readers as fit are told, and nobody behind them.
    let held = bench.hold(&waiting).await?;
    let mut own = listening(bench, Token::from_bits(9)).await?;
    let writer = bench.take("v", &[write("y")?]).await?;
    let mut readers = Vec::new();
    for (node, demand) in [("r", read("y")?), ("s", read("y")?), ("w", write("y")?)] {
        let request = AcquireRequest { instance: Token::from_bits(9), ..bench.request(node, &[demand])? };
        bench.wait(&request).await?;
        readers.push(request.token);
    }
    readers.pop();
    bench.release(&writer).await?;
    let mut told = heard(bench, &mut own, 2).await;
    told.sort_unstable();
    readers.sort_unstable();
    ensure_eq!(told, readers);
    bench.release(&held).await?;
    Ok(())
}

/// More than a store reads of a queue at first.
async fn each_of_many_who_may_hold_is_told(bench: &LockBench) -> CaseOutcome {
    let mut own = listening(bench, Token::from_bits(9)).await?;
    let writer = bench.take("w", &[write("x")?]).await?;
    let mut readers = Vec::new();
    for at in 0..20 {
        let reader = bench.request(&format!("r{at}"), &[read("x")?])?;
        let reader = AcquireRequest { instance: Token::from_bits(9), ..reader };
        bench.wait(&reader).await?;
        readers.push(reader.token);
    }
    bench.release(&writer).await?;
    let mut told = heard(bench, &mut own, readers.len()).await;
    told.sort_unstable();
    readers.sort_unstable();
    ensure_eq!(told, readers);
    Ok(())
}

/// Those who wait for one lock alone and for another beside others all fit in the second: a departure from both lets one of them hold.
async fn a_departure_from_two_locks_wakes_whom_it_lets_hold(bench: &LockBench) -> CaseOutcome {
    let mut own = listening(bench, Token::from_bits(9)).await?;
    let mut held = bench.take("w", &[write("x")?, write("y")?]).await?;
    let mut waiting = Vec::new();
    for at in 0..20 {
        let request = bench.request(&format!("r{at}"), &[write("x")?, read("y")?])?;
        let request = AcquireRequest { instance: Token::from_bits(9), ..request };
        bench.wait(&request).await?;
        waiting.push(request);
    }
    // What is told too much comes before what is told next.
    for request in waiting.iter().take(3) {
        bench.release(&held).await?;
        ensure_eq!(heard(bench, &mut own, 1).await, [request.token]);
        held = bench.hold(request).await?;
    }
    // Somebody in the middle of the queue lets nobody hold.
    let [_, _, _, next, middle, .., last] = waiting.as_slice() else { return Err(Failure::from("20 wait".to_owned())) };
    bench.leave(middle).await?;
    for lock in ["x", "y"] {
        bench.probe.expire(&name(lock)?, Some(held.token)).await?;
    }
    bench.wait(last).await?;
    ensure_eq!(heard(bench, &mut own, 1).await, [next.token]);
    bench.hold(next).await?;
    ensure_eq!(heard(bench, &mut own, 0).await, Vec::<Token>::new());
    Ok(())
}

async fn the_lock_that_comes_free_last_wakes(bench: &LockBench) -> CaseOutcome {
    let mut own = listening(bench, Token::from_bits(9)).await?;
    let (first, last) = (bench.take("a", &[write("x")?]).await?, bench.take("b", &[write("y")?]).await?);
    let both = AcquireRequest { instance: Token::from_bits(9), ..bench.request("c", &[write("x")?, write("y")?])? };
    bench.wait(&both).await?;
    bench.release(&first).await?;
    // Who leaves x knows nothing of y.
    ensure_eq!(heard(bench, &mut own, 1).await, [both.token]);
    bench.wait(&both).await?;
    bench.release(&last).await?;
    ensure_eq!(heard(bench, &mut own, 1).await, [both.token]);
    bench.hold(&both).await?;
    Ok(())
}

async fn evicted_is_gone(bench: &LockBench) -> CaseOutcome {
    let held = bench.take("a", &[write("x")?]).await?;
    let (b, c) = (bench.queue("b", &[write("x")?]).await?, bench.queue("c", &[write("x")?]).await?);
    let audit = crate::store::conformance::bench::audit("unlock");
    ensure_eq!(bench.store.evict(&name("x")?, c.token, &audit).await?, Intervention::Applied);
    ensure_eq!(bench.store.evict(&name("x")?, c.token, &audit).await?, Intervention::Unchanged);
    ensure_eq!(bench.store.acquire(&c).await?, Acquired::Refused(LockRefusal::Spent));
    ensure_eq!(bench.store.evict(&name("x")?, held.token, &audit).await?, Intervention::Applied);
    // Whoever was not told that it holds works on nothing, and is not named.
    ensure_eq!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { to: None });
    bench.hold(&b).await?;
    ensure_is!(bench.store.renew_lock(&held).await?, LockRenewal::Lost { to: Some(_) });
    ensure_is!(bench.release(&held).await?, LockRelease::Overtaken { by: Some(_) });
    let (now, records) = bench.store.locks(&[name("x")?]).await?;
    let audits: Vec<_> = records.iter().flat_map(|record| &record.audit).collect();
    ensure_eq!(audits.len(), 2);
    // By the store's clock, not by the operator's.
    ensure!(audits.iter().all(|kept| kept.at != audit.at && kept.at <= now && kept.who == audit.who), "{audits:?}");
    Ok(())
}
