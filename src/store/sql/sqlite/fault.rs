//! What SQLite's errors mean: its result codes become kinds with a way out.

use crate::store::sql::fault::SqlFault;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// True when another process held the file for the whole `busy_timeout`. Nothing was written then.
pub(super) fn is_busy(fault: &SqlFault) -> bool {
    matches!(fault, SqlFault::Sql(error) if matches!(primary_code(error), Some(BUSY | LOCKED | PROTOCOL)))
}

/// The one error of every store.
pub(super) fn into_error(fault: SqlFault, op: Op, applied: Applied, location: &str) -> StoreError {
    let applied = if is_busy(&fault) { Applied::No } else { applied };
    fault.into_error(op, applied, location, meaning)
}

/// What an error of SQLite means, with its own words behind.
pub(super) fn meaning(error: &sqlx::Error) -> (ErrorKind, String) {
    let (kind, advice) = classify(error);
    (kind, format!("{advice} ({error})"))
}

// sqlite.org/rescode.html
const ERROR: i32 = 1;
const PERM: i32 = 3;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NOMEM: i32 = 7;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const PROTOCOL: i32 = 15;
const TOOBIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const AUTH: i32 = 23;
const NOTADB: i32 = 26;

/// The primary result code: the extended one's low byte.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

fn classify(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::RowNotFound => {
            return (
                ErrorKind::Corrupt,
                "a row is not as cronward writes it: move the file away and start with a new one",
            );
        }
        _ => {}
    }
    match primary_code(error) {
        Some(BUSY | LOCKED | PROTOCOL) => {
            (ErrorKind::Timeout, "another process kept the file locked: look for a long transaction on it")
        }
        Some(TOOBIG) => (ErrorKind::Content, "a text is longer than a row may be"),
        Some(NOMEM) => (ErrorKind::Overloaded, "no memory left"),
        Some(FULL) => (ErrorKind::Overloaded, "the disk is full: make room where the file is"),
        Some(READONLY) => (ErrorKind::ReadOnly, "the file cannot be written: check owner, mode and mount"),
        Some(PERM | AUTH) => (ErrorKind::Denied, "no permission: check the owner and mode of the file"),
        Some(IOERR) => (ErrorKind::Unavailable, "the disk failed a read or a write: check the disk, quotas and limits"),
        Some(CANTOPEN) => (ErrorKind::Unavailable, "the file or its log cannot be opened: check its directory"),
        Some(NOTADB) => (ErrorKind::Corrupt, "the file is no SQLite database: choose another path, or move it away"),
        Some(CORRUPT | ERROR | CONSTRAINT | MISMATCH) => (
            ErrorKind::Corrupt,
            "the file is damaged, or not as cronward made it: move it away and start with a new one",
        ),
        _ => (ErrorKind::Unavailable, "the database did not answer"),
    }
}
