//! What PostgreSQL's errors mean: SQLSTATE codes become kinds with a way out, and whether a write may have been applied.
//! (postgresql.org/docs/current/errcodes-appendix.html)

use crate::store::ErrorKind;
use crate::store::sql::server::Sent;

pub(super) fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// What an error tells about what was sent. A statement that the server refused is rolled back, so is one whose turn of the job
/// another slot has taken meanwhile; a server that shuts down may do so between the commit and its answer.
pub(super) fn sent(error: &sqlx::Error) -> Sent {
    match code(error).as_deref() {
        Some("23505" | "40001" | "40P01") => Sent::RolledBack,
        // statement_completion_unknown
        Some("40003") | None => Sent::Unknown,
        Some(code) if ["08", "57P", "58", "XX"].iter().any(|class| code.starts_with(class)) => Sent::Unknown,
        Some(_) => Sent::Refused,
    }
}

/// What each code means.
pub(super) fn answered(code: &str) -> (ErrorKind, &'static str) {
    use ErrorKind::{Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
    match code {
        "28P01" | "28000" => (Denied, "it refuses this user: check user, password and pg_hba.conf"),
        "42501" => {
            (Denied, "the user lacks a right: see docs/stores.md for the grants, or run `cronward migrate` as owner")
        }
        "25006" => (ReadOnly, "it takes no writes, as a standby does: name the primary in the url"),
        "3D000" => (Unsupported, "there is no such database: create it, or name another in the url"),
        "3F000" | "42P01" => (Unsupported, "its tables are missing: run `cronward migrate`"),
        "53300" => (Overloaded, "it has no room for one more connection: raise max_connections"),
        "53100" => (Overloaded, "its disk is full"),
        "40001" | "40P01" => (Overloaded, "too many others change the same at the same time"),
        "57014" | "55P03" | "25P03" => (Timeout, "it gave the statement up: it is slow, or somebody keeps a lock"),
        _ => match code.get(..2).unwrap_or_default() {
            "08" | "57" => (Unavailable, "it is starting, stopping or failing over"),
            "53" => (Overloaded, "it has no room"),
            "58" | "XX" => (Unavailable, "it has trouble of its own: see its log"),
            "0A" => (Unsupported, "it lacks something that is needed: take PostgreSQL 12 or later"),
            _ => (Corrupt, "its tables are not as cronward made them"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::postgres::Postgres;
    use crate::store::sql::server::meaning;

    #[test]
    fn each_class_of_code_has_its_kind() {
        use ErrorKind::{Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
        for (code, kind) in [
            ("28P01", Denied),
            ("42501", Denied),
            ("25006", ReadOnly),
            ("42P01", Unsupported),
            ("53300", Overloaded),
            ("53200", Overloaded),
            ("40001", Overloaded),
            ("57014", Timeout),
            ("57P03", Unavailable),
            ("08006", Unavailable),
            ("XX000", Unavailable),
            ("42703", Corrupt),
            ("22P02", Corrupt),
            ("", Corrupt),
        ] {
            assert_eq!(answered(code).0, kind, "{code}");
        }
    }

    #[test]
    fn an_error_without_an_answer_leaves_it_unknown_what_was_applied() {
        let broken = sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(sent(&broken), Sent::Unknown);
        assert_eq!(meaning::<Postgres>(&broken).0, ErrorKind::Unavailable);
    }
}
