//! What SQLite is asked, and how a file gets its tables. One of another version is refused, and so is that of another program.

use std::sync::LazyLock;

use sqlx::{Connection, SqliteConnection};

use crate::store::sql::fault::Fault;
use crate::store::sql::session::{Texts, statements};
use crate::store::sql::tables_are_missing;
use crate::store::{ErrorKind, Migration};

const FILE: &str = include_str!("statements.sql");

/// What every dialect is asked, as SQLite takes it.
pub(super) static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));

/// What only SQLite is asked.
pub(super) static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        header,
        now,
        slot_save,
        outputs_forget,
        output_save,
        output_remove,
    }
}

/// `PRAGMA application_id` of every file of ours: "CRWD".
const APPLICATION_ID: i64 = 1_129_469_764;

const SCHEMA: &str = include_str!("schema.sql");

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
pub(super) async fn bring_up(conn: &mut SqliteConnection) -> Result<Migration, Fault> {
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
        sqlx::raw_sql(SCHEMA).execute(&mut *tx).await?;
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
    let (application, version, tables) = sqlx::query_as(OWN.header).fetch_one(conn).await?;
    Ok(Header { application, version, tables })
}

/// Whether a file with this header has no tables yet.
fn are_missing(header: &Header) -> Result<bool, Fault> {
    let ours = header.application == APPLICATION_ID;
    let empty = header.application == 0 && header.version == 0 && header.tables == 0;
    if !ours && !empty {
        let why = "it is the database of another program: choose another path".to_owned();
        return Err(Fault::known(ErrorKind::Unsupported, why));
    }
    tables_are_missing(header.version, WAY_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::SCHEMA_VERSION;
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
