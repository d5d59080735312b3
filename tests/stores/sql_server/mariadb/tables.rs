//! Tables that were made in part, and letters in them.

use std::time::Duration;

use cronward::slot::{Audit, Outcome, OutputLoss, OutputTail, RunRecord};
use cronward::store::{Applied, ErrorKind, JobEntry, JobOrigin, Migration, Settlement};

use super::dialect::store;
use super::suite::database::{Database, audit, failed, granted, open, request, slot};
use crate::mariadb_server::MariadbServer;
use crate::words::ended;

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
        command: None,
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

#[tokio::test]
async fn tables_that_keep_no_other_script_are_refused_when_they_are_opened() {
    let database = Database::new().await;
    database.store().await;
    for (table, column) in [("cronward_slots", "document"), ("cronward_outputs", "output")] {
        let with = |set: &str| format!("ALTER TABLE {table} MODIFY {column} LONGTEXT CHARACTER SET {set} NOT NULL");
        database.sql(&with("latin1")).await;
        let error = open(&database.url()).inspect(&[]).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No), "{error}");
        assert!(error.message.contains("CHARACTER SET utf8mb4"), "{error}");
        database.sql(&with("utf8mb4")).await;
        open(&database.url()).inspect(&[]).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_larger_than_a_packet_is_cut_where_it_is_an_output_and_else_refused_for_its_content() {
    let database = Database::alone_on(MariadbServer::start_with(&["--max-allowed-packet=1M"])).await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let output = OutputTail { text: "x".repeat(1_024 * 1_024), ..OutputTail::default() };
    let run = RunRecord { output: Some(output), ..ended(&lease, Outcome::Success) };
    assert_eq!(store.complete(&lease, &run, Duration::from_secs(60)).await.unwrap(), Settlement::Recorded);
    let kept = store.output(&lease.slot, lease.attempt, lease.token).await.unwrap().unwrap();
    assert_eq!((kept.text.len(), kept.loss), (512 * 1_024, Some(OutputLoss::TooLarge)));
    assert_eq!(kept.dropped_bytes, 512 * 1_024);
    let audit = Audit { why: "x".repeat(2 * 1_024 * 1_024), ..audit("pause") };
    let error = store.pause(lease.slot.job(), None, &audit).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Content, Applied::No), "{error}");
    assert!(error.message.contains("max_allowed_packet"), "{error}");
}
