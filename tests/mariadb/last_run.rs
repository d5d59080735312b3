//! The run that was written last stands in the slot's row, the others beside it: whichever it is, each is there once, as it was
//! written last.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::sql::mysql;
use cronward::store::{ClaimRequest, Settlement, Store, StoreOptions};

use crate::bench::{Database, LIMIT, failed, granted, open, request, slot, slot_in};
use crate::words::ended;

/// Each run of the slot `job`: attempt, outcome.
async fn runs(store: &dyn Store) -> Vec<(u32, Option<Outcome>)> {
    let (_, records) = store.inspect(&[slot("job")]).await.unwrap();
    records[0].runs.iter().map(|run| (run.attempt, run.outcome)).collect()
}

#[tokio::test]
async fn a_slot_that_is_done_at_once_is_one_row() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    assert_eq!(runs(&*store).await, [(1, None)]);
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(runs(&*store).await, [(1, Some(Outcome::Success))]);
    assert_eq!(database.number("SELECT count(*) FROM cronward_runs").await, 0);
}

/// The first holder comes back after others have run: its end takes the row, and theirs are kept.
#[tokio::test]
async fn ends_that_come_late_displace_no_other() {
    let database = Database::new().await;
    let store = database.store().await;
    let mut leases = Vec::new();
    for claimer in 1..=3 {
        let lease = granted(&*store, &request(&slot("job"), claimer)).await;
        database.sql("UPDATE cronward_slots SET mark_until_ms = 0, version = version + 1").await;
        leases.push(lease);
    }
    assert_eq!(runs(&*store).await, [(1, None), (2, None), (3, None)]);
    for lease in &leases {
        store.fail(lease, &failed(lease), Duration::ZERO).await.unwrap();
        let outcome = |attempt| (attempt <= lease.attempt).then_some(Outcome::Failure);
        assert_eq!(runs(&*store).await, [1, 2, 3].map(|attempt| (attempt, outcome(attempt))));
        assert_eq!(database.number("SELECT run_attempt FROM cronward_slots").await, i64::from(lease.attempt));
    }
}

/// A node that was killed between the two statements of a retry has left a copy: the row is what counts, until it is displaced.
#[tokio::test]
async fn a_copy_that_nothing_followed_hides_nothing() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let copy = "INSERT INTO cronward_runs SELECT namespace, job, start_ms, run_attempt, run_token, run_record FROM cronward_slots";
    database.sql(copy).await;
    assert_eq!(runs(&*store).await, [(1, None)]);
    let settled = store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(settled, Settlement::Recorded);
    assert_eq!(runs(&*store).await, [(1, Some(Outcome::Success))]);
    // What is judged is the row as well: a success is not overwritten.
    open(&database.url()).fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    assert_eq!(runs(&*store).await, [(1, Some(Outcome::Success))]);
    assert_eq!(database.number("SELECT count(*) FROM cronward_runs").await, 1);
}

/// What is outlasted goes with the first write after it, the run in the row too.
#[tokio::test]
async fn an_outlasted_run_is_forgotten_wherever_it_stands() {
    let database = Database::new().await;
    let retention = Duration::from_millis(1);
    let store =
        mysql::open(&database.url(), StoreOptions { retention, op_timeout: LIMIT, ..StoreOptions::default() }).unwrap();
    let over = slot_in("job", -3);
    let past = |claimer| ClaimRequest { past: true, ..request(&over, claimer) };
    for claimer in 1..=3 {
        // Numbers begin anew, because nothing of the run before is known.
        let lease = granted(&*store, &past(claimer)).await;
        assert_eq!(lease.attempt, 1);
        database.sql("UPDATE cronward_slots SET mark_until_ms = 0, touched_ms = 1, version = version + 1").await;
        assert_eq!(database.number("SELECT count(*) FROM cronward_runs").await, 0);
    }
    // An operator's verb writes no run.
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots WHERE run_record IS NOT NULL").await, 1);
    store.reset(&over, &crate::bench::audit("reset")).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots WHERE run_record IS NOT NULL").await, 0);
}

/// The default collation differs between the versions of the servers that made the table and that added to it.
#[tokio::test]
async fn tables_of_two_collations_are_read() {
    let database = Database::new().await;
    let store = database.store().await;
    let other =
        "ALTER TABLE cronward_runs MODIFY record LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL";
    database.sql(other).await;
    for claimer in 1..=2 {
        let lease = granted(&*store, &request(&slot("job"), claimer)).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    assert_eq!(runs(&*store).await, [(1, Some(Outcome::Failure)), (2, Some(Outcome::Failure))]);
}
