//! Locks: others at the same rows, all of them or none, and what a call costs.

use std::sync::Arc;
use std::time::Duration;

use cronward::job::LockName;
use cronward::lock::Locks;
use cronward::resource::{AcquireRequest, Acquired, LockRelease, LockRenewal};
use cronward::store::{LockStore, StoreOptions, open_locks};

use super::database::{Database, run};
use super::dialect::{CONNECTIONS, SEVERAL_LOCKS};
use crate::lock_words::{asking, each_is_served_once, held};
use crate::proxy::{Mode, Proxy};
use crate::round_trips::round_trips;

/// Added in each direction: much more than a call takes, also on a busy machine.
const DELAY: Duration = Duration::from_millis(120);

pub(crate) async fn locks_at(url: &str) -> Arc<dyn LockStore> {
    open_locks(url, StoreOptions::default().with_op_timeout(Duration::from_secs(20))).await.unwrap()
}

async fn entries(store: &dyn LockStore, lock: &str) -> usize {
    let (_, records) = store.locks(&[LockName::new(lock).unwrap()]).await.unwrap();
    records[0].entries.len()
}

/// A second one is for hints, and those are for waiters.
#[tokio::test]
async fn a_client_that_finds_its_lock_free_has_one_connection() {
    let database = Database::new().await;
    let client = Locks::builder(locks_at(&database.url()).await, "a").build().unwrap();
    let held = client.mutex("free").unwrap().lock().await.unwrap();
    // The client's, and that of this question.
    assert_eq!(database.number(CONNECTIONS).await, 2);
    held.release().await.unwrap();
}

/// Sessions by hand: of two rows one changes after both were read and before they are written.
#[tokio::test]
async fn of_several_locks_of_which_one_was_taken_meanwhile_none_is_written() {
    let database = Database::new().await;
    let store = locks_at(&database.url()).await;
    let first = held(&*store, &asking(1, &["a", "b"])).await;
    database.sql("CREATE TABLE kept AS SELECT * FROM cronward_locks").await;
    assert_eq!(store.release(&first.exit(false)).await.unwrap(), LockRelease::Released);
    let mut other = database.connect().await;
    run(&mut other, "START TRANSACTION").await;
    let taken = "UPDATE cronward_locks SET version = version + 1,
        document = (SELECT document FROM kept WHERE kept.lock = 'b') WHERE cronward_locks.lock = 'b'";
    run(&mut other, taken).await;
    // It reads that both are free, and then waits for the second row.
    let asking_both = tokio::spawn({
        let (store, request) = (Arc::clone(&store), AcquireRequest { queue: false, ..asking(2, &["a", "b", "c"]) });
        async move { store.acquire(&request).await.unwrap() }
    });
    database.until_waiting(1).await;
    run(&mut other, "COMMIT").await;
    assert!(matches!(asking_both.await.unwrap(), Acquired::Busy { .. }));
    assert_eq!((entries(&*store, "a").await, entries(&*store, "b").await, entries(&*store, "c").await), (0, 1, 0));
}

/// Rows that appear between reading and writing, of locks that nobody had used; and such as change.
#[tokio::test]
async fn of_those_who_want_locks_at_once_one_holds_and_nobody_is_lost() {
    let database = Database::new().await;
    let stores = [locks_at(&database.url()).await, locks_at(&database.url()).await];
    database.store().await;
    each_is_served_once(&stores).await;
}

#[tokio::test]
async fn locks_that_nobody_needs_are_removed_and_others_are_kept() {
    let database = Database::new().await;
    let (store, slots) = (locks_at(&database.url()).await, database.store().await);
    let lease = held(&*store, &asking(1, &["kept"])).await;
    for lock in ["a", "b", "c"] {
        let gone = held(&*store, &asking(7, &[lock])).await;
        store.release(&gone.exit(false)).await.unwrap();
    }
    assert_eq!(store.purge_locks().await.unwrap(), 0);
    let outlasted = "UPDATE cronward_locks SET needed_ms = 0 WHERE cronward_locks.lock IN ('a', 'b')";
    database.sql(outlasted).await;
    assert_eq!(store.purge_locks().await.unwrap(), 2);
    database.sql("UPDATE cronward_locks SET needed_ms = 0 WHERE cronward_locks.lock = 'c'").await;
    slots.purge().await.unwrap();
    let (_, left) = store.locks(&[]).await.unwrap();
    assert_eq!(left.iter().map(|record| record.lock.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(store.renew_lock(&lease).await.unwrap(), LockRenewal::Renewed);
}

#[tokio::test]
async fn a_lock_costs_two_round_trips_and_a_look_one() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store = locks_at(&database.url_by(proxy.port())).await;
    // The connection is made and has seen each statement once.
    let several = ["p", "q", "r"];
    let (one, all) = (held(&*store, &asking(1, &["one"])).await, held(&*store, &asking(2, &several)).await);
    for hold in [&one, &all] {
        assert_eq!(store.renew_lock(hold).await.unwrap(), LockRenewal::Renewed);
    }
    let busy = AcquireRequest { queue: false, ..asking(3, &["one"]) };
    assert!(matches!(store.acquire(&busy).await.unwrap(), Acquired::Busy { .. }));
    proxy.set(Mode::Delay(DELAY));
    let first = round_trips(DELAY, async |turn| {
        held(&*store, &asking(u128::from(turn) + 10, &[&format!("new-{turn}")])).await;
    });
    assert_eq!(first.await, 2, "a lock that nobody had used");
    let renewal = round_trips(DELAY, async |_| {
        store.renew_lock(&one).await.unwrap();
    });
    assert_eq!(renewal.await, 2, "a renewal");
    let renewal = round_trips(DELAY, async |_| {
        store.renew_lock(&all).await.unwrap();
    });
    assert_eq!(renewal.await, SEVERAL_LOCKS, "a renewal of several at once");
    let refusal = round_trips(DELAY, async |_| {
        assert!(matches!(store.acquire(&busy).await.unwrap(), Acquired::Busy { .. }));
    });
    assert_eq!(refusal.await, 1, "one that is taken");
    let look = round_trips(DELAY, async |_| {
        store.locks(&[]).await.unwrap();
    });
    assert_eq!(look.await, 1, "a look at all of them");
}
