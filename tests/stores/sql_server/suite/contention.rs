//! Others at the same rows: their steps come first, and the call is done after them, once.

use std::time::Duration;

use cronward::store::{Applied, Claim, ErrorKind, Renewal};

use super::database::{Database, eventually, granted, open_within, request, run, slot, until_seen};
use super::dialect::{CLOSE_GATE, DISK_IS_FULL, OPEN_GATE, WAIT_AT_GATE};

/// Sessions by hand: the row changes after it was read and before it is written.
#[tokio::test]
async fn a_step_that_another_comes_before_is_judged_anew() {
    let database = Database::new().await;
    let store = database.store().await;
    let (job, first) = (slot("job"), request(&slot("job"), 1));
    let lease = granted(&*store, &first).await;
    let mut other = database.connect().await;
    run(&mut other, "START TRANSACTION").await;
    run(&mut other, "UPDATE cronward_slots SET until_ms = 1, version = version + 1").await;
    // It reads the lease that stands, and then waits for the row.
    let renewing = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.renew(&lease).await }
    });
    database.until_waiting(1).await;
    run(&mut other, "COMMIT").await;
    // The lease had lapsed by the time of the write, so it was restored and not only prolonged.
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Restored);
    assert!(matches!(store.claim(&request(&job, 2)).await.unwrap(), Claim::Held { .. }));
}

/// A row that appears between reading and writing.
#[tokio::test]
async fn two_first_claims_of_a_slot_are_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    let job = slot("job");
    // Both have read that there is no row when the first of them writes it.
    database.before_each("INSERT", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let claiming = [1, 2].map(|claimer| {
        let (store, request) = (store.clone(), request(&job, claimer));
        tokio::spawn(async move { store.claim(&request).await.unwrap() })
    });
    database.until_waiting(2).await;
    run(&mut gate, OPEN_GATE).await;
    let [one, two] = claiming;
    let answers = [one.await.unwrap(), two.await.unwrap()];
    let winners = answers.iter().filter(|claim| matches!(claim, Claim::Claimed { attempt: 1, .. })).count();
    let losers = answers.iter().filter(|claim| matches!(claim, Claim::Held { .. })).count();
    assert_eq!((winners, losers), (1, 1), "{answers:?}");
}

#[tokio::test]
async fn a_row_that_somebody_keeps_locked_ends_the_call_in_time() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let mut other = database.connect().await;
    run(&mut other, "START TRANSACTION").await;
    run(&mut other, "SELECT * FROM cronward_slots FOR UPDATE").await;
    let hasty = open_within(&database.url(), Duration::from_millis(500));
    let error = hasty.renew(&lease).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    // The server gives the statement up as well: nothing of it comes later.
    until_seen("nobody waits", async || database.waiting().await == 0).await;
    run(&mut other, "ROLLBACK").await;
    // It has to connect anew, in the same time.
    let renewed = async || hasty.renew(&lease).await.is_ok_and(|renewal| renewal == Renewal::Renewed);
    eventually("the lease is renewed", renewed).await;
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
}

#[tokio::test]
async fn a_refused_write_was_not_applied() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT", DISK_IS_FULL).await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
}
