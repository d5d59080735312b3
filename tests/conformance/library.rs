//! The library's locks on each store that keeps any: what it does with its own tasks and hints, where the suite asks the store alone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cronward::job::Namespace;
use cronward::lock::{Held, LockError, LockName, LockRelease, Locks, TryLockError};
use cronward::store::conformance::Setup;

/// How long anything may take before it counts as never.
const LIMIT: Duration = Duration::from_secs(60);

/// One case; it panics where something does not hold.
pub(crate) type Body = fn(Bench) -> Pin<Box<dyn Future<Output = ()>>>;

/// Every case with its name.
pub(crate) fn cases() -> [(&'static str, Body); 5] {
    [
        ("library::cancelled_acquire_leaves", |bench| Box::pin(cancelled_acquire_leaves(bench))),
        ("library::release_in_another_task", |bench| Box::pin(release_in_another_task(bench))),
        ("library::watchdog_ends_with_the_guard", |bench| Box::pin(watchdog_ends_with_the_guard(bench))),
        ("library::downgrade", |bench| Box::pin(downgrade(bench))),
        ("library::upgrade_refused_not_hung", |bench| Box::pin(upgrade_refused_not_hung(bench))),
    ]
}

/// A namespace of its own, in which two processes take locks.
pub(crate) struct Bench {
    setup: Arc<dyn Setup>,
    namespace: Namespace,
}

impl Bench {
    pub(crate) fn new(setup: Arc<dyn Setup>, case: &str) -> Self {
        let namespace = case.replace("::", "-").replace('_', "-");
        Self { setup, namespace: Namespace::new(&namespace).unwrap() }
    }

    async fn locks(&self, node: &str) -> Locks {
        let store = self.setup.connect_locks(&self.namespace).await.unwrap();
        Locks::builder(store, node).store_wait(LIMIT).build().unwrap()
    }
}

fn x() -> LockName {
    LockName::new("x").unwrap()
}

fn is_busy(tried: Result<Held, TryLockError>) -> bool {
    matches!(tried, Err(TryLockError::Busy { .. }))
}

async fn in_time<T>(what: &str, outcome: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, outcome).await.unwrap_or_else(|_| panic!("{what}: never"))
}

/// Waits until the queue of `x` has so many entries.
#[allow(clippy::disallowed_methods, reason = "a store tells nobody of what stands in its queues: it is asked again")]
async fn until_queued(locks: &Locks, entries: usize) {
    let queued = async {
        while locks.show(&[x()]).await.unwrap()[0].entries.len() != entries {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    in_time(&format!("{entries} in the queue"), queued).await;
}

async fn cancelled_acquire_leaves(bench: Bench) {
    let (a, b) = (bench.locks("a").await, bench.locks("b").await);
    let mutex = b.mutex("x").unwrap();
    let held = a.mutex("x").unwrap().lock().await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    // Dropped while it asks, while it waits, and when it holds and has not heard of it.
    let mut asked = Box::pin(mutex.lock());
    assert!(matches!(asked.as_mut().poll(&mut context), Poll::Pending));
    drop(asked);
    until_queued(&a, 1).await;
    let mut queued = Box::pin(mutex.lock());
    assert!(matches!(queued.as_mut().poll(&mut context), Poll::Pending));
    until_queued(&a, 2).await;
    drop(queued);
    until_queued(&a, 1).await;
    let mut granted = Box::pin(mutex.lock());
    assert!(matches!(granted.as_mut().poll(&mut context), Poll::Pending));
    until_queued(&a, 2).await;
    assert_eq!(held.release().await.unwrap(), LockRelease::Released);
    drop(granted);
    until_queued(&a, 0).await;
    drop(in_time("it is free", a.mutex("x").unwrap().lock()).await.unwrap());
}

async fn release_in_another_task(bench: Bench) {
    let locks = bench.locks("a").await;
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    until_queued(&locks, 1).await;
    tokio::spawn(async move { drop(held) }).await.unwrap();
    until_queued(&locks, 0).await;
}

async fn watchdog_ends_with_the_guard(bench: Bench) {
    let locks = bench.locks("a").await;
    let mutex = locks.mutex("x").unwrap();
    for round in 0..30 {
        let mut asked = Box::pin(mutex.lock());
        // Where it holds at once, what it holds is dropped with it.
        let is_pending = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        if is_pending && round % 3 == 0 {
            drop(in_time("it is held", asked).await.unwrap());
        }
    }
    until_queued(&locks, 0).await;
    // Whatever were renewed still would keep another process out.
    drop(in_time("it is free", bench.locks("b").await.mutex("x").unwrap().lock()).await.unwrap());
    until_queued(&locks, 0).await;
}

async fn downgrade(bench: Bench) {
    let (a, b) = (bench.locks("a").await, bench.locks("b").await);
    let writing = a.rw_lock("x").unwrap().write().await.unwrap();
    let lock = b.rw_lock("x").unwrap();
    let writer = tokio::spawn({
        let lock = lock.clone();
        async move { lock.write().await.unwrap() }
    });
    until_queued(&a, 2).await;
    let fence = writing.fence();
    let reading = writing.downgrade().await.unwrap();
    assert!(reading.fence() > fence);
    assert!(!writer.is_finished() && is_busy(lock.try_read().await), "no writer comes in between");
    let shared = reading.fence();
    drop(reading);
    let written = in_time("the writer", writer).await.unwrap();
    assert!(written.fence() > shared);
}

async fn upgrade_refused_not_hung(bench: Bench) {
    let (a, b) = (bench.locks("a").await, bench.locks("b").await);
    let lock = a.owner().rw_lock("x").unwrap();
    let own = lock.read().await.unwrap();
    let other = b.rw_lock("x").unwrap().read().await.unwrap();
    let upgraded = in_time("an answer", lock.write()).await;
    assert!(matches!(upgraded, Err(LockError::WouldWaitForItself)), "{upgraded:?}");
    assert_eq!(other.release().await.unwrap(), LockRelease::Released);
    drop(in_time("it is alone", lock.write()).await.unwrap());
    drop(own);
    until_queued(&a, 0).await;
}
