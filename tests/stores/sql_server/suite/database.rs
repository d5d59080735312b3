//! One server for all tests, a database for each; and what the tests say often.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cronward::slot::{Lease, Outcome, RunRecord};
use cronward::store::{Store, StoreOptions};
use tokio::sync::Mutex;

use super::dialect::{self, Connection, Server};
pub(crate) use crate::words::{audit, granted, request, slot, slot_in};
use crate::words::{ended, eventually_within};

/// A busy machine may take long; a test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(20);

static SERVER: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// An empty database.
pub(crate) struct Database {
    pub(crate) server: Arc<Server>,
    pub(crate) name: String,
}

impl Database {
    /// On the server that the tests of this binary share.
    pub(crate) async fn new() -> Self {
        let server = {
            let mut shared = SERVER.lock().await;
            match shared.upgrade() {
                Some(server) => server,
                None => {
                    let server = Arc::new(dialect::start_to_share());
                    *shared = Arc::downgrade(&server);
                    server
                }
            }
        };
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.database(&name).await;
        Self { server, name }
    }

    /// On a server of the test's own.
    pub(crate) async fn alone_on(server: Server) -> Self {
        server.database("own").await;
        Self { server: Arc::new(server), name: "own".to_owned() }
    }

    /// The server of [`Self::alone_on`], to be killed and the like.
    pub(crate) fn own_server(&mut self) -> &mut Server {
        Arc::get_mut(&mut self.server).expect("no other test has it")
    }

    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// By another port of this machine, where a proxy is.
    pub(crate) fn url_by(&self, port: u16) -> String {
        format!("{}://owner:secret@127.0.0.1:{port}/{}", dialect::SCHEME, self.name)
    }

    /// For another user with the same password.
    pub(crate) fn url_of(&self, user: &str) -> String {
        self.server.url_of(user, &self.name)
    }

    /// A name for a user: users are the server's, which the tests share.
    pub(crate) fn user(&self, name: &str) -> String {
        format!("{name}_{}", self.name)
    }

    /// A store of the owner, its tables made.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let store = open(&self.url());
        store.inspect(&[]).await.unwrap();
        store
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.server.connect(&self.name).await
    }

    pub(crate) async fn sql(&self, sql: &str) {
        self.server.sql(&self.name, sql).await;
    }

    /// What a query answers with one number. `NAME` in it is the database's.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = sqlx::AssertSqlSafe(sql.replace("NAME", &self.name));
        sqlx::query_scalar(sql).fetch_one(&mut self.connect().await).await.unwrap()
    }

    /// Ends every other session of this database.
    pub(crate) async fn kill_others(&self) {
        let mut own = self.connect().await;
        let others: Vec<i64> = sqlx::query_scalar(dialect::OTHER_SESSIONS).fetch_all(&mut own).await.unwrap();
        assert!(!others.is_empty());
        for session in others {
            sqlx::raw_sql(sqlx::AssertSqlSafe(dialect::kill(session))).execute(&mut own).await.unwrap();
        }
    }

    /// From now on, a slot's first row in this database (`INSERT`), or each change of one (`UPDATE`), first does this.
    pub(crate) async fn before_each(&self, event: &str, body: &str) {
        self.sql(&dialect::before_each(event, body)).await;
    }

    /// How many sessions of this database wait for a lock of a row, or at the gate.
    pub(crate) async fn waiting(&self) -> i64 {
        self.number(dialect::WAITING).await
    }

    /// Returns when so many of them wait.
    pub(crate) async fn until_waiting(&self, sessions: i64) {
        self.until_waiting_or(sessions, || false).await;
    }

    /// The same, or when something else is so.
    pub(crate) async fn until_waiting_or(&self, sessions: i64, is_so: impl Fn() -> bool) {
        until_seen("sessions wait for a lock", async || is_so() || self.waiting().await >= sessions).await;
    }
}

/// A store at a url, with a time limit that a busy machine keeps.
pub(crate) fn open(url: &str) -> Arc<dyn Store> {
    open_within(url, LIMIT)
}

pub(crate) fn open_within(url: &str, op_timeout: Duration) -> Arc<dyn Store> {
    dialect::store::open(url, StoreOptions::default().with_op_timeout(op_timeout)).unwrap()
}

/// Runs SQL on a session of the test's own.
pub(crate) async fn run(session: &mut Connection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(session).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub(crate) fn failed(lease: &Lease) -> RunRecord {
    ended(lease, Outcome::Failure)
}

/// Asks again and again until it is so; for what another process does in its own time.
pub(crate) async fn eventually<F: AsyncFnMut() -> bool>(what: &str, holds: F) {
    eventually_within((LIMIT, Duration::from_millis(10)), what, holds).await;
}

/// The same for what is seen in the server's own tables, which not every server keeps up to date while they are read.
pub(crate) async fn until_seen<F: AsyncFnMut() -> bool>(what: &str, holds: F) {
    eventually_within((LIMIT, dialect::LOOK_EVERY), what, holds).await;
}
