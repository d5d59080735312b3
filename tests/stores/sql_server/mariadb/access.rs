//! A server that is set to be read only.

use cronward::store::{Applied, ErrorKind};

use super::suite::database::{open, request, slot};
use crate::mariadb_server::MariadbServer;

#[tokio::test]
async fn a_server_that_takes_no_writes_is_told() {
    let server = MariadbServer::start();
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    server
        .sql("own", "CREATE USER plain IDENTIFIED BY 'secret'; GRANT ALL ON own.* TO plain; SET GLOBAL read_only = 1")
        .await;
    let error = open(&server.url_of("plain", "own")).claim(&request(&slot("job"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::ReadOnly, Applied::No), "{error}");
    assert!(error.message.contains("name the primary"), "{error}");
}
