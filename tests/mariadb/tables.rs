//! Tables that are not there yet, or not any more of this version; and whose clock counts.

use cronward::store::sql::mysql;
use cronward::store::{Claim, ErrorKind, Migration};

use crate::bench::{Database, open, request, slot, slot_in};
use crate::mariadb_server::MariadbServer;

#[tokio::test]
async fn stores_that_start_together_make_the_tables_once() {
    let database = Database::new().await;
    let stores: Vec<_> = (0..8).map(|_| open(&database.url())).collect();
    let answers = futures_util::future::join_all(stores.iter().map(|store| store.inspect(&[]))).await;
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(database.number("SELECT max(version) FROM cronward_schema").await, 1);
    assert_eq!(database.number("SELECT count(*) FROM cronward_schema").await, 1);
}

#[tokio::test]
async fn a_migration_says_what_it_did() {
    let database = Database::new().await;
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 1 });
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 1, to: 1 });
}

/// The server commits after each table: a migration that was cut short is taken up again.
#[tokio::test]
async fn a_migration_that_was_cut_short_is_taken_up_again() {
    let database = Database::new().await;
    mysql::migrate(&database.url()).await.unwrap();
    database.sql("UPDATE cronward_schema SET version = 0; DROP TABLE cronward_nodes").await;
    assert_eq!(mysql::migrate(&database.url()).await.unwrap(), Migration { from: 0, to: 1 });
    open(&database.url()).nodes().await.unwrap();
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
