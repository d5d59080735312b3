//! The library's locks on the executable specification, with the machine's clock.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{BuildError, Held, LockError, LockRelease, Locks, Standing, TryLockError};
use crate::clock::{ManualClock, SystemClock};
use crate::job::LockName;
use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{Op, StoreOptions};

/// A loss is told by a renewal, after a third of it: before it is in doubt, also on a machine that stands still for seconds.
const BRIEF: Duration = Duration::from_secs(6);

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)))
}

fn locks(store: &Arc<MemoryStore>, node: &str) -> Locks {
    Locks::builder(store.clone(), node).build().unwrap()
}

/// Gives the tasks of this runtime turns until the queue of `lock` has so many entries.
async fn until_queued(locks: &Locks, lock: &str, entries: usize) {
    for _ in 0..10_000 {
        let there = locks.list().await.unwrap().into_iter().find(|record| record.lock.as_str() == lock);
        if there.map_or(0, |record| record.entries.len()) == entries {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{lock} never had {entries} entries: {:?}", locks.list().await);
}

fn is_busy(tried: Result<Held, TryLockError>) -> bool {
    matches!(tried, Err(TryLockError::Busy { .. }))
}

#[tokio::test]
async fn a_mutex_is_held_by_one_and_then_by_who_waits() {
    let store = store();
    let (a, b) = (locks(&store, "a"), locks(&store, "b"));
    let held = a.mutex("x").unwrap().lock().await.unwrap();
    let other = b.mutex("x").unwrap();
    assert!(is_busy(other.try_lock().await));
    let waiting = tokio::spawn(async move { other.lock().await });
    until_queued(&a, "x", 2).await;
    let first = held.fence();
    assert_eq!(held.release().await.unwrap(), LockRelease::Released);
    let second = waiting.await.unwrap().unwrap();
    assert!(second.fence() > first);
    assert_eq!(second.standing(), Standing::Held);
}

#[tokio::test]
async fn cancelled_acquire_leaves() {
    let store = store();
    let locks = locks(&store, "a");
    let mutex = locks.mutex("x").unwrap();
    let held = mutex.lock().await.unwrap();
    // Dropped before the first poll, after it, and once it stands in the queue.
    drop(mutex.lock());
    let mut context = Context::from_waker(Waker::noop());
    let mut asked = Box::pin(mutex.lock());
    assert!(matches!(asked.as_mut().poll(&mut context), Poll::Pending));
    drop(asked);
    let mut queued = Box::pin(mutex.lock());
    assert!(matches!(queued.as_mut().poll(&mut context), Poll::Pending));
    until_queued(&locks, "x", 2).await;
    drop(queued);
    until_queued(&locks, "x", 1).await;
    // Granted, and nobody has heard of it.
    let mut granted = Box::pin(mutex.lock());
    assert!(matches!(granted.as_mut().poll(&mut context), Poll::Pending));
    until_queued(&locks, "x", 2).await;
    drop(held);
    until_queued(&locks, "x", 1).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(granted);
    until_queued(&locks, "x", 0).await;
}

#[tokio::test]
async fn release_in_another_task() {
    let store = store();
    let locks = locks(&store, "a");
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    tokio::spawn(async move { drop(held) }).await.unwrap();
    until_queued(&locks, "x", 0).await;
}

#[tokio::test]
async fn watchdog_ends_with_the_guard() {
    let store = store();
    let locks = locks(&store, "a");
    let mutex = locks.mutex("x").unwrap();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for round in 0..10_000 {
        let mut asked = Box::pin(mutex.lock());
        let polled = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        if round % 3 == 0 {
            drop(asked.await.unwrap());
        }
    }
    until_queued(&locks, "x", 0).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test]
async fn readers_share_and_a_writer_waits_for_those_before_it() {
    let store = store();
    let locks = locks(&store, "a");
    let lock = locks.rw_lock("x").unwrap();
    let (first, second) = (lock.read().await.unwrap(), lock.try_read().await.unwrap());
    assert!(is_busy(lock.try_write().await));
    let writer = tokio::spawn({
        let lock = lock.clone();
        async move { lock.write().await.unwrap() }
    });
    until_queued(&locks, "x", 3).await;
    assert!(is_busy(lock.try_read().await), "behind a writer that waits");
    drop((first, second));
    drop(writer.await.unwrap());
    drop(lock.read().await.unwrap());
}

#[tokio::test]
async fn permits_add_up() {
    let store = store();
    let locks = locks(&store, "a");
    let pool = locks.semaphore("x", 3).unwrap();
    let two = pool.acquire_many(2).await.unwrap();
    let one = pool.try_acquire().await.unwrap();
    assert!(is_busy(pool.try_acquire().await));
    drop(two);
    until_queued(&locks, "x", 1).await;
    let whole = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire_many(3).await.unwrap() }
    });
    until_queued(&locks, "x", 2).await;
    assert!(is_busy(pool.try_acquire().await), "nobody passes a big request");
    drop(one);
    drop(whole.await.unwrap());
    assert!(matches!(pool.acquire_many(4).await, Err(LockError::Demand(_))));
    assert!(matches!(pool.acquire_many(0).await, Err(LockError::Demand(_))));
}

