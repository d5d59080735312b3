//! A real MariaDB.

use cronward::store::sql::mysql as store;
use sqlx::MySqlConnection as Connection;

use crate::mariadb_server::{MariadbServer as Server, documented_grants};

#[path = "sql_server.rs"]
mod sql_server;

pub(super) use sql_server::{as_owner, with_least_privilege};

/// The server's clock, in milliseconds.
const NOW: &str = "timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000";

fn new_password(user: &str, password: &str) -> String {
    format!("ALTER USER {user} IDENTIFIED BY '{password}'")
}

/// A statement whose values are marked by `?`, as this server wants it.
fn with_marks(sql: &str) -> String {
    sql.to_owned()
}
