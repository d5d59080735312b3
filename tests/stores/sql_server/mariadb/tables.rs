//! Tables that were made in part, and letters in them.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{JobEntry, JobOrigin, Migration};

use super::dialect::store;
use super::suite::database::{Database, failed, granted, open, request, slot};

/// The server commits after each table: a migration that was cut short is taken up again.
#[tokio::test]
async fn a_migration_that_was_cut_short_is_taken_up_again() {
    let database = Database::new().await;
    store::migrate(&database.url()).await.unwrap();
    database.sql("UPDATE cronward_schema SET version = 0; DROP TABLE cronward_nodes").await;
    assert_eq!(store::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 8 });
    open(&database.url()).nodes().await.unwrap();
}

/// The database's own character set has none of these letters.
#[tokio::test]
async fn what_a_job_is_in_any_script_is_read_back_as_it_was() {
    let database = Database::new().await;
    database.sql(&format!("ALTER DATABASE {} CHARACTER SET ascii", database.name)).await;
    let store = database.store().await;
    let entry = JobEntry {
        name: "job".parse().unwrap(),
        schedule: "stündlich 毎時 🕰".to_owned(),
        timezone: "UTC".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        first_seen: slot("job").start(),
        origin: JobOrigin::File,
    };
    let known = store.register(std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(known.iter().map(|job| job.schedule.as_str()).collect::<Vec<_>>(), [entry.schedule.as_str()]);
}

/// The default collation differs between the versions of the servers that made one table and another.
#[tokio::test]
async fn tables_of_two_collations_are_read() {
    let database = Database::new().await;
    let store = database.store().await;
    let other =
        "ALTER TABLE cronward_slots MODIFY document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL";
    database.sql(other).await;
    for claimer in 1..=2 {
        let lease = granted(&*store, &request(&slot("job"), claimer)).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    let (_, records) = store.inspect(&[slot("job")]).await.unwrap();
    assert_eq!(records[0].runs.iter().map(|run| run.outcome).collect::<Vec<_>>(), [Some(Outcome::Failure); 2]);
}
