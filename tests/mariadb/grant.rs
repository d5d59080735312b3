//! The claim in one statement, where MariaDB differs: what it writes, and that it need not tell when.

use cronward::store::Applied;

use crate::bench::{Database, granted, request, slot};

/// A slot's row with its run, without what differs between two grants.
pub(crate) const GRANTED: &str = "SELECT concat_ws(' ', end_ms, counter, forgiven, mark, mark_node, mark_attempt,
        mark_until_ms - mark_since_ms, mark_since_ms <= version, coalesce(verdict, 'none'), touched_ms,
        run_attempt, run_token = mark_token, json_value(run_record, '$.claimed_ms') = mark_since_ms,
        replace(run_record, mark_since_ms, 'then'))
    FROM cronward_slots WHERE job = 'NAME'";

/// Where the owners of the database have a trigger on the table, the server does not tell the instant of the grant.
#[tokio::test]
async fn a_grant_whose_instant_is_not_told_is_read_back() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT", "SET @noticed = 1").await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    assert_eq!(lease.attempt, 1);
    let since = "SELECT mark_since_ms FROM cronward_slots";
    assert_eq!(database.number(since).await, lease.claimed_at.timestamp_millis());
}

/// And where the reading back fails, nobody is told that nothing was granted.
#[tokio::test]
async fn a_grant_whose_instant_is_not_told_may_have_been_applied() {
    let database = Database::new().await;
    let store = database.store().await;
    // It takes a moment, so that the lease is prolonged when it is read back.
    database.before_each("INSERT", "SET @slept = sleep(0.01)").await;
    database.before_each("UPDATE", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'told to'").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!(error.applied, Applied::Maybe, "{error}");
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots WHERE mark = 'lease'").await, 1);
}
