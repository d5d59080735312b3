//! Others at the same rows: their steps come first, and the call is done after them, once.

use std::time::Duration;

use cronward::store::{Applied, Claim, ErrorKind, Renewal};

use crate::mariadb::bench::{CLOSE_GATE, Database, OPEN_GATE, WAIT_AT_GATE, granted, open_within, request, run, slot};

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

/// Two sessions each hold a row that the other waits for; the server rolls the smaller transaction back, the store's.
#[tokio::test]
async fn a_deadlock_is_tried_again_and_is_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    database.sql("CREATE TABLE gate (id INT PRIMARY KEY) ENGINE = InnoDB").await;
    database.sql("INSERT INTO gate VALUES (1)").await;
    database.sql("CREATE TABLE much (id INT) ENGINE = InnoDB").await;
    database.before_each("UPDATE", "UPDATE gate SET id = 1 WHERE id = 1").await;
    let mut other = database.connect().await;
    run(&mut other, "START TRANSACTION").await;
    run(&mut other, "SELECT * FROM gate FOR UPDATE").await;
    // Whoever has written less is rolled back.
    run(&mut other, "INSERT INTO much VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)").await;
    let renewing = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.renew(&lease).await }
    });
    // The store has the slot's row and waits for the other's; now the other waits for the slot's.
    database.until_waiting(1).await;
    run(&mut other, "SELECT * FROM cronward_slots FOR UPDATE").await;
    run(&mut other, "COMMIT").await;
    assert_eq!(renewing.await.unwrap().unwrap(), Renewal::Renewed);
    let deadlocks = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
                     WHERE variable_name = 'INNODB_DEADLOCKS'";
    assert!(database.number(deadlocks).await >= 1);
    assert_eq!(store.inspect(&[slot("job")]).await.unwrap().1[0].attempts, 1);
}

/// What a cluster of servers answers at the commit when another of them was first.
#[tokio::test]
async fn a_transaction_that_the_server_rolled_back_is_tried_again() {
    let database = Database::new().await;
    let store = database.store().await;
    database.sql("CREATE SEQUENCE tries").await;
    let body = "BEGIN
        IF nextval(tries) < 4 THEN
            SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'told to';
        END IF;
    END";
    database.before_each("INSERT", body).await;
    assert!(matches!(
        store.claim(&request(&slot("job"), 1)).await.unwrap(),
        Claim::Claimed { attempt: 1, used: 1, .. }
    ));
    assert_eq!(database.number("SELECT nextval(tries)").await, 5);
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
    let waiting = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    // InnoDB answers from a copy that it makes anew only when it was not asked for 100 ms.
    let pause = Duration::from_millis(150);
    crate::mariadb::bench::eventually_each(pause, "nobody waits", async || database.number(waiting).await == 0).await;
    run(&mut other, "ROLLBACK").await;
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
}

#[tokio::test]
async fn a_refused_write_was_not_applied() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT", "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'told to'").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
}
