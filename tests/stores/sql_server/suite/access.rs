//! Who may do what, and how a server is reached.

use cronward::store::{Applied, ErrorKind, Renewal};

use super::database::{Database, eventually, granted, open, request, slot};
use super::dialect;
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
    let database = Database::new().await;
    let user = database.user("turning");
    database.sql(&dialect::user_of_all(&user, &database.name)).await;
    let url = database.url_of(&user);
    let (store, written) = rotating(&url).await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    for statement in dialect::new_password(&user) {
        database.sql(&statement).await;
    }
    *written.lock().unwrap() = url.replace("secret", "fresh");
    eventually("the lease is renewed", async || matches!(store.renew(&lease).await, Ok(Renewal::Renewed))).await;
}

#[tokio::test]
async fn a_missing_database_is_told() {
    let database = Database::new().await;
    let error = open(&database.server.url("nowhere")).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("create it"), "{error}");
}

#[tokio::test]
async fn a_user_without_a_grant_is_denied_and_told_where_the_grants_are() {
    let database = Database::new().await;
    database.store().await;
    for table in dialect::WRITTEN_BY_A_CLAIM {
        let user = database.user(&format!("not_to_{table}"));
        for grant in dialect::documented_grants() {
            database.sql(&dialect::granted_to(&user, &grant)).await;
        }
        database.sql(&format!("REVOKE INSERT ON {table} FROM {user}")).await;
        let store = open(&database.url_of(&user));
        store.inspect(&[]).await.unwrap();
        let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{table}: {error}");
        assert!(error.message.contains("docs/stores.md"), "{table}: {error}");
        assert_eq!(database.number("SELECT count(*) FROM cronward_slots").await, 0);
    }
}

#[tokio::test]
async fn a_user_who_may_not_make_tables_is_told_who_has_to() {
    let database = Database::new().await;
    let user = database.user("reader");
    database.sql(&dialect::user_who_reads(&user, &database.name)).await;
    let error = open(&database.url_of(&user)).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.message.contains("`cronward migrate`"), "{error}");
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
    let database = Database::alone_on(dialect::start_with_tls(&files)).await;
    let checked_by = |files: &TlsFiles| format!("{}?{}={}", database.url(), dialect::CHECKED_BY, files.ca().display());
    open(&checked_by(&files)).inspect(&[]).await.unwrap();
    let error = open(&checked_by(&TlsFiles::make())).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains(dialect::CA_OPTION), "{error}");
}