#[tokio::test]
async fn several_locks_are_one_request() {
    let store = store();
    let locks = locks(&store, "a");
    let one = locks.mutex("b").unwrap().lock().await.unwrap();
    let all = || locks.request().exclusive("a").unwrap().exclusive("b").unwrap().permits("c", 1, 2).unwrap();
    assert!(is_busy(all().try_lock().await));
    until_queued(&locks, "a", 0).await;
    drop(one);
    let held = all().label("report").lock().await.unwrap();
    let record = locks.list().await.unwrap().into_iter().find(|record| record.lock.as_str() == "c").unwrap();
    assert_eq!(record.holders().map(|entry| entry.by.label.clone()).collect::<Vec<_>>(), ["report"]);
    drop(held);
    assert!(matches!(locks.request().lock().await, Err(LockError::Demand(_))));
    let twice = locks.request().exclusive("a").unwrap().shared("a").unwrap();
    assert!(matches!(twice.lock().await, Err(LockError::Demand(_))));
}

#[tokio::test]
async fn reentry_same_owner() {
    let store = store();
    let locks = locks(&store, "a");
    let owner = locks.owner();
    let mutex = owner.mutex("x").unwrap();
    let (first, second) = (mutex.lock().await.unwrap(), mutex.lock().await.unwrap());
    drop(first);
    until_queued(&locks, "x", 1).await;
    assert!(is_busy(locks.mutex("x").unwrap().try_lock().await), "still held");
    // Another process that is told who the owner is takes it, too.
    let beside = self::locks(&store, "b").owned_by(second.owner());
    drop(beside.mutex("x").unwrap().lock().await.unwrap());
    drop(second);
    drop(locks.mutex("x").unwrap().lock().await.unwrap());
}

#[tokio::test]
async fn upgrade_refused_not_hung() {
    let store = store();
    let locks = locks(&store, "a");
    let owner = locks.owner();
    let lock = owner.rw_lock("x").unwrap();
    let own = lock.read().await.unwrap();
    let other = locks.rw_lock("x").unwrap().read().await.unwrap();
    assert!(matches!(lock.write().await, Err(LockError::WouldWaitForItself)));
    assert!(is_busy(lock.try_write().await));
    drop(other);
    until_queued(&locks, "x", 1).await;
    drop(lock.write().await.unwrap());
    drop(own);
}

