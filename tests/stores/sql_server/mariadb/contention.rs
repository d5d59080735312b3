//! Deadlocks, and what else the server ends a transaction for.

use cronward::store::{Claim, ClaimRequest, Renewal};

use super::dialect;
use super::suite::database::{Database, granted, open, request, run, slot};

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

/// A first claim of a job whose slots run one at a time makes the slot's row before it is granted. What somebody else has written
/// there by then is left alone, also where their clock says almost the same.
#[tokio::test]
async fn a_row_that_somebody_writes_before_a_first_claim_makes_it_is_not_taken_for_an_untouched_one() {
    let database = Database::alone_on(dialect::start()).await;
    database.store().await;
    database.sql(&dialect::user_of_all("plain", &database.name)).await;
    let (second, url) = (crate::words::now().timestamp(), database.url_of("plain"));
    // The clock stands still for each of two users, a millisecond apart.
    let mut stores = Vec::new();
    for clock in [100, 101] {
        database.sql(&format!("SET GLOBAL init_connect = 'SET timestamp = {second}.{clock}'")).await;
        let store = open(&url);
        store.inspect(&[]).await.unwrap();
        stores.push(store);
    }
    let [writer, claimer] = stores.try_into().unwrap();
    let gate_of_the_untouched = format!("BEGIN IF new.state = 'none' THEN {}; END IF; END", dialect::WAIT_AT_GATE);
    database.before_each("INSERT", &gate_of_the_untouched).await;
    let mut gate = database.connect().await;
    run(&mut gate, dialect::CLOSE_GATE).await;
    let claiming = tokio::spawn(async move {
        let alone = ClaimRequest { exclusive: true, ..request(&slot("job"), 1) };
        claimer.claim(&alone).await.unwrap()
    });
    database.until_waiting(1).await;
    granted(&*writer, &request(&slot("job"), 2)).await;
    run(&mut gate, dialect::OPEN_GATE).await;
    let answer = claiming.await.unwrap();
    assert!(matches!(answer, Claim::Held { .. }), "{answer:?}");
}
