//! Very many who wait in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cronward::lock::Locks;
use cronward::{StoreOptions, open_locks};
use tokio::task::JoinSet;

use crate::inconclusive::found;
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::wait;

/// A queue is read and written whole but for Redis, whose entries stand by themselves: what each costs grows with the others.
const WAITERS: usize = 24;

pub(super) fn many_waiters_in_one_process_are_all_served(_: &Place, store: &SharedStore) {
    all_are_served(store.url(), WAITERS, || {});
}

/// One after the other. `once_they_wait` looks at the server.
pub(super) fn all_are_served(url: &str, number: usize, once_they_wait: impl FnOnce()) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // No call fails because the machine is slow.
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(20));
    let store = runtime.block_on(open_locks(url, options)).unwrap();
    let locks = runtime.block_on(async { Locks::builder(store, "a").ttl(Duration::from_secs(120)).build().unwrap() });
    let held = runtime.block_on(locks.mutex("x").unwrap().lock()).unwrap();
    let holding = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..number {
        let (mutex, holding) = (locks.mutex("x").unwrap(), Arc::clone(&holding));
        let waits = async move {
            let held = mutex.lock().await.unwrap();
            let others = holding.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            holding.fetch_sub(1, Ordering::SeqCst);
            held.release().await.unwrap();
            others
        };
        waiters.spawn_on(waits, runtime.handle());
    }
    let queued = || runtime.block_on(locks.list()).unwrap().iter().map(|lock| lock.entries.len()).sum::<usize>();
    wait::until_true("all of them wait", || queued() == number + 1);
    once_they_wait();
    runtime.block_on(async {
        held.release().await.unwrap();
        let next = async |waiters: &mut JoinSet<usize>| tokio::time::timeout(wait::LIMIT, waiters.join_next()).await;
        while let Some(others) = next(&mut waiters).await.expect("another one is served") {
            if others.unwrap() > 0 {
                found("two held at once".to_owned());
            }
        }
    });
}