#[tokio::test]
async fn downgrade() {
    let store = store();
    let locks = locks(&store, "a");
    let lock = locks.rw_lock("x").unwrap();
    let writing = lock.write().await.unwrap();
    let writer = tokio::spawn({
        let lock = lock.clone();
        async move { lock.write().await.unwrap() }
    });
    until_queued(&locks, "x", 2).await;
    let fence = writing.fence();
    let reading = writing.downgrade().await.unwrap();
    assert!(reading.fence() > fence);
    assert!(!writer.is_finished() && is_busy(lock.try_read().await));
    drop(reading);
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn whoever_is_dropped_while_it_downgrades_or_releases_holds_nothing() {
    let store = store();
    let locks = locks(&store, "a");
    let lock = locks.rw_lock("x").unwrap();
    // Dropped after so many turns, one more each time, until the turns suffice.
    for downgrades in [true, false] {
        let mut turns = 0;
        loop {
            let held = lock.write().await.unwrap();
            let ends = async {
                if downgrades {
                    drop(held.downgrade().await.unwrap());
                } else {
                    assert_eq!(held.release().await.unwrap(), LockRelease::Released);
                }
            };
            let mut ends = Box::pin(ends);
            let mut is_over = false;
            for _ in 0..turns {
                is_over = ends.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                if is_over {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(ends);
            until_queued(&locks, "x", 0).await;
            if is_over {
                break;
            }
            turns += 1;
        }
        assert!(turns > 1, "it was dropped midway");
    }
}

/// What a wait goes through until it holds: nothing, whoever was before it, or one that leaves while it waits.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nobody,
    Another,
}

#[tokio::test]
async fn whoever_is_dropped_after_any_number_of_turns_while_it_asks_holds_nothing_and_stands_nowhere() {
    let store = store();
    let others = locks(&store, "b");
    // Whose calls are on their way for some turns, and so are their answers.
    let locks = Locks::builder(Arc::new(Layered::new(store, Far)), "a").build().unwrap();
    for (several, before) in
        [(false, Before::Nobody), (false, Before::Another), (true, Before::Nobody), (true, Before::Another)]
    {
        let mut turns = 0;
        loop {
            let mut first = match before {
                Before::Nobody => None,
                Before::Another => Some(others.mutex("x").unwrap().lock().await.unwrap()),
            };
            let asks = async {
                let request = locks.request().exclusive("x").unwrap();
                let request = if several { request.shared("y").unwrap().permits("z", 1, 2).unwrap() } else { request };
                request.lock().await.unwrap()
            };
            let mut asks = Box::pin(asks);
            let mut held = None;
            for turn in 0..turns {
                if let Poll::Ready(granted) = asks.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    held = Some(granted);
                    break;
                }
                tokio::task::yield_now().await;
                // Half of the turns are spent in the queue, the others while it is granted.
                if turn == QUEUEING {
                    first.take();
                }
            }
            let is_over = held.is_some();
            drop((asks, held));
            // One release of whoever was before it, and nothing is left.
            drop(first);
            for lock in ["x", "y", "z"] {
                until_queued(&locks, lock, 0).await;
            }
            let next = others.request().exclusive("x").unwrap().exclusive("y").unwrap().exclusive("z").unwrap();
            drop(next.try_lock().await.expect("all of it is free"));
            for lock in ["x", "y", "z"] {
                until_queued(&locks, lock, 0).await;
            }
            if is_over {
                break;
            }
            turns += 1;
            assert!(turns < 1_000, "{before:?}: it is never ready");
        }
        assert!(turns > 1, "{before:?}: it was dropped midway");
    }
}

/// So many turns are more than a request needs to stand in its queues.
const QUEUEING: i32 = 24;

/// A store that is some turns away, each way.
#[derive(Debug)]
struct Far;

#[async_trait::async_trait]
impl Layer for Far {
    async fn around<'a, T: Send + 'a>(&'a self, _op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let reply = call().await;
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        reply
    }
}

#[tokio::test]
async fn what_is_taken_away_is_told() {
    let store = store();
    let locks = Locks::builder(store.clone(), "a").ttl(BRIEF).build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    let token = held.token();
    store.with_ledger(|ledger, _| ledger.forget_lock(&LockName::new("x").unwrap()));
    let other = self::locks(&store, "b").mutex("x").unwrap().lock().await.unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(60), held.lost()).await.expect("its loss is told");
    assert_eq!(lost, Standing::Lost);
    assert_eq!(held.standing(), Standing::Lost);
    token.cancelled().await;
    let LockRelease::Overtaken { by: Some(by) } = held.release().await.unwrap() else { panic!() };
    assert_eq!(by.node.as_str(), "b");
    assert_eq!(other.standing(), Standing::Held);
}

