//! The schema's versions, and the way from one to the next. Only forward: a file of a newer version is refused.

use sqlx::{Connection, SqliteConnection};

use crate::store::sql::fault::Fault;
use crate::store::{ErrorKind, Migration};

/// `PRAGMA application_id` of every file of ours: "CRWD".
const APPLICATION_ID: i64 = 1_129_469_764;

/// Step N brings a file from version N to N + 1, and sets `user_version` itself.
const STEPS: [&str; 3] =
    [include_str!("0001_tables.sql"), include_str!("0002_notes.sql"), include_str!("0003_leased.sql")];

/// What stands in a file's header.
struct Header {
    application: i64,
    version: i64,
    tables: i64,
}

/// Brings the file to the newest version. Processes that open a new file together wait for each other. A file that is
/// refused is left as it is: even its journal mode is not changed. Answers what this process did.
pub(super) async fn bring_up(conn: &mut SqliteConnection) -> Result<Migration, Fault> {
    let found = header(conn).await?;
    let steps = pending(&found)?;
    log_beside(conn).await?;
    if steps.is_empty() {
        return Ok(Migration { from: found.version, to: found.version });
    }
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    // Read again: another process may have done it while this one waited for the lock.
    let from = header(&mut tx).await?;
    for step in pending(&from)? {
        sqlx::raw_sql(*step).execute(&mut *tx).await?;
    }
    let to = header(&mut tx).await?;
    tx.commit().await?;
    Ok(Migration { from: from.version, to: to.version })
}

/// Write-ahead logging: kept in the file, and outside any transaction.
async fn log_beside(conn: &mut SqliteConnection) -> Result<(), Fault> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(conn).await?;
    if mode == "wal" {
        return Ok(());
    }
    let why = format!("its file system has no shared memory for a write-ahead log (journal mode {mode}): use another");
    Err(Fault::known(ErrorKind::Unsupported, why))
}

async fn header(conn: &mut SqliteConnection) -> Result<Header, Fault> {
    let (application, version, tables) = sqlx::query_as(include_str!("header.sql")).fetch_one(conn).await?;
    Ok(Header { application, version, tables })
}

/// The steps that are missing in a file with this header.
fn pending(header: &Header) -> Result<&'static [&'static str], Fault> {
    let ours = header.application == APPLICATION_ID;
    let empty = header.application == 0 && header.version == 0 && header.tables == 0;
    let refuse = |why: String| Err(Fault::known(ErrorKind::Unsupported, why));
    if !ours && !empty {
        return refuse("it is the database of another program: choose another path".to_owned());
    }
    match usize::try_from(header.version).ok().and_then(|version| STEPS.get(version..)) {
        Some(steps) => Ok(steps),
        None => refuse(format!(
            "its schema has version {}, and this cronward knows up to {}: run the newer cronward, or choose another path",
            header.version,
            STEPS.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_gets_every_step_and_a_current_one_none() {
        let new = Header { application: 0, version: 0, tables: 0 };
        let old = Header { application: APPLICATION_ID, version: 1, tables: 6 };
        let current = Header { application: APPLICATION_ID, version: 3, tables: 7 };
        assert_eq!(pending(&new).unwrap().len(), STEPS.len());
        assert_eq!(pending(&old).unwrap().len(), 2);
        assert!(pending(&current).unwrap().is_empty());
    }

    #[test]
    fn a_newer_or_foreign_file_is_refused_with_a_way_out() {
        for (application, version, tables, part) in [
            (APPLICATION_ID, 4, 7, "run the newer cronward"),
            (APPLICATION_ID, -1, 6, "run the newer cronward"),
            (0, 0, 3, "another program"),
            (7, 0, 0, "another program"),
        ] {
            let fault = pending(&Header { application, version, tables }).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
