//! A real PostgreSQL.

use cronward::store::sql::postgres as store;
use sqlx::PgConnection as Connection;

use crate::postgres_server::{PostgresServer as Server, documented_grants};

#[path = "sql_server.rs"]
mod sql_server;

pub(super) use sql_server::{as_owner, with_least_privilege};

/// The server's clock, in milliseconds.
const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

fn new_password(user: &str, password: &str) -> String {
    format!("ALTER ROLE {user} PASSWORD '{password}'")
}

/// A statement whose values are marked as this server wants it, and not by `?`.
fn with_marks(sql: &str) -> String {
    (1..=3).fold(sql.to_owned(), |sql, number| sql.replacen('?', &format!("${number}"), 1))
}
