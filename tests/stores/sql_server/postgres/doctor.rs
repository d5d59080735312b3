//! `cronward doctor` before PostgreSQL: what a crash loses, who takes no writes, a grant that is missing.

use super::suite::database::open;
use crate::patient::{doctor, lists_nothing};
use crate::postgres_server::{PostgresServer, documented_grants};

#[tokio::test]
async fn a_server_that_syncs_is_well_and_what_it_may_not_write_is_told() {
    let server = PostgresServer::start_with("fsync = on\nfull_page_writes = on\nsynchronous_commit = on");
    server.database("own").await;
    open(&server.url("own")).inspect(&[]).await.unwrap();
    server.sql("own", &documented_grants().join(";\n")).await;
    server.sql("own", "ALTER ROLE cronward PASSWORD 'secret'").await;
    let user = server.url_of("cronward", "own");
    let told = doctor(&user).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"]);
    lists_nothing(&*open(&user)).await;

    server.sql("own", "REVOKE INSERT ON cronward_locks FROM cronward").await;
    let told = doctor(&user).await;
    assert!(told.found_of("rights warning").contains("permission denied for table cronward_locks"), "{:?}", told.bad);
    // It wrote nothing, and does not speak of what it could not remove.
    assert!(told.names().iter().all(|name| *name == "rights warning"), "{:?}", told.bad);
    assert_eq!(told.code, 1);
    server.sql("own", "GRANT INSERT ON cronward_locks TO cronward").await;

    server.sql("own", "REVOKE INSERT ON cronward_nodes FROM cronward").await;
    let told = doctor(&user).await;
    assert!(told.found_of("rights warning").starts_with("heartbeat: "), "{:?}", told.bad);
    assert_eq!(told.code, 1);

    server.sql("own", "REVOKE UPDATE ON cronward_slots FROM cronward").await;
    let told = doctor(&user).await;
    assert!(told.found_of("rights error").contains("permission denied for table cronward_slots"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn a_server_that_does_not_sync_is_a_fault_with_the_line_to_change() {
    let server = PostgresServer::start();
    server.database("own").await;
    let told = doctor(&server.url("own")).await;
    assert_eq!(told.fix_of("durability error"), "postgresql.conf: fsync = on");
    assert_eq!(told.code, 2);
}
