//! Who may do what, and how a server is reached.

use std::os::unix::fs::PermissionsExt;

use cronward::store::{Applied, ErrorKind, Renewal};

use crate::postgres::bench::{Database, eventually, granted, open, request, slot};
use crate::postgres_server::{PostgresServer, documented_grants};
use crate::rotating::rotating;
use crate::tls_files::TlsFiles;

#[tokio::test]
async fn a_wrong_password_is_denied_and_never_shown() {
    let database = Database::new().await;
    let error = open(&database.url().replace("secret", "hunter2")).inspect(&[]).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_new_password_is_taken_once_the_old_one_is_refused_and_the_lease_goes_on() {
    let server = PostgresServer::start();
    server.database("own").await;
    server.sql("own", "CREATE ROLE turning LOGIN SUPERUSER PASSWORD 'secret'").await;
    let (store, written) = rotating(&server.url_of("turning", "own")).await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    let sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'turning'";
    server.sql("own", &format!("ALTER ROLE turning PASSWORD 'fresh'; {sessions}")).await;
    *written.lock().unwrap() = server.url_of("turning", "own").replace("secret", "fresh");
    eventually("the lease is renewed", async || matches!(store.renew(&lease).await, Ok(Renewal::Renewed))).await;
}

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

#[tokio::test]
async fn a_missing_database_is_told() {
    let database = Database::new().await;
    let error = open(&database.server.url("nowhere")).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("create it"), "{error}");
}

#[cfg(feature = "daemon")]
#[tokio::test]
async fn each_documented_grant_is_missed_by_a_user_who_lacks_it() {
    crate::postgres::server_rights::each_is_missed(documented_grants(), |grant, user| {
        grant
            .replace("CREATE ROLE cronward LOGIN", &format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'"))
            .replace("TO cronward", &format!("TO {user}"))
    })
    .await;
}

#[tokio::test]
async fn a_user_without_a_grant_is_denied_and_told_where_the_grants_are() {
    let server = PostgresServer::start();
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    server.sql("own", &documented_grants().join(";\n")).await;
    server.sql("own", "ALTER ROLE cronward PASSWORD 'secret'; REVOKE INSERT ON cronward_outputs FROM cronward").await;
    let store = open(&server.url_of("cronward", "own"));
    store.inspect(&[]).await.unwrap();
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert!(error.message.contains("docs/stores.md"), "{error}");
}

/// Since PostgreSQL 15 a plain user may not make tables in `public`.
#[tokio::test]
async fn a_user_who_may_not_make_tables_is_told_who_has_to() {
    let server = PostgresServer::start();
    server.database("own").await;
    server.sql("own", "CREATE ROLE cronward LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM public").await;
    let error = open(&server.url_of("cronward", "own")).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.message.contains("`cronward migrate`"), "{error}");
}

/// What a standby answers to a write, made by a trigger.
#[tokio::test]
async fn a_standby_that_takes_no_writes_is_told() {
    let database = Database::new().await;
    let store = database.store().await;
    database.before_each_write("RAISE EXCEPTION 'cannot execute UPDATE' USING ERRCODE = '25006';").await;
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::ReadOnly, Applied::No), "{error}");
    assert!(error.message.contains("name the primary"), "{error}");
}

#[tokio::test]
async fn a_unix_socket_is_a_way_to_the_server() {
    let database = Database::new().await;
    let store = open(&database.server.unix_url(&database.name));
    store.claim(&request(&slot("job"), 1)).await.unwrap();
    assert_eq!(database.number("SELECT attempts FROM cronward_slots").await, 1);
}

#[tokio::test]
async fn over_tls_the_certificate_is_checked_against_the_ca_that_the_url_names() {
    let files = TlsFiles::make();
    // The server reads its key as its own user.
    std::fs::set_permissions(files.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let key = files.dir().join("key.pem");
    let folder = files.dir().display();
    let server = {
        let owner = nix::unistd::User::from_name("postgres").unwrap();
        if let Some(owner) = owner.filter(|_| nix::unistd::Uid::effective().is_root()) {
            std::os::unix::fs::chown(&key, Some(owner.uid.as_raw()), Some(owner.gid.as_raw())).unwrap();
        }
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        PostgresServer::start_with(&format!(
            "ssl = on\nssl_cert_file = '{folder}/cert.pem'\nssl_key_file = '{folder}/key.pem'\n"
        ))
    };
    server.database("own").await;
    let trusted = format!("{}?sslmode=verify-full&sslrootcert={}", server.url("own"), files.ca().display());
    open(&trusted).inspect(&[]).await.unwrap();
    let other = TlsFiles::make();
    let wrong = format!("{}?sslmode=verify-full&sslrootcert={}", server.url("own"), other.ca().display());
    let error = open(&wrong).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("sslrootcert"), "{error}");
}
