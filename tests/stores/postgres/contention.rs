//! Others at the same rows: their steps come first, and the call is done after them, once.

use std::time::Duration;

use cronward::store::{Applied, Claim, ErrorKind, Renewal};

use crate::postgres::bench::{Database, granted, open_within, request, run, slot};

/// Sessions by hand: the row changes after it was read and before it is written.
#[tokio::test]
async fn a_step_that_another_comes_before_is_judged_anew() {
    let database = Database::new().await;
    let store = database.store().await;
    let (job, first) = (slot("job"), request(&slot("job"), 1));
    let lease = granted(&*store, &first).await;
    let mut other = database.connect().await;
    run(&mut other, "BEGIN; UPDATE cronward_slots SET until_ms = 1, version = version + 1").await;
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
    database.before_each_write("PERFORM pg_advisory_xact_lock(42);").await;
    let mut gate = database.connect().await;
    run(&mut gate, "SELECT pg_advisory_lock(42)").await;
    let claiming = [1, 2].map(|claimer| {
        let (store, request) = (store.clone(), request(&job, claimer));
        tokio::spawn(async move { store.claim(&request).await.unwrap() })
    });
    database.until_waiting(2).await;
    run(&mut gate, "SELECT pg_advisory_unlock(42)").await;
    let [one, two] = claiming;
    let answers = [one.await.unwrap(), two.await.unwrap()];
    let winners = answers.iter().filter(|claim| matches!(claim, Claim::Claimed { attempt: 1, .. })).count();
    let losers = answers.iter().filter(|claim| matches!(claim, Claim::Held { .. })).count();
    assert_eq!((winners, losers), (1, 1), "{answers:?}");
}

/// Two sessions each hold what the other waits for; the server ends the store's transaction.
#[tokio::test]
async fn a_deadlock_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    // A session looks for a deadlock once, so long after it began to wait: by then the other has to wait, too.
    database.sql(&format!("ALTER DATABASE {} SET deadlock_timeout = '2s'", database.name)).await;
    let store = database.store().await;
    let (job, first) = (slot("job"), request(&slot("job"), 1));
    let lease = granted(&*store, &first).await;
    database.before_each_write("PERFORM pg_advisory_xact_lock(42);").await;
    let mut other = database.connect().await;
    run(&mut other, "SET deadlock_timeout = '1h'; BEGIN; SELECT pg_advisory_xact_lock(42)").await;
    let renewing = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.renew(&lease).await }
    });
    // The store has the row and waits for the other's lock; now the other waits for the row.
    database.until_waiting(1).await;
    run(&mut other, "DELETE FROM cronward_slots WHERE false; UPDATE cronward_slots SET attempts = attempts").await;
    run(&mut other, "COMMIT").await;
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Renewed);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    crate::postgres::bench::eventually("the deadlock is counted", async || database.number(deadlocks).await == 1).await;
    assert_eq!(store.inspect(&[job]).await.unwrap().1[0].attempts, 1);
}

#[tokio::test]
async fn a_serialization_failure_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    database.sql("CREATE SEQUENCE tries").await;
    database
        .before_each_write("IF nextval('tries') < 4 THEN RAISE EXCEPTION 'told to' USING ERRCODE = '40001'; END IF;")
        .await;
    assert!(matches!(
        store.claim(&request(&slot("job"), 1)).await.unwrap(),
        Claim::Claimed { attempt: 1, used: 1, .. }
    ));
    assert_eq!(database.number("SELECT last_value FROM tries").await, 4);
}

#[tokio::test]
async fn a_row_that_somebody_keeps_locked_ends_the_call_in_time() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let mut other = database.connect().await;
    run(&mut other, "BEGIN; SELECT * FROM cronward_slots FOR UPDATE").await;
    let hasty = open_within(&database.url(), Duration::from_millis(300));
    let error = hasty.renew(&lease).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    // The server gives the statement up as well: nothing of it comes later.
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    crate::postgres::bench::eventually("nobody waits", async || database.number(waiting).await == 0).await;
    run(&mut other, "ROLLBACK").await;
    // It has to connect anew, in 300 ms.
    let renewed = async || hasty.renew(&lease).await.is_ok_and(|renewal| renewal == Renewal::Renewed);
    crate::postgres::bench::eventually("the lease is renewed", renewed).await;
}

#[tokio::test]
async fn a_refused_write_was_not_applied() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each_write("RAISE EXCEPTION 'told to' USING ERRCODE = '53100';").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
}
