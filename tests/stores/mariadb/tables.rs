//! Tables that are not there yet, or not any more of this version; and whose clock counts.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::sql::mysql;
use cronward::store::{Claim, ErrorKind, JobEntry, JobOrigin, Migration};

use crate::mariadb::bench::{Database, failed, granted, open, request, slot, slot_in};
use crate::mariadb_server::MariadbServer;

#[tokio::test]
async fn stores_that_start_together_make_the_tables_once() {
    let database = Database::new().await;
    let stores: Vec<_> = (0..8).map(|_| open(&database.url())).collect();
    let answers = futures_util::future::join_all(stores.iter().map(|store| store.inspect(&[]))).await;
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(database.number("SELECT max(version) FROM cronward_schema").await, 5);
    assert_eq!(database.number("SELECT count(*) FROM cronward_schema").await, 1);
}

#[tokio::test]
async fn a_migration_says_what_it_did() {
    let database = Database::new().await;
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 5 });
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 5, to: 5 });
}

/// The server commits after each table: a migration that was cut short is taken up again.
#[tokio::test]
async fn a_migration_that_was_cut_short_is_taken_up_again() {
    let database = Database::new().await;
    mysql::migrate(&database.url()).await.unwrap();
    database.sql("UPDATE cronward_schema SET version = 0; DROP TABLE cronward_nodes").await;
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 5 });
    open(&database.url()).nodes().await.unwrap();
}

#[tokio::test]
async fn tables_that_were_never_released_are_refused_and_left_alone() {
    let database = Database::new().await;
    mysql::migrate(&database.url()).await.unwrap();
    database.sql("UPDATE cronward_schema SET version = 3").await;
    for url in [database.url(), format!("{}?migrate=off", database.url())] {
        let error = open(&url).inspect(&[]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("version 3, which was never released"), "{error}");
        assert!(error.message.contains("drop the tables whose names begin with cronward_"), "{error}");
    }
    assert!(mysql::migrate(&database.url()).await.is_err());
    assert_eq!(database.number("SELECT version FROM cronward_schema").await, 3);
}

#[tokio::test]
async fn newer_tables_are_refused_and_left_alone() {
    let database = Database::new().await;
    database.store().await;
    database.sql("UPDATE cronward_schema SET version = 7").await;
    let error = open(&database.url()).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("version 7") && error.message.contains("run the newer"), "{error}");
    assert!(mysql::migrate(&database.url()).await.is_err());
    assert_eq!(database.number("SELECT version FROM cronward_schema").await, 7);
}

#[tokio::test]
async fn without_leave_to_migrate_missing_tables_are_told() {
    let database = Database::new().await;
    let error = open(&format!("{}?migrate=off", database.url())).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("`cronward migrate`"), "{error}");
}

/// The server's clock is three hours ahead of this process's: what it calls now is open, and what the process calls now
/// is over. `init_connect` is for plain users, whose time it sets.
#[tokio::test]
async fn slots_are_judged_by_the_servers_clock() {
    let server = MariadbServer::start_with(&["--init-connect=SET timestamp = unix_timestamp() + 10800"]).await;
    server.database("own").await;
    mysql::migrate(&server.url("own")).await.unwrap();
    server.sql("own", "CREATE USER plain IDENTIFIED BY 'secret'; GRANT ALL ON own.* TO plain").await;
    let store = open(&server.url_of("plain", "own"));
    assert!(matches!(store.claim(&request(&slot_in("job", 3), 1)).await.unwrap(), Claim::Claimed { attempt: 1, .. }));
    assert_eq!(store.claim(&request(&slot("job"), 2)).await.unwrap(), Claim::Closed);
    let (now, _) = store.inspect(&[]).await.unwrap();
    assert!(slot_in("job", 3).start() < now && now < slot_in("job", 3).end(), "{now}");
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
