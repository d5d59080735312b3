//! MariaDB under chaos.

use crate::mariadb_server::MariadbServer as Server;

use super::{Store, names};

#[path = "sql_server.rs"]
mod sql_server;

pub(super) const STORE: Store =
    Store { name: names::MARIADB, bears: sql_server::BEARS, start: sql_server::Struck::boxed };

const SCHEME: &str = "mysql";
const VERSION: &str = "SELECT concat('mariadb ', substring_index(version(), '-', 1))";
const SESSIONS: &str = "SELECT id FROM information_schema.processlist WHERE user = 'owner'";

/// A page that is half written when the server is killed has to be made good.
fn start() -> Server {
    Server::start_with(&["--innodb-doublewrite=1"])
}

fn crash(server: &mut Server) {
    server.kill();
}

fn kill(session: i64) -> String {
    format!("KILL CONNECTION {session}")
}
