//! One connection, used by one call at a time, and opened again when it has become doubtful or its file was replaced.
//!
//! There are two of them, which the calls of one store share, so that reading never waits for a writer. A pool would add nothing but memory: SQLite lets one
//! process write at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row as _, Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, broadcast};

use super::fault::is_busy;
use super::file::{self, FileId};
use super::schema::{self, OWN, TEXTS};
use crate::store::sql::fault::Fault;
use crate::store::sql::session::{Columns, Session, Texts, Value, Why};
use crate::store::sql::slots::Scope;
use crate::store::{ErrorKind, Migration, Wake};

/// Between two tries to connect while another process switches the new file to WAL, for which `busy_timeout` does not
/// wait (sqlite.org/wal.html). The caller bounds the whole.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// How a connection to the file is made.
#[derive(Debug)]
pub(super) struct Connector {
    path: PathBuf,
    /// Whether a file is made where there is none.
    create: bool,
    options: SqliteConnectOptions,
}

impl Connector {
    /// `busy_timeout` is how long a call waits for another process that writes.
    pub(super) fn new(path: PathBuf, busy_timeout: Duration, create: bool) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .busy_timeout(busy_timeout)
            // Each commit is on the disk before it is answered: a done marker outlives a power cut.
            .synchronous(SqliteSynchronous::Full)
            // A log of 1 MiB instead of 4, and a page cache of 256 KiB instead of 2 MiB: rows are small and few.
            .pragma("wal_autocheckpoint", "256")
            .pragma("journal_size_limit", "1048576")
            .pragma("cache_size", "-256")
            // Nothing in a damaged or foreign file is run or believed.
            .pragma("trusted_schema", "OFF")
            .pragma("cell_size_check", "ON")
            .statement_cache_capacity(40)
            .thread_name(|_| "cronward-sqlite".to_owned())
            .disable_statement_logging();
        Self { path, create, options }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    async fn connect(&self) -> Result<(Open, Migration), Fault> {
        let (path, create) = (self.path.clone(), self.create);
        // Looking at a disk may wait; not in the caller's thread.
        let prepared = tokio::task::spawn_blocking(move || file::prepare(&path, create)).await;
        let id = prepared.map_err(|_| Fault::known(ErrorKind::Unavailable, "the process is ending".to_owned()))??;
        let mut conn = self.options.connect().await?;
        let done = schema::bring_up(&mut conn).await?;
        Ok((Open { conn, id }, done))
    }

    /// Makes the file and its tables where there are none.
    pub(super) async fn migrate(&self) -> Result<Migration, Fault> {
        let (open, done) = self.connect_when_free().await?;
        Ok(open.conn.close().await.map(|()| done)?)
    }

    #[allow(clippy::disallowed_methods, reason = "this file owns the wait for another process that sets the file up")]
    async fn connect_when_free(&self) -> Result<(Open, Migration), Fault> {
        loop {
            match self.connect().await {
                Err(fault) if is_busy(&fault) => tokio::time::sleep(CONNECT_PAUSE).await,
                done => return done,
            }
        }
    }
}

#[derive(Debug)]
struct Open {
    conn: SqliteConnection,
    id: FileId,
}

/// One connection to the file, or none yet.
#[derive(Debug, Default)]
pub(super) struct Lane {
    open: Mutex<Option<Open>>,
    doubtful: AtomicBool,
}

impl Lane {
    /// The lane for one call; waits for the call before it.
    pub(super) async fn hold(&self, connector: &Connector) -> Result<Held<'_>, Fault> {
        let mut open = self.open.lock().await;
        let doubtful = self.doubtful.swap(false, Ordering::AcqRel);
        let same_file = open.as_ref().is_some_and(|open| FileId::of(&connector.path) == Some(open.id));
        if doubtful || !same_file {
            // Writing on into a file that was removed would be a second truth beside the new file.
            *open = None;
        }
        if open.is_none() {
            *open = Some(connector.connect_when_free().await?.0);
        }
        Ok(Held(open))
    }

    /// Has the next call open a new connection, unless the fault was only that of waiting. After any other SQLite may
    /// have ended the transaction by itself, which the driver does not notice.
    pub(super) fn doubt(&self, fault: &Fault) {
        self.doubtful.fetch_or(!is_busy(fault), Ordering::AcqRel);
    }
}

/// A lane in use.
pub(super) struct Held<'l>(tokio::sync::MutexGuard<'l, Option<Open>>);

impl Held<'_> {
    /// Begins to write: waits for other processes, and from then on nobody else writes. A transaction that begins by
    /// reading would fail at once when another process has written meanwhile (`BUSY_SNAPSHOT`).
    pub(super) async fn write(&mut self) -> Result<Tx<'_>, Fault> {
        Tx::at_now(self.conn()?.begin_with("BEGIN IMMEDIATE").await?, true).await
    }

    /// Begins to read: everything as of one instant, whoever writes meanwhile.
    pub(super) async fn read(&mut self) -> Result<Tx<'_>, Fault> {
        Tx::at_now(self.conn()?.begin().await?, false).await
    }

    pub(super) fn conn(&mut self) -> Result<&mut SqliteConnection, Fault> {
        let gone = || Fault::known(ErrorKind::Unavailable, "the connection is gone".to_owned());
        self.0.as_mut().map(|open| &mut open.conn).ok_or_else(gone)
    }
}

/// A transaction at one instant of the host's clock. Rolled back unless committed.
pub(super) struct Tx<'c> {
    inner: Transaction<'c, Sqlite>,
    /// The instant by which everything in it is judged.
    pub(super) now: DateTime<Utc>,
    /// Whether it may write.
    pub(super) writes: bool,
}

impl<'c> Tx<'c> {
    async fn at_now(inner: Transaction<'c, Sqlite>, writes: bool) -> Result<Self, Fault> {
        let mut tx = Self { inner, now: DateTime::UNIX_EPOCH, writes };
        tx.look().await?;
        Ok(tx)
    }

    /// Reads the clock, again where somebody joined since.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        let now: i64 = sqlx::query_scalar(OWN.now).fetch_one(self.on()).await?;
        let out_of_range = || Fault::known(ErrorKind::Unavailable, format!("the host's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(out_of_range)?;
        Ok(())
    }

    /// To run a statement on.
    pub(super) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.inner
    }

    pub(super) async fn commit(self) -> Result<(), Fault> {
        Ok(self.inner.commit().await?)
    }
}

impl Columns for SqliteRow {
    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }
}

#[async_trait]
impl Session for Tx<'_> {
    type Row = SqliteRow;

    fn texts(&self) -> &'static Texts {
        &TEXTS
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, _row: &SqliteRow) -> Result<DateTime<Utc>, Why> {
        Ok(self.now)
    }

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<SqliteRow>, sqlx::Error> {
        bound(sql, values).fetch_all(self.on()).await
    }

    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        Ok(bound(sql, values).execute(self.on()).await?.rows_affected())
    }
}

fn bound(sql: &'static str, values: Vec<Value>) -> sqlx::query::Query<'static, sqlx::Sqlite, SqliteArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// Shared by the store and its [`turn`](super::turn)s.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connector: Connector,
    pub(super) writer: Lane,
    pub(super) reader: Lane,
    pub(super) scope: Scope,
    /// For one call.
    pub(super) limit: Duration,
    /// For messages.
    pub(super) location: String,
    pub(super) wakes: broadcast::Sender<Wake>,
}

impl Shared {
    /// Tells this process of a change that is written.
    pub(super) fn tell(&self, wake: Wake) {
        // No receiver is no fault: nobody waits.
        let _ = self.wakes.send(wake);
    }
}
