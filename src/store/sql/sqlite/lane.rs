//! The tables through SQLite's eyes: its statements, how a file gets its tables, and one connection, used by one call at a time,
//! and opened again when it has become doubtful or its file was replaced. A file of another version is refused, and so is that
//! of another program.
//!
//! There are two connections, which the calls of one store share, so that reading never waits for a writer. A pool would add nothing but memory: SQLite lets one
//! process write at a time.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction};
use tokio::sync::Mutex;

use super::fault::is_busy;
use super::file::{self, FileId};
use crate::store::hints::Teller;
use crate::store::locks::LockHints;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::missing;
use crate::store::sql::session::{Driver as _, Session, Texts, Why, statements};
use crate::store::sql::slots::Scope;
use crate::store::{ErrorKind, Migration};

const FILE: &str = include_str!("statements.sql");

/// What every dialect is asked, as SQLite takes it.
static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));

/// What only SQLite is asked.
pub(super) static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        header,
        now,
        slot_save,
        latest_save,
        latest_purge,
        outputs_forget,
        output_save,
        output_remove,
        lock_save,
    }
}

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

    async fn connect(&self) -> Result<(Open, Migration), SqlFault> {
        let (path, create) = (self.path.clone(), self.create);
        // Looking at a disk may wait; not in the caller's thread.
        let prepared = tokio::task::spawn_blocking(move || file::prepare(&path, create)).await;
        let id =
            prepared.map_err(|_| SqlFault::known(ErrorKind::Unavailable, "the process is ending".to_owned()))??;
        let mut conn = self.options.connect().await?;
        let done = bring_up(&mut conn).await?;
        Ok((Open { conn, id }, done))
    }

    /// Makes the file and its tables where there are none.
    pub(super) async fn migrate(&self) -> Result<Migration, SqlFault> {
        let (open, done) = self.connect_when_free().await?;
        Ok(open.conn.close().await.map(|()| done)?)
    }

    #[allow(clippy::disallowed_methods, reason = "this file owns the wait for another process that sets the file up")]
    async fn connect_when_free(&self) -> Result<(Open, Migration), SqlFault> {
        loop {
            match self.connect().await {
                Err(fault) if is_busy(&fault) => tokio::time::sleep(CONNECT_PAUSE).await,
                done => return done,
            }
        }
    }
}

/// `PRAGMA application_id` of every file of ours: "CRWD".
const APPLICATION_ID: i64 = 1_129_469_764;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of its tables.
const SCHEMA_VERSION: i64 = 8;

/// What is to be done with a file of a version that was never released.
const WAY_OUT: &str = "stop all that use it and move the file away, or choose another path; a new one is made";

/// What stands in a file's header.
struct Header {
    application: i64,
    version: i64,
    tables: i64,
}

/// Makes the tables where there are none. Processes that open a new file together wait for each other. A file that is refused is
/// left as it is: even its journal mode is not changed. Answers what this process did.
async fn bring_up(conn: &mut SqliteConnection) -> Result<Migration, SqlFault> {
    let found = header(conn).await?;
    let missing = are_missing(&found)?;
    log_beside(conn).await?;
    if !missing {
        return Ok(Migration { from: found.version, to: found.version });
    }
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    // Read again: another process may have done it while this one waited for the lock.
    let from = header(&mut tx).await?;
    if are_missing(&from)? {
        tx.run(SCHEMA).await?;
    }
    let to = header(&mut tx).await?;
    tx.commit().await?;
    Ok(Migration { from: from.version, to: to.version })
}

/// Write-ahead logging: kept in the file, and outside any transaction.
async fn log_beside(conn: &mut SqliteConnection) -> Result<(), SqlFault> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(conn).await?;
    if mode == "wal" {
        return Ok(());
    }
    let why = format!("its file system has no shared memory for a write-ahead log (journal mode {mode}): use another");
    Err(SqlFault::known(ErrorKind::Unsupported, why))
}

async fn header(conn: &mut SqliteConnection) -> Result<Header, SqlFault> {
    let (application, version, tables) = sqlx::query_as(OWN.header).fetch_one(conn).await?;
    Ok(Header { application, version, tables })
}

