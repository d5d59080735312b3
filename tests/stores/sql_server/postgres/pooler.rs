//! PgBouncer in front of a server: in the mode that shares connections it is named, and in the other one it is used.

use std::sync::Arc;
use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{ErrorKind, Store, StoreOptions, Wake};
use tempfile::TempDir;

use super::suite::database::Database;
use crate::support::ports::free_port;
use crate::support::server_process::{ServerProcess, started};
use crate::support::sql_server::{Programs, path};
use crate::words::{ended, granted, request, slot_of};

const PROGRAMS: Programs = Programs { user: "postgres", package: "pgbouncer" };

/// With time for a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

struct Pooler {
    _process: ServerProcess,
    _dir: TempDir,
    port: u16,
}

impl Pooler {
    fn start(database: &Database, mode: &str) -> Self {
        let dir = PROGRAMS.folder();
        let (process, port) = started("pgbouncer", || {
            let port = free_port();
            let file = dir.path().join("pgbouncer.ini");
            std::fs::write(&file, settings(database, mode, port)).unwrap();
            let folders = path().into_iter().chain(["/usr/sbin".into()]);
            let process = ServerProcess::spawn(PROGRAMS.command("pgbouncer", folders).arg(&file), "pgbouncer");
            let answers = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
            process.wait_until(LIMIT, || format!("pgbouncer at port {port}"), answers).then_some((process, port))
        });
        Self { _process: process, _dir: dir, port }
    }

    fn store(&self, database: &Database) -> Arc<dyn Store> {
        let url = format!("postgres://owner@127.0.0.1:{}/{}?sslmode=disable", self.port, database.name);
        cronward::store::sql::postgres::open(&url, StoreOptions::default().with_op_timeout(LIMIT)).unwrap()
    }
}

fn settings(database: &Database, mode: &str, port: u16) -> String {
    let (name, server) = (&database.name, database.server.port());
    format!(
        "[databases]\n{name} = host=127.0.0.1 port={server} dbname={name} user=owner password=secret\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\nauth_file = /dev/null\n\
         pool_mode = {mode}\n"
    )
}

#[tokio::test]
async fn a_pooler_that_shares_connections_is_named_with_the_way_out() {
    let database = Database::new().await;
    let pooler = Pooler::start(&database, "transaction");
    let (first, second) = (pooler.store(&database), pooler.store(&database));
    // The first may have the one connection of the server to itself so far.
    let _ = first.jobs().await;
    let error = second.jobs().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("PgBouncer") && error.message.contains("pool_mode = session"), "{error}");
}

#[tokio::test]
async fn a_pooler_with_a_connection_for_each_client_is_used_and_passes_hints_on() {
    let database = Database::new().await;
    let pooler = Pooler::start(&database, "session");
    let (one, other) = (pooler.store(&database), pooler.store(&database));
    let mut hints = other.subscribe();
    let first = tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap();
    assert_eq!(first, Wake::Resync);
    let lease = granted(&*one, &request(&slot_of("a"), 1)).await;
    one.complete(&lease, &ended(&lease, Outcome::Success), LIMIT).await.unwrap();
    let heard = tokio::time::timeout(LIMIT, hints.recv()).await.unwrap().unwrap();
    assert!(matches!(heard, Wake::Slot { .. }), "{heard:?}");
}
