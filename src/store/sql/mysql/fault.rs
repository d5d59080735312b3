//! What MySQL's and MariaDB's errors mean: their numbers become kinds with a way out, and whether a write may have been applied.
//! (dev.mysql.com/doc/mysql-errors, mariadb.com/kb/en/mariadb-error-codes)

use sqlx::mysql::MySqlDatabaseError;

use crate::store::ErrorKind;
use crate::store::sql::server::Sent;

pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    Some(error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

/// True when a row with that key is there already.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    number(error) == Some(1062)
}

/// What an error tells about what was sent. Whatever the server refused is not committed: the connection that it happened on
/// is closed, and its transaction rolled back.
pub(super) fn sent(error: &sqlx::Error) -> Sent {
    match number(error) {
        // Deadlock; a row that changed since the snapshot (innodb_snapshot_isolation).
        Some(1213 | 1020) => Sent::RolledBack,
        // Shutting down, killed, gone.
        None | Some(1053 | 1077 | 1079 | 1152..=1161 | 1184 | 1317 | 1927 | 4031) => Sent::Unknown,
        Some(_) => Sent::Refused,
    }
}

/// What each number means.
pub(super) const fn answered(number: u16) -> (ErrorKind, &'static str) {
    use ErrorKind::{Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
    match number {
        1044 | 1045 | 1130 | 1698 | 3118 => (Denied, "it refuses this user: check user, password and host"),
        1142 | 1143 | 1227 | 1370 => {
            (Denied, "the user lacks a right: see docs/stores.md for the grants, or run `cronward migrate` as owner")
        }
        1290 | 1792 | 1836 => (ReadOnly, "it takes no writes, as a replica does: name the primary in the url"),
        1049 => (Unsupported, "there is no such database: create it, or name another in the url"),
        1146 => (Unsupported, "its tables are missing: run `cronward migrate`"),
        1064 | 1193 | 1235 => (Unsupported, "it is too old: take MariaDB 10.6 or MySQL 8.0.4, or later"),
        1665 => (Unsupported, "its binary log is in statements: set binlog_format to MIXED or ROW"),
        1040 | 1203 | 1226 => (Overloaded, "it has no room for one more connection: raise max_connections"),
        1021 | 1037 | 1038 | 1041 | 1114 => (Overloaded, "it has no room: disk or memory"),
        1213 | 1020 => (Overloaded, "too many others change the same at the same time"),
        1205 | 1969 | 3024 => (Timeout, "it gave the statement up: it is slow, or somebody keeps a lock"),
        1053 | 1077 | 1079 | 1152..=1161 | 1184 | 1317 | 1927 | 4031 => {
            (Unavailable, "it is stopping, or somebody ended the connection")
        }
        _ => (Corrupt, "its tables are not as cronward made them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::mysql::MySql;
    use crate::store::sql::server::meaning;

    #[test]
    fn each_number_has_its_kind() {
        use ErrorKind::{Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
        for (number, kind) in [
            (1045, Denied),
            (1142, Denied),
            (1290, ReadOnly),
            (1146, Unsupported),
            (1040, Overloaded),
            (1114, Overloaded),
            (1213, Overloaded),
            (1205, Timeout),
            (1969, Timeout),
            (1053, Unavailable),
            (1054, Corrupt),
        ] {
            assert_eq!(answered(number).0, kind, "{number}");
        }
    }

    #[test]
    fn an_error_without_an_answer_leaves_it_unknown_what_was_applied() {
        let broken = sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(sent(&broken), Sent::Unknown);
        assert_eq!(meaning::<MySql>(&broken).0, ErrorKind::Unavailable);
    }
}
