//! PostgreSQL under chaos.

use crate::postgres_server::PostgresServer as Server;

use super::{Store, names};

#[path = "sql_server.rs"]
mod sql_server;

pub(super) const STORE: Store =
    Store { name: names::POSTGRES, bears: sql_server::BEARS, start: sql_server::Struck::boxed };

const SCHEME: &str = "postgres";
const VERSION: &str = "SELECT 'postgresql ' || split_part(current_setting('server_version'), ' ', 1)";
const SESSIONS: &str = "SELECT pid::bigint FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// A page that is half written when the server is killed has to be made good.
fn start() -> Server {
    Server::start_believing("full_page_writes = on")
}

fn crash(server: &mut Server) {
    server.crash();
}

fn kill(session: i64) -> String {
    format!("SELECT pg_terminate_backend({session})")
}
