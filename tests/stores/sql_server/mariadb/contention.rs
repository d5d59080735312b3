//! Deadlocks, and what else the server ends a transaction for.

use cronward::store::{Claim, Renewal};

use super::suite::database::{Database, granted, request, run, slot};

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
