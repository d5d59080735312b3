//! Who may do what, and how a server is reached.

use cronward::store::{Applied, ErrorKind, Renewal};

use crate::mariadb::bench::{Database, eventually, granted, open, request, slot};
use crate::mariadb_server::{MariadbServer, documented_grants};
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
    database.sql("CREATE USER turning IDENTIFIED BY 'secret'").await;
    database.sql(&format!("GRANT ALL ON {}.* TO turning", database.name)).await;
    let url = database.server.url_of("turning", &database.name);
    let (store, written) = rotating(&url).await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    database.sql("ALTER USER turning IDENTIFIED BY 'fresh'").await;
    database.sql("KILL USER turning").await;
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

#[cfg(feature = "daemon")]
#[tokio::test]
async fn each_documented_grant_is_missed_by_a_user_who_lacks_it() {
    crate::mariadb::server_rights::each_is_missed(documented_grants(), |grant, user| {
        grant
            .replace("cronward IDENTIFIED BY 'PASSWORD'", &format!("{user} IDENTIFIED BY 'secret'"))
            .replace("TO cronward", &format!("TO {user}"))
    })
    .await;
}

#[tokio::test]
async fn a_user_without_a_grant_is_denied_and_told_where_the_grants_are() {
    let database = Database::new().await;
    database.store().await;
    for grant in documented_grants() {
        database
            .sql(
                &grant
                    .replace("cronward IDENTIFIED BY 'PASSWORD'", "limited IDENTIFIED BY 'secret'")
                    .replace("TO cronward", "TO limited"),
            )
            .await;
    }
    database.sql("REVOKE INSERT ON cronward_slots FROM limited").await;
    let store = open(&database.server.url_of("limited", &database.name));
    store.inspect(&[]).await.unwrap();
    let error = store.claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
    assert!(error.message.contains("docs/stores.md"), "{error}");
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots").await, 0);
}

#[tokio::test]
async fn a_user_who_may_not_make_tables_is_told_who_has_to() {
    let database = Database::new().await;
    database.sql("CREATE USER reader IDENTIFIED BY 'secret'").await;
    database.sql(&format!("GRANT SELECT ON {}.* TO reader", database.name)).await;
    let error = open(&database.server.url_of("reader", &database.name)).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.message.contains("`cronward migrate`"), "{error}");
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_told() {
    let server = MariadbServer::start().await;
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    server
        .sql("own", "CREATE USER plain IDENTIFIED BY 'secret'; GRANT ALL ON own.* TO plain; SET GLOBAL read_only = 1")
        .await;
    let error = open(&server.url_of("plain", "own")).claim(&request(&slot("job"), 1)).await.unwrap_err();
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
    files.let_others_read();
    let option = |name: &str, file: &str| format!("--ssl-{name}={}", files.dir().join(file).display());
    let options = [option("ca", "ca.pem"), option("cert", "cert.pem"), option("key", "key.pem")];
    let server = MariadbServer::start_with(&options.each_ref().map(String::as_str)).await;
    server.database("own").await;
    let trusted = format!("{}?ssl-mode=verify_identity&ssl-ca={}", server.url("own"), files.ca().display());
    open(&trusted).inspect(&[]).await.unwrap();
    let other = TlsFiles::make();
    let wrong = format!("{}?ssl-mode=verify_identity&ssl-ca={}", server.url("own"), other.ca().display());
    let error = open(&wrong).inspect(&[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("ssl-ca"), "{error}");
}
