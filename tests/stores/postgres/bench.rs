//! One server for all tests, a database for each; and what the tests say often.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cronward::slot::{Lease, Outcome, RunRecord};
use cronward::store::sql::postgres;
use cronward::store::{Store, StoreOptions};
use sqlx::PgConnection;

use crate::postgres_server::PostgresServer;
pub(crate) use crate::words::{audit, granted, request, slot, slot_in};
use crate::words::{ended, eventually_within};

/// A busy machine may take long; a test that waits for so long has failed.
const LIMIT: Duration = Duration::from_secs(20);

static SERVER: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// The stores' page has a section of it.
pub(crate) const SECTION: &str = "PostgreSQL";

/// Nothing was changed for longer than anything is kept.
pub(crate) const OUTLASTED: &str = "UPDATE cronward_slots SET touched_ms = 0, version = version + 1,
    document = jsonb_set(document::jsonb, '{touched_ms}', '0')::text";

/// An empty database on the server that the tests of this binary share.
pub(crate) struct Database {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) name: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        let server = {
            let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
            shared.upgrade().unwrap_or_else(|| {
                // A deadlock is found at once.
                let server = Arc::new(PostgresServer::start_with("deadlock_timeout = 20ms"));
                *shared = Arc::downgrade(&server);
                server
            })
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

    pub(crate) async fn connect(&self) -> PgConnection {
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
        let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND usename = 'owner' AND pid <> pg_backend_pid()";
        assert!(self.number(others).await > 0);
    }

    /// From now on, a change of a slot's row in this database first does this, in PL/pgSQL.
    pub(crate) async fn before_each_write(&self, body: &str) {
        self.sql(&format!(
            "CREATE OR REPLACE FUNCTION before_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN new; END $$;
             CREATE TRIGGER before_write BEFORE INSERT OR UPDATE ON cronward_slots FOR EACH ROW EXECUTE FUNCTION before_write()"
        ))
        .await;
    }

    /// Returns when so many sessions of this database wait for a lock.
    pub(crate) async fn until_waiting(&self, sessions: i64) {
        self.until_waiting_or(sessions, || false).await;
    }

    /// The same, or when something else is so.
    pub(crate) async fn until_waiting_or(&self, sessions: i64, is_so: impl Fn() -> bool) {
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND wait_event_type = 'Lock'",
            self.name
        );
        let ask = async || is_so() || self.number(&waiting).await >= sessions;
        eventually("sessions wait for a lock", ask).await;
    }
}

/// A store at a url, with a time limit that a busy machine keeps.
pub(crate) fn open(url: &str) -> Arc<dyn Store> {
    open_within(url, LIMIT)
}

pub(crate) fn open_within(url: &str, op_timeout: Duration) -> Arc<dyn Store> {
    postgres::open(url, StoreOptions { op_timeout, ..StoreOptions::default() }).unwrap()
}

/// Runs SQL on a session of the test's own.
pub(crate) async fn run(session: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(session).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub(crate) fn failed(lease: &Lease) -> RunRecord {
    ended(lease, Outcome::Failure)
}

/// Asks again and again until it is so; for what another process does in its own time.
pub(crate) async fn eventually<F: AsyncFnMut() -> bool>(what: &str, holds: F) {
    eventually_within((LIMIT, Duration::from_millis(10)), what, holds).await;
}
