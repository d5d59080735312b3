//! Very many who wait in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cronward::lock::Locks;
use cronward::{StoreOptions, open_locks};

use crate::inconclusive::found;
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::wait;

/// A queue is read and written whole but for Redis, whose entries stand by themselves: what each costs grows with the others.
const WAITERS: usize = 60;

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
    let waiters: Vec<_> = (0..number)
        .map(|_| {
            let (mutex, holding) = (locks.mutex("x").unwrap(), Arc::clone(&holding));
            runtime.spawn(async move {
                let held = mutex.lock().await.unwrap();
                let others = holding.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                holding.fetch_sub(1, Ordering::SeqCst);
                held.release().await.unwrap();
                others
            })
        })
        .collect();
    let queued = || runtime.block_on(locks.list()).unwrap().iter().map(|lock| lock.entries.len()).sum::<usize>();
    wait::until_true("all of them wait", || queued() == number + 1);
    once_they_wait();
    runtime.block_on(async {
        held.release().await.unwrap();
        for waiter in waiters {
            let others = tokio::time::timeout(wait::LIMIT, waiter).await.expect("each is served").unwrap();
            if others > 0 {
                found("two held at once".to_owned());
            }
        }
    });
}
