//! Deadlocks, and what else the server ends a transaction for.

use cronward::store::{Claim, Renewal};

use super::dialect::{CLOSE_GATE, OPEN_GATE, WAIT_AT_GATE};
use super::suite::database::{Database, granted, request, run, slot};

/// Two sessions each hold what the other waits for; the server ends the store's transaction. A session looks for a deadlock once,
/// some time after it began to wait, so the store's last wait begins when the other waits already.
#[tokio::test]
async fn a_deadlock_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    let (job, first) = (slot("job"), request(&slot("job"), 1));
    let lease = granted(&*store, &first).await;
    // Once: the store may have the row again before the other wakes up, and would meet it as before.
    database.sql("CREATE SEQUENCE tries").await;
    let meeting = format!("IF nextval('tries') = 1 THEN {WAIT_AT_GATE} PERFORM pg_advisory_xact_lock(43); END IF;");
    database.before_each("INSERT OR UPDATE", &meeting).await;
    let (mut gate, mut other) = (database.connect().await, database.connect().await);
    run(&mut gate, CLOSE_GATE).await;
    run(&mut other, "SET deadlock_timeout = '1h'; BEGIN; SELECT pg_advisory_xact_lock(43)").await;
    let renewing = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.renew(&lease).await }
    });
    database.until_waiting(1).await;
    // The store has the row; now the other waits for it.
    let meeting = tokio::spawn(async move {
        run(&mut other, "DELETE FROM cronward_slots WHERE false; UPDATE cronward_slots SET attempts = attempts").await;
        run(&mut other, "COMMIT").await;
    });
    database.until_waiting(2).await;
    run(&mut gate, OPEN_GATE).await;
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Renewed);
    meeting.await.unwrap();
    // Neither could go on by itself. The server tells its count of deadlocks ten seconds later; each try is counted at once: the
    // store's two, and the other's one.
    assert_eq!(database.number("SELECT last_value FROM tries").await, 3);
    assert_eq!(store.inspect(&[job]).await.unwrap().1[0].attempts, 1);
}

#[tokio::test]
async fn a_serialization_failure_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    database.sql("CREATE SEQUENCE tries").await;
    database
        .before_each(
            "INSERT OR UPDATE",
            "IF nextval('tries') < 4 THEN RAISE EXCEPTION 'told to' USING ERRCODE = '40001'; END IF;",
        )
        .await;
    assert!(matches!(
        store.claim(&request(&slot("job"), 1)).await.unwrap(),
        Claim::Claimed { attempt: 1, used: 1, .. }
    ));
    assert_eq!(database.number("SELECT last_value FROM tries").await, 4);
}
