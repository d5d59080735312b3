//! Tables that are not there yet, or not any more of this version; and whose clock counts.

use std::process::Command;

use cronward::store::{Claim, ErrorKind, Migration};

use super::database::{Database, open, request, slot, slot_in};
use super::dialect::{SCHEMA, store, three_hours_ahead};

#[tokio::test]
async fn stores_that_start_together_make_the_tables_once() {
    let database = Database::new().await;
    let stores: Vec<_> = (0..8).map(|_| open(&database.url())).collect();
    let answers = futures_util::future::join_all(stores.iter().map(|store| store.inspect(&[]))).await;
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(database.number("SELECT max(version) FROM cronward_schema").await, 8);
    assert_eq!(database.number("SELECT count(*) FROM cronward_schema").await, 1);
}

#[tokio::test]
async fn a_migration_says_what_it_did() {
    let database = Database::new().await;
    assert_eq!(store::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 8 });
    assert_eq!(store::migrate(&database.url()).await.unwrap(), Migration { from: 8, to: 8 });
}

#[tokio::test]
async fn tables_that_were_never_released_are_refused_and_left_alone() {
    let database = Database::new().await;
    store::migrate(&database.url()).await.unwrap();
    database.sql("UPDATE cronward_schema SET version = 3").await;
    for url in [database.url(), format!("{}?migrate=off", database.url())] {
        let error = open(&url).inspect(&[]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("version 3, which was never released"), "{error}");
        assert!(error.message.contains("drop the tables whose names begin with cronward_"), "{error}");
    }
    assert!(store::migrate(&database.url()).await.is_err());
    assert_eq!(database.number("SELECT version FROM cronward_schema").await, 3);
}

#[tokio::test]
async fn newer_tables_are_refused_and_left_alone() {
    let database = Database::new().await;
    database.store().await;
    database.sql("UPDATE cronward_schema SET version = 9").await;
    let error = open(&database.url()).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("version 9") && error.message.contains("run the newer"), "{error}");
    assert!(store::migrate(&database.url()).await.is_err());
    assert_eq!(database.number("SELECT version FROM cronward_schema").await, 9);
}

#[tokio::test]
async fn without_leave_to_migrate_missing_tables_are_told() {
    let database = Database::new().await;
    let error = open(&format!("{}?migrate=off", database.url())).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("`cronward migrate`"), "{error}");
    let tables = format!(
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'cronward_slots' AND table_schema = {SCHEMA}"
    );
    assert_eq!(database.number(&tables).await, 0);
    database.store().await;
    assert_eq!(database.number(&tables).await, 1);
}

/// The server's clock is three hours ahead of this process's: what it calls now is open, and what the process calls now
/// is over.
#[tokio::test]
async fn slots_are_judged_by_the_servers_clock() {
    let (_database, url) = three_hours_ahead().await;
    let store = open(&url);
    assert!(matches!(store.claim(&request(&slot_in("job", 3), 1)).await.unwrap(), Claim::Claimed { attempt: 1, .. }));
    assert_eq!(store.claim(&request(&slot("job"), 2)).await.unwrap(), Claim::Closed);
    let (now, _) = store.inspect(&[]).await.unwrap();
    assert!(slot_in("job", 3).start() < now && now < slot_in("job", 3).end(), "{now}");
}

#[cfg(feature = "daemon")]
#[tokio::test]
async fn the_command_makes_the_tables_and_shows_no_password() {
    let database = Database::new().await;
    let migrate = || {
        let told = Command::new(env!("CARGO_BIN_EXE_cronward")).args(["migrate", "--store", &database.url()]).output();
        let told = told.unwrap();
        assert!(told.status.success(), "{told:?}");
        assert!(!format!("{told:?}").contains("secret@"), "{told:?}");
        String::from_utf8(told.stdout).unwrap()
    };
    assert!(migrate().ends_with("created the tables, version 8\n"));
    assert!(migrate().ends_with("nothing to do\n"));
}