/// Whether a file with this header has no tables yet.
fn are_missing(header: &Header) -> Result<bool, SqlFault> {
    let ours = header.application == APPLICATION_ID;
    let empty = header.application == 0 && header.version == 0 && header.tables == 0;
    if !ours && !empty {
        let why = "it is the database of another program: choose another path".to_owned();
        return Err(SqlFault::known(ErrorKind::Unsupported, why));
    }
    missing(header.version, SCHEMA_VERSION, WAY_OUT)
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
    pub(super) async fn hold(&self, connector: &Connector) -> Result<Held<'_>, SqlFault> {
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
    pub(super) fn doubt(&self, fault: &SqlFault) {
        self.doubtful.fetch_or(!is_busy(fault), Ordering::AcqRel);
    }
}

/// A lane in use.
pub(super) struct Held<'l>(tokio::sync::MutexGuard<'l, Option<Open>>);

impl Held<'_> {
    /// Begins to write: waits for other processes, and from then on nobody else writes. A transaction that begins by
    /// reading would fail at once when another process has written meanwhile (`BUSY_SNAPSHOT`).
    pub(super) async fn write(&mut self) -> Result<Tx<'_>, SqlFault> {
        Tx::at_now(self.conn()?.begin_with("BEGIN IMMEDIATE").await?, true).await
    }

    /// Begins to read: everything as of one instant, whoever writes meanwhile.
    pub(super) async fn read(&mut self) -> Result<Tx<'_>, SqlFault> {
        Tx::at_now(self.conn()?.begin().await?, false).await
    }

    pub(super) fn conn(&mut self) -> Result<&mut SqliteConnection, SqlFault> {
        let gone = || SqlFault::known(ErrorKind::Unavailable, "the connection is gone".to_owned());
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
    async fn at_now(inner: Transaction<'c, Sqlite>, writes: bool) -> Result<Self, SqlFault> {
        let mut tx = Self { inner, now: DateTime::UNIX_EPOCH, writes };
        tx.look().await?;
        Ok(tx)
    }

    /// Reads the clock, again where somebody joined since.
    pub(super) async fn look(&mut self) -> Result<(), SqlFault> {
        let now = self.connection().number(OWN.now).await?.unwrap_or(i64::MIN);
        let out_of_range = || SqlFault::known(ErrorKind::Unavailable, format!("the host's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(out_of_range)?;
        Ok(())
    }

    pub(super) async fn commit(self) -> Result<(), SqlFault> {
        Ok(self.inner.commit().await?)
    }
}

impl Session for Tx<'_> {
    type Row = SqliteRow;
    type Connection = SqliteConnection;

    fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.inner
    }

    fn texts(&self) -> &'static Texts {
        &TEXTS
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, _row: &SqliteRow) -> Result<DateTime<Utc>, Why> {
        Ok(self.now)
    }
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
    /// Tells this process of what is written.
    pub(super) wakes: Teller,
    /// The same of locks.
    pub(super) lock_hints: LockHints,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::session::unmatched;

    #[test]
    fn a_new_file_gets_its_tables_and_a_current_one_nothing() {
        let new = Header { application: 0, version: 0, tables: 0 };
        let current = Header { application: APPLICATION_ID, version: SCHEMA_VERSION, tables: 7 };
        assert!(are_missing(&new).unwrap());
        assert!(!are_missing(&current).unwrap());
    }

    #[test]
    fn an_older_a_newer_or_a_foreign_file_is_refused_with_a_way_out() {
        for (application, version, tables, part) in [
            (APPLICATION_ID, 3, 7, "move the file away"),
            (APPLICATION_ID, SCHEMA_VERSION + 1, 7, "run the newer cronward"),
            (APPLICATION_ID, -1, 6, "run the newer cronward"),
            (0, 0, 3, "another program"),
            (7, 0, 0, "another program"),
        ] {
            let fault = are_missing(&Header { application, version, tables }).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn every_named_statement_is_used_and_every_name_that_is_used_is_there_once() {
        assert_eq!(unmatched(FILE, Own::NAMES), [""; 0]);
    }
}
