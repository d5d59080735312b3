//! Deadlocks, and what else the server ends a transaction for.

use cronward::store::{Claim, Renewal};

use super::suite::database::{Database, eventually, granted, request, run, slot};

/// Two sessions each hold what the other waits for; the server ends the store's transaction.
#[tokio::test]
async fn a_deadlock_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    // A session looks for a deadlock once, so long after it began to wait: by then the other has to wait, too.
    database.sql(&format!("ALTER DATABASE {} SET deadlock_timeout = '4s'", database.name)).await;
    let store = database.store().await;
    let (job, first) = (slot("job"), request(&slot("job"), 1));
    let lease = granted(&*store, &first).await;
    database.before_each("INSERT OR UPDATE", "PERFORM pg_advisory_xact_lock(42);").await;
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
    // The store may have the row again before the other wakes up.
    eventually("the deadlock is counted", async || database.number(deadlocks).await >= 1).await;
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
