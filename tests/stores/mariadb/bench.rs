//! One server for all tests, a database for each; and what the tests say often.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cronward::slot::{Lease, Outcome, RunRecord};
use cronward::store::sql::mysql;
use cronward::store::{Store, StoreOptions};
use sqlx::MySqlConnection;
use tokio::sync::Mutex;

use crate::mariadb_server::MariadbServer;
pub(crate) use crate::words::{audit, granted, request, slot, slot_in};
use crate::words::{ended, eventually_within};

/// A busy machine may take long; a test that waits for so long has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A lock by name holds for the whole server, which the tests share: each database has a gate of its own.
pub(crate) const CLOSE_GATE: &str = "DO get_lock(concat('gate of ', database()), 0)";
pub(crate) const OPEN_GATE: &str = "DO release_lock(concat('gate of ', database()))";
/// For a trigger.
pub(crate) const WAIT_AT_GATE: &str = "SET @waited = get_lock(concat('gate of ', database()), 20), \
                                       @let = release_lock(concat('gate of ', database()))";

static SERVER: Mutex<Weak<MariadbServer>> = Mutex::const_new(Weak::new());
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// The stores' page has a section of it.
pub(crate) const SECTION: &str = "MySQL";

/// Nothing was changed for longer than anything is kept.
pub(crate) const OUTLASTED: &str = "UPDATE cronward_slots SET touched_ms = 0, version = version + 1,
    document = json_set(document, '$.touched_ms', 0)";

/// An empty database on the server that the tests of this binary share.
pub(crate) struct Database {
    pub(crate) server: Arc<MariadbServer>,
    pub(crate) name: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        let server = {
            let mut shared = SERVER.lock().await;
            match shared.upgrade() {
                Some(server) => server,
                None => {
                    let server = Arc::new(MariadbServer::start().await);
                    *shared = Arc::downgrade(&server);
                    server
                }
            }
        };
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.database(&name).await;
        Self { server, name }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// A store of the owner, its tables made.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let store = open(&self.url());
        store.inspect(&[]).await.unwrap();
        store
    }

    pub(crate) async fn connect(&self) -> MySqlConnection {
        self.server.connect(&self.name).await
    }

    pub(crate) async fn sql(&self, sql: &str) {
        self.server.sql(&self.name, sql).await;
    }

    /// What a query answers with one number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_one(&mut self.connect().await).await.unwrap()
    }

    /// Ends every other session of this database.
    pub(crate) async fn kill_others(&self) {
        let sessions = "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()";
        let mut own = self.connect().await;
        let ids: Vec<i64> = sqlx::query_scalar(sessions).fetch_all(&mut own).await.unwrap();
        assert!(!ids.is_empty());
        for id in ids {
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("KILL CONNECTION {id}"))).execute(&mut own).await.unwrap();
        }
    }

    /// From now on, a slot's first row in this database, or each change of one, first does this.
    pub(crate) async fn before_each(&self, event: &str, body: &str) {
        let trigger = format!("CREATE TRIGGER before_{event} BEFORE {event} ON cronward_slots FOR EACH ROW {body}");
        self.sql(&trigger).await;
    }

    /// Returns when so many sessions of this database wait for a lock of a row, or by a name.
    pub(crate) async fn until_waiting(&self, sessions: i64) {
        self.until_waiting_or(sessions, || false).await;
    }

    /// The same, or when something else is so.
    pub(crate) async fn until_waiting_or(&self, sessions: i64, is_so: impl Fn() -> bool) {
        let waiting = format!(
            "SELECT count(*) FROM information_schema.processlist WHERE db = '{}' AND id <> connection_id()
             AND (state = 'User lock' OR id IN (
                SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'))",
            self.name
        );
        // The server shows transactions as of the last time that nobody had asked for a tenth of a second.
        let ask = async || is_so() || self.number(&waiting).await >= sessions;
        eventually_each(Duration::from_millis(150), "sessions wait for a lock", ask).await;
    }
}

/// A store at a url, with a time limit that a busy machine keeps.
pub(crate) fn open(url: &str) -> Arc<dyn Store> {
    open_within(url, LIMIT)
}

pub(crate) fn open_within(url: &str, op_timeout: Duration) -> Arc<dyn Store> {
    mysql::open(url, StoreOptions { op_timeout, ..StoreOptions::default() }).unwrap()
}

/// Runs SQL on a session of the test's own.
pub(crate) async fn run(session: &mut MySqlConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(session).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub(crate) fn failed(lease: &Lease) -> RunRecord {
    ended(lease, Outcome::Failure)
}

/// Asks again and again until it is so; for what another process does in its own time.
pub(crate) async fn eventually<F: AsyncFnMut() -> bool>(what: &str, holds: F) {
    eventually_each(Duration::from_millis(10), what, holds).await;
}

pub(crate) async fn eventually_each<F: AsyncFnMut() -> bool>(pause: Duration, what: &str, holds: F) {
    eventually_within((LIMIT, pause), what, holds).await;
}
