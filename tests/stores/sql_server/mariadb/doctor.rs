//! `cronward doctor` before MariaDB: what a crash loses, who takes no writes, a grant that is missing.

use super::suite::database::open;
use crate::mariadb_server::{MariadbServer, documented_grants};
use crate::patient::{doctor, lists_nothing};

#[tokio::test]
async fn a_server_that_syncs_is_well_and_what_it_may_not_write_is_told() {
    let server = MariadbServer::start_with(&["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON"]);
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    for grant in documented_grants() {
        server.sql("own", &grant.replace("PASSWORD", "secret")).await;
    }
    let user = server.url_of("cronward", "own");
    let told = doctor(&user).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"]);
    lists_nothing(&*open(&user)).await;

    server.sql("own", "REVOKE INSERT ON cronward_slots FROM cronward").await;
    let told = doctor(&user).await;
    assert!(told.found_of("rights error").starts_with("claim: "), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_a_fault() {
    let server = MariadbServer::start();
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    let readers = "CREATE USER plain IDENTIFIED BY 'secret'; GRANT ALL ON own.* TO plain; SET GLOBAL read_only = 1";
    server.sql("own", readers).await;
    let told = doctor(&server.url_of("plain", "own")).await;
    assert!(told.fix_of("role error").contains("SET GLOBAL read_only = OFF"), "{:?}", told.bad);
    assert!(told.found_of("rights error").starts_with("claim: "), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}
