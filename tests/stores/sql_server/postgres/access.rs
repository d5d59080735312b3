//! Servers in the place of others: one that has no tables yet, and a standby.

use cronward::store::{Applied, ErrorKind};

use super::dialect::store;
use super::suite::database::{Database, eventually, open, request, slot};
use crate::postgres_server::PostgresServer;
use crate::rotating::rotating;

/// A server that stands in the place of the old one, and has the new password but not the tables.
#[tokio::test]
async fn whoever_takes_a_new_password_makes_no_tables() {
    let server = PostgresServer::start();
    server.database("own").await;
    server.sql("own", "CREATE ROLE turning LOGIN SUPERUSER PASSWORD 'secret'").await;
    let (store, written) = rotating(&server.url_of("turning", "own")).await;
    store.inspect(&[]).await.unwrap();
    let sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'turning'";
    let emptied = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; ALTER ROLE turning PASSWORD 'fresh'";
    server.sql("own", &format!("{emptied}; {sessions}")).await;
    *written.lock().unwrap() = server.url_of("turning", "own").replace("secret", "fresh");
    eventually("the old one is refused, or the new one taken", async || {
        store.inspect(&[]).await.map_or_else(|error| error.kind == ErrorKind::Denied, |_| true)
    })
    .await;
    let none = "ASSERT NOT EXISTS (SELECT FROM pg_tables WHERE tablename LIKE 'cronward%')";
    server.sql("own", &format!("DO $$ BEGIN {none}; END $$")).await;
}

/// What a standby answers to a write, made by a trigger.
#[tokio::test]
async fn a_standby_that_takes_no_writes_is_told() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT OR UPDATE", "RAISE EXCEPTION 'cannot execute UPDATE' USING ERRCODE = '25006';").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::ReadOnly, Applied::No), "{error}");
    assert!(error.message.contains("name the primary"), "{error}");
}

#[tokio::test]
async fn a_database_whose_encoding_lacks_characters_is_refused_when_it_is_opened() {
    let database = Database::new().await;
    for encoding in ["LATIN1", "EUC_CN"] {
        let name = format!("{}_{}", encoding.to_lowercase(), database.name);
        let made =
            format!("CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
        database.server.sql("postgres", &made).await;
        let error = open(&database.server.url(&name)).inspect(&[]).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No), "{error}");
        assert!(error.message.contains(encoding) && error.message.contains("ENCODING 'UTF8'"), "{error}");
        let migrated = store::migrate(&database.server.url(&name)).await.unwrap_err().to_string();
        assert!(migrated.contains("ENCODING 'UTF8'"), "{migrated}");
    }
}

/// What a server says of a text that it cannot keep, by a trigger.
#[tokio::test]
async fn a_text_that_the_server_cannot_keep_is_refused_for_its_content() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each("INSERT OR UPDATE", "RAISE EXCEPTION 'no equivalent' USING ERRCODE = '22P05';").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Content, Applied::No), "{error}");
}
