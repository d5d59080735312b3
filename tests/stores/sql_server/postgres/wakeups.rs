//! Hints by LISTEN and NOTIFY.

use std::time::Duration;

use cronward::store::{Wake, WakeKind, Wakeups};

use super::suite::database::{Database, failed, granted, request, slot};
use super::suite::locks::locks_at;
use crate::lock_words::{hints_come_again, one_is_told_elsewhere};

async fn next(hints: &mut Wakeups) -> Wake {
    tokio::time::timeout(Duration::from_secs(20), hints.recv()).await.expect("a hint").unwrap()
}

#[tokio::test]
async fn a_lost_connection_listens_again_and_says_that_hints_may_be_lost() {
    let database = Database::new().await;
    let (store, other) = (database.store().await, database.store().await);
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let listening = "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                     WHERE datname = current_database() AND query LIKE 'LISTEN%') AS ended";
    assert_eq!(database.number(listening).await, 1);
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let lease = granted(&*other, &request(&slot("job"), 1)).await;
    other.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    let Wake::Slot { job, key, what } = next(&mut hints).await else { panic!("no slot") };
    assert_eq!((job.as_str(), key, what), ("job", lease.slot.key(), WakeKind::Released));
}

#[tokio::test]
async fn what_was_rolled_back_wakes_nobody() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    database.sql("CREATE SEQUENCE tries").await;
    database
        .before_each(
            "INSERT OR UPDATE",
            "IF nextval('tries') = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END IF;",
        )
        .await;
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap_err();
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    assert!(matches!(next(&mut hints).await, Wake::Slot { what: WakeKind::Released, .. }));
    assert!(hints.try_recv().is_err(), "one hint for one release");
}

#[tokio::test]
async fn whoever_may_hold_a_lock_is_told_in_another_process_and_nobody_else() {
    let database = Database::new().await;
    one_is_told_elsewhere(&[locks_at(&database.url()).await, locks_at(&database.url()).await]).await;
}

#[tokio::test]
async fn hints_of_locks_come_again_after_a_restart_and_whoever_waits_is_told_to_look() {
    let mut database = Database::alone_on(super::dialect::start()).await;
    let two = [locks_at(&database.url()).await, locks_at(&database.url()).await];
    database.store().await;
    hints_come_again(&two, true, || {
        database.own_server().kill();
        database.own_server().start_again();
    })
    .await;
}