#[cfg(feature = "daemon")]
#[tokio::test]
async fn a_wait_that_is_over_has_left_the_queue() {
    let store = store();
    let locks = locks(&store, "a");
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    let asking = || locks.request().exclusive("x").unwrap();
    assert!(asking().lock_until(true, until_queued(&locks, "x", 2)).await.unwrap().is_none());
    assert_eq!(locks.list().await.unwrap()[0].entries.len(), 1);
    assert!(is_busy(asking().lock_until(false, std::future::pending()).await.map(Option::unwrap)));
    drop(held);
    drop(asking().lock_until(true, std::future::pending()).await.unwrap().unwrap());
}

/// A store that is away for some of the calls.
#[cfg(feature = "daemon")]
mod away {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::store::{Applied, ErrorKind, StoreError};

    /// So many calls, from now on, have no answer.
    #[derive(Debug, Default)]
    struct Away(AtomicU32);

    #[async_trait]
    impl Layer for Arc<Away> {
        async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
            match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
                Ok(_) => Err(StoreError::new(ErrorKind::Unavailable, Applied::No, op, location, "away")),
                Err(_) => call().await,
            }
        }
    }

    /// A client of the same store whose calls can be lost, and asks so for a while.
    fn behind(store: &Arc<MemoryStore>) -> (Locks, Arc<Away>) {
        let away = Arc::<Away>::default();
        let layered = Arc::new(Layered::new(store.clone(), Arc::clone(&away)));
        let wait = Duration::from_millis(300);
        (Locks::builder(layered, "b").store_wait(wait).build().unwrap(), away)
    }

    async fn until_asked(away: &Away, left: u32) {
        while away.0.load(Ordering::Relaxed) > left {
            tokio::task::yield_now().await;
        }
        // The answer is heard, too.
        tokio::task::yield_now().await;
    }

    async fn asks(locks: &Locks, end: impl Future<Output = ()>) -> Result<Option<Held>, TryLockError> {
        locks.request().exclusive("x").unwrap().lock_until(true, end).await
    }

    fn is_away(asked: Result<Option<Held>, TryLockError>) -> bool {
        matches!(asked, Err(TryLockError::Lock(LockError::Store(error))) if error.kind == ErrorKind::Unavailable)
    }

    #[tokio::test]
    async fn who_gives_up_before_the_store_has_answered_is_told_of_the_store_and_not_of_others() {
        let (locks, away) = behind(&store());
        away.0.store(1_000, Ordering::Relaxed);
        assert!(is_away(asks(&locks, until_asked(&away, 999)).await));
    }

    #[tokio::test]
    async fn who_gives_up_in_the_queue_while_the_store_is_away_is_told_so() {
        let store = store();
        let (first, (locks, away)) = (self::locks(&store, "a"), behind(&store));
        let held = first.mutex("x").unwrap().lock().await.unwrap();
        let end = async {
            until_queued(&first, "x", 2).await;
            away.0.store(1_000, Ordering::Relaxed);
        };
        assert!(is_away(asks(&locks, end).await));
        drop(held);
    }

    #[tokio::test]
    async fn a_store_that_has_said_since_that_others_hold_is_not_away() {
        let store = store();
        let (first, (locks, away)) = (self::locks(&store, "a"), behind(&store));
        let held = first.mutex("x").unwrap().lock().await.unwrap();
        away.0.store(1, Ordering::Relaxed);
        assert!(matches!(asks(&locks, until_two_stand_there(&first)).await, Ok(None)));
        drop(held);
    }

    /// As long as it takes until a call that failed is made again.
    async fn until_two_stand_there(locks: &Locks) {
        while locks.list().await.unwrap().iter().all(|record| record.entries.len() < 2) {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(feature = "daemon")]
#[tokio::test]
async fn what_is_held_is_believed_in_until_its_loss_is_known() {
    let store = store();
    let locks = Locks::builder(store.clone(), "a").ttl(BRIEF).build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    let mut trust = held.trust();
    let first = trust.borrow_and_update().unwrap();
    trust.changed().await.unwrap();
    assert!(trust.borrow_and_update().unwrap().deadline() > first.deadline(), "renewed");
    store.with_ledger(|ledger, _| ledger.forget_lock(&LockName::new("x").unwrap()));
    drop(self::locks(&store, "b").mutex("x").unwrap().lock().await.unwrap());
    assert_eq!(held.lost().await, Standing::Lost);
    assert!(trust.wait_for(Option::is_none).await.is_ok());
}

#[tokio::test]
async fn five_hundred_waiters_are_all_served() {
    let store = store();
    // Nobody's beat comes within the bound: each is served because it is told.
    let locks = Locks::builder(store.clone(), "a").ttl(Duration::from_secs(3_600)).build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    let waiters: Vec<_> = (0..500)
        .map(|_| {
            let mutex = locks.mutex("x").unwrap();
            tokio::spawn(async move { mutex.lock().await.unwrap().release().await.unwrap() })
        })
        .collect();
    until_queued(&locks, "x", 501).await;
    drop(held);
    for waiter in waiters {
        let served = tokio::time::timeout(Duration::from_secs(60), waiter).await.expect("each is told");
        assert_eq!(served.unwrap(), LockRelease::Released);
    }
}

#[test]
fn what_no_client_may_be_is_refused() {
    let refused = |builder: super::LocksBuilder| builder.build().unwrap_err();
    let store = store();
    assert!(matches!(refused(Locks::builder(store.clone(), "")), BuildError::Name(_)));
    let short = Locks::builder(store.clone(), "a").ttl(Duration::from_millis(499));
    assert!(matches!(refused(short), BuildError::Limit { what: "ttl", .. }));
    let locks = locks(&store, "a");
    assert!(locks.mutex("A").is_err() && locks.semaphore("a", 0).is_err());
}

#[tokio::test]
async fn who_was_stopped_past_the_lease_is_in_doubt_before_any_task_has_had_a_turn() {
    let store = store();
    let clock = Arc::new(ManualClock::at("2026-11-21T14:00:00Z".parse().unwrap()));
    let locks = Locks::builder(store, "a").clock(clock.clone()).build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    clock.advance(Duration::from_secs(28));
    assert_eq!(held.standing(), Standing::Held);
    clock.advance(Duration::from_secs(1));
    assert_eq!(held.standing(), Standing::InDoubt);
}

#[test]
fn where_the_runtime_is_gone_nothing_is_held() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let held = runtime.block_on(async { locks(&store(), "a").mutex("x").unwrap().lock().await.unwrap() });
    let token = held.token();
    assert_eq!((held.standing(), token.is_cancelled()), (Standing::Held, false));
    drop(runtime);
    assert_eq!((held.standing(), token.is_cancelled()), (Standing::InDoubt, true));
}

#[tokio::test]
async fn what_was_spawned_under_the_lock_is_told_that_it_is_left() {
    let held = locks(&store(), "a").mutex("x").unwrap().lock().await.unwrap();
    let token = held.token();
    held.release().await.unwrap();
    assert!(token.is_cancelled());
}

#[tokio::test]
async fn a_writer_that_was_overtaken_shares_nothing() {
    let (store, name) = (store(), LockName::new("x").unwrap());
    let (a, b) = (locks(&store, "a"), locks(&store, "b"));
    for somebody_holds in [false, true] {
        let held = a.rw_lock("x").unwrap().write().await.unwrap();
        store.with_ledger(|ledger, now| ledger.expire_lock(&name, None, now));
        let other = b.rw_lock("x").unwrap().write().await.unwrap();
        let kept = somebody_holds.then_some(other);
        assert!(matches!(held.downgrade().await, Err(LockError::Lost)), "{somebody_holds}");
        drop(kept);
        until_queued(&a, "x", 0).await;
    }
}
