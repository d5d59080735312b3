//! Another process holds the file's lock.

use std::sync::Arc;
use std::time::Duration;

use cronward::slot::Mark;
use cronward::store::sql::SqliteStore;
use cronward::store::{Applied, Claim, ErrorKind, Renewal, Store, StoreOptions};
use futures_util::FutureExt;
use sqlx::Connection;

use crate::lock_words::each_is_served_once;
use crate::sqlite::bench::{assert_clear, grant, open, place, raw, request, slot, sql, url};

#[tokio::test]
async fn of_those_who_want_locks_at_once_one_holds_and_nobody_is_lost() {
    let place = place();
    each_is_served_once(&[Arc::new(open(&place.path).await), Arc::new(open(&place.path).await)]).await;
}

#[tokio::test]
async fn a_claim_waits_for_another_process_that_writes() {
    let place = place();
    let store = open(&place.path).await;
    // A reader that has begun: an upgrade of its snapshot would fail at once, BEGIN IMMEDIATE has none.
    store.inspect(&[slot("a")]).await.unwrap();
    let mut other = raw(&place.path).await;
    sql(&mut other, "BEGIN IMMEDIATE; INSERT INTO pauses VALUES ('default', 'x', 0, 0, '{}')").await;
    let asked = request(&slot("a"), "a");
    let claim = store.claim(&asked);
    tokio::pin!(claim);
    // It cannot be answered before the other commits, however long that takes.
    assert!(tokio::time::timeout(Duration::from_millis(150), &mut claim).await.is_err());
    sql(&mut other, "COMMIT").await;
    assert!(matches!(claim.await.unwrap(), Claim::Claimed { attempt: 1, .. }));
}

#[tokio::test]
async fn a_file_that_stays_locked_ends_a_call_in_time_with_nothing_applied() {
    let place = place();
    open(&place.path).await;
    // A busy machine opens a file within it.
    let hasty = StoreOptions::default().with_op_timeout(Duration::from_secs(3));
    let store = SqliteStore::open(&url(&place.path), hasty).await.unwrap();
    let mut other = raw(&place.path).await;
    sql(&mut other, "BEGIN IMMEDIATE").await;
    let error = store.claim(&request(&slot("a"), "a")).await.unwrap_err();
    assert_clear(&error, ErrorKind::Timeout, &place.path, "locked");
    assert_eq!((error.applied, error.is_transient()), (Applied::No, true));
    sql(&mut other, "ROLLBACK").await;
    // The lock is free again, and so is the store: this is still the first attempt. A busy machine may need more than one call.
    let asked = request(&slot("a"), "a");
    let answered = async {
        loop {
            if let Ok(claim) = store.claim(&asked).await {
                break claim;
            }
        }
    };
    let claim = tokio::time::timeout(Duration::from_secs(20), answered).await.unwrap();
    assert!(matches!(claim, Claim::Claimed { attempt: 1, .. }), "{claim:?}");
}

#[tokio::test]
async fn reading_does_not_wait_for_a_process_that_writes() {
    let place = place();
    let store = open(&place.path).await;
    let mut other = raw(&place.path).await;
    sql(&mut other, "BEGIN IMMEDIATE").await;
    let (_, records) = store.inspect(&[slot("a")]).await.unwrap();
    assert_eq!(records[0].mark, Mark::Free);
    other.close().await.unwrap();
}

#[tokio::test]
async fn a_call_that_was_given_up_half_way_is_one_grant_when_repeated() {
    let place = place();
    let store = open(&place.path).await;
    for index in 0..200 {
        // Dropped after none, one, two … polls: somewhere between its turn and the commit.
        let asked = request(&slot(&format!("a-{index}")), "a");
        let mut claim = Box::pin(store.claim(&asked));
        for _ in 0..index % 20 {
            if claim.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(claim);
        let again = store.claim(&asked).await.unwrap();
        assert!(matches!(again, Claim::Claimed { attempt: 1, used: 1, .. }), "{index}: {again:?}");
    }
}

#[tokio::test]
async fn after_the_file_was_removed_the_store_goes_on_with_the_new_one() {
    let place = place();
    let (one, two) = (open(&place.path).await, open(&place.path).await);
    let lease = grant(&one, &slot("a")).await;
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", place.path.display())).unwrap();
    }
    // Both look at the same new file, not each at its own memory of the old one.
    assert_eq!(one.renew(&lease).await.unwrap(), Renewal::Restored);
    assert!(matches!(two.claim(&request(&slot("a"), "b")).await.unwrap(), Claim::Held { .. }));
}

#[tokio::test]
async fn a_call_that_was_given_up_before_its_turn_is_never_done() {
    let place = place();
    let store = open(&place.path).await;
    let mut other = raw(&place.path).await;
    sql(&mut other, "BEGIN IMMEDIATE").await;
    let asked = request(&slot("a"), "a");
    assert!(tokio::time::timeout(Duration::from_millis(50), store.claim(&asked)).await.is_err());
    sql(&mut other, "ROLLBACK").await;
    grant(&store, &slot("after")).await;
    let (_, records) = store.inspect(&[slot("a")]).await.unwrap();
    assert_eq!((records[0].attempts, &records[0].mark), (0, &Mark::Free));
}

#[tokio::test]
async fn a_limit_may_be_as_long_as_one_likes() {
    let place = place();
    let patient = StoreOptions::default().with_op_timeout(Duration::MAX).with_retention(Duration::MAX);
    let store = SqliteStore::open(&url(&place.path), patient).await.unwrap();
    assert_eq!(grant(&store, &slot("a")).await.attempt, 1);
    assert_eq!(store.purge().await.unwrap(), 0);
}
