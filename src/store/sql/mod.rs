//! Stores in SQL databases.
//!
//! A database keeps rows and makes a transaction atomic; the rules are Rust, on the state of one slot (`store::rules`), shared
//! with stores that are no databases. Each dialect
//! has its own statements (`statements.sql`), its own errors and its own way to write; all else is shared.
//!
//! | part | what it does |
//! |---|---|
//! | `session`, `row` | a connection, its statements and rows, as the shared code sees them |
//! | `slots`, `queues`, `messages`, `registry` | what is read and written: the same tables in every dialect, of one version |
//! | `sqlite` | one file, and the lock on it |
//! | `server` | what database servers have in common: what a dialect is, urls, connections, limits, steps that others come before |
//! | `postgres`, `mysql` | the servers' own |

mod backend;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod messages;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
mod queues;
mod registry;
mod row;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server;
mod session;
mod slots;
#[cfg(feature = "sqlite")]
mod sqlite;

use crate::store::ErrorKind;
use fault::SqlFault;

#[cfg(feature = "mysql")]
pub(super) use backend::MYSQL;
#[cfg(feature = "postgres")]
pub(super) use backend::POSTGRES;
#[cfg(feature = "sqlite")]
pub(super) use backend::SQLITE;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

/// The version of the tables that the `schema.sql` of each database server makes. What came before it was never released.
#[cfg(any(feature = "postgres", feature = "mysql", test))]
const SCHEMA_VERSION: i64 = 8;

/// The same as [`missing`], for the tables of a database server.
#[cfg(any(feature = "postgres", feature = "mysql", test))]
fn tables_are_missing(version: i64, way_out: &str) -> Result<bool, SqlFault> {
    missing(version, SCHEMA_VERSION, way_out)
}

/// Whether the tables have to be made; refuses tables of any other version. What is to be done with older ones is the store's to say.
fn missing(version: i64, current: i64, way_out: &str) -> Result<bool, SqlFault> {
    let refuse = |why: String| Err(SqlFault::known(ErrorKind::Unsupported, why));
    match version {
        0 => Ok(true),
        _ if version == current => Ok(false),
        _ if (1..current).contains(&version) => refuse(format!(
            "its tables have version {version}, which was never released, and this cronward makes version {current}: {way_out}"
        )),
        _ => refuse(format!(
            "its tables have version {version}, and this cronward knows version {current}: run the newer cronward"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_made_where_there_are_none_and_left_alone_where_they_are_of_another_version() {
        assert!(tables_are_missing(0, "move it away").unwrap());
        assert!(!tables_are_missing(SCHEMA_VERSION, "move it away").unwrap());
        for (version, part) in [
            (1, "version 1, which was never released"),
            (SCHEMA_VERSION - 1, "makes version 8: move it away"),
            (SCHEMA_VERSION + 1, "run the newer cronward"),
            (-1, "run the newer cronward"),
        ] {
            let fault = tables_are_missing(version, "move it away").unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
