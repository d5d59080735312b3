//! The queues of locks in their table, a row with a document for each: read as of one instant, decided on by a rule, and what that has
//! changed as values for the dialect to write; and removed once nobody needs them.

use chrono::{DateTime, Utc};

use super::fault::SqlFault;
use super::row;
use super::session::{Columns, Session, Why, values};
use super::slots::Scope;
use crate::job::LockName;
use crate::slot::Token;
use crate::store::rules::LockStep;
use crate::store::shelf::{LoadedLocks, LockChange, StoredLock};

/// The most locks that one purge removes.
const PURGE_AT_ONCE: i64 = 500;

fn odd(why: Why) -> SqlFault {
    SqlFault::Row(format!("table locks: {why}"))
}

/// None in a row that only tells the time.
pub(super) fn queue(found: &impl Columns) -> Result<Option<StoredLock<i64>>, Why> {
    let Some(name) = row::text(found, "lock")? else { return Ok(None) };
    let name = LockName::new(&name).map_err(|error| format!("column lock: {error}"))?;
    let state = row::there(row::record(found, "document")?, "document")?;
    Ok(Some((name, (state, row::there(row::number(found, "version")?, "version")?))))
}

/// The queues of these locks; of all where none is named.
pub(super) async fn load<S: Session>(
    session: &mut S,
    scope: &Scope,
    names: &[LockName],
) -> Result<LoadedLocks<i64>, SqlFault> {
    let (namespace, texts) = (scope.namespace.as_str(), session.texts());
    let rows = if names.is_empty() {
        session.fetch(texts.locks_all, values![namespace]).await?
    } else {
        session.fetch(texts.locks_read, values![namespace, row::json(&names).map_err(odd)?]).await?
    };
    // Each has a row, also one that nobody has used.
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let now = session.read_at(first).map_err(odd)?;
    let stored = rows.iter().filter_map(|row| queue(row).transpose()).collect::<Result<_, _>>().map_err(odd)?;
    Ok(LoadedLocks { now, stored })
}

/// The name of every lock that has a row, whatever its document is.
pub(super) async fn names<S: Session>(session: &mut S, scope: &Scope) -> Result<Vec<LockName>, SqlFault> {
    let texts = session.texts();
    let rows = session.fetch(texts.locks_all, values![scope.namespace.as_str()]).await?;
    let name = |found: &S::Row| {
        let name = row::text(found, "lock")?;
        name.map(|name| LockName::new(&name).map_err(|error| format!("column lock: {error}"))).transpose()
    };
    let mut names =
        rows.iter().filter_map(|row| name(row).transpose()).collect::<Result<Vec<_>, Why>>().map_err(odd)?;
    names.sort_unstable();
    Ok(names)
}

/// What has to be written after a step: where anything is, every queue that was there, so that none of them has changed meanwhile. One
/// that was not and is as empty now is left alone: no rule writes an entry without writing to all of its locks.
pub(super) fn write(loaded: &LoadedLocks<i64>, step: LockStep, scope: &Scope) -> Result<LocksWrite, SqlFault> {
    let mut write = LocksWrite { now: loaded.now, known: Vec::new(), fresh: Vec::new(), wakes: step.wakes };
    for LockChange { name, state, read, is_changed } in loaded.changes(step.locks) {
        // Larger than any version that a row of this lock has had, also one that was purged: it is never below the clock.
        let version = read.map_or(i64::MIN, |read| read.saturating_add(1)).max(loaded.now.timestamp_millis());
        let needed_ms = state.needed_until(scope.retention).timestamp_millis();
        let row = LockRow { name, needed_ms, document: row::json(&state).map_err(odd)?, version, read };
        match read {
            Some(_) => write.known.push(row),
            None if is_changed => write.fresh.push(row),
            None => {}
        }
    }
    Ok(write)
}

/// A queue as it is to be written.
#[derive(Debug)]
pub(super) struct LockRow {
    name: LockName,
    needed_ms: i64,
    document: String,
    version: i64,
    /// The version that was read; none where nobody had used the lock.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "one process writes to a file")
    )]
    read: Option<i64>,
}

impl LockRow {
    /// 1 namespace, 2 lock, 3 until when it is needed, 4 document, 5 version.
    #[cfg(feature = "sqlite")]
    pub(super) fn values(&self, scope: &Scope) -> Vec<super::session::Value> {
        values![scope.namespace.as_str(), self.name.as_str(), self.needed_ms, self.document.clone(), self.version]
    }
}

/// What a rule has changed: queues in the order of their names, so that nobody who writes several waits in a circle.
#[derive(Debug)]
pub(super) struct LocksWrite {
    /// When they were read.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "mysql")),
        allow(dead_code, reason = "one process writes to a file")
    )]
    pub(super) now: DateTime<Utc>,
    /// Such as were there.
    pub(super) known: Vec<LockRow>,
    /// Such as nobody had used.
    pub(super) fresh: Vec<LockRow>,
    /// Who is told once that is written.
    pub(super) wakes: Vec<(Token, Token)>,
}

impl LocksWrite {
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) const fn is_none(&self) -> bool {
        self.known.is_empty() && self.fresh.is_empty()
    }
}

/// Rows as the statements take them that write many: a JSON array of [lock, until when it is needed, document, version, the version that
/// was read].
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn listed<'r>(rows: impl Iterator<Item = &'r LockRow>) -> Result<String, SqlFault> {
    let rows: Vec<_> = rows.map(|row| (&row.name, row.needed_ms, &row.document, row.version, row.read)).collect();
    row::json(&rows).map_err(odd)
}

/// Removes locks that nobody has used for the retention.
pub(super) async fn purge<S: Session>(tx: &mut S, scope: &Scope) -> Result<u64, SqlFault> {
    let values = values![scope.namespace.as_str(), tx.now(), PURGE_AT_ONCE];
    Ok(tx.execute(tx.texts().locks_purge, values).await?)
}
