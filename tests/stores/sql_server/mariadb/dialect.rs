//! What MariaDB has of its own: how its servers are started, and the SQL of the common suite.

use std::time::Duration;

use cronward::store::ErrorKind;

pub(crate) use cronward::store::sql::mysql as store;

use super::suite::database::Database;
use crate::mariadb_server::MariadbServer;
pub(crate) use crate::mariadb_server::documented_grants;
use crate::tls_files::TlsFiles;

pub(crate) type Server = MariadbServer;
pub(crate) type Connection = sqlx::MySqlConnection;

pub(crate) const SCHEME: &str = "mysql";

/// The stores' page has a section of it.
pub(crate) const SECTION: &str = "MySQL";

/// Nothing was changed for longer than anything is kept.
pub(crate) const OUTLASTED: &str = "UPDATE cronward_slots SET touched_ms = 0, version = version + 1,
    document = json_set(document, '$.touched_ms', 0)";

/// A lock by name holds for the whole server, which the tests share: each database has a gate of its own.
pub(crate) const CLOSE_GATE: &str = "DO get_lock(concat('gate of ', database()), 0)";
pub(crate) const OPEN_GATE: &str = "DO release_lock(concat('gate of ', database()))";
/// For a trigger.
pub(crate) const WAIT_AT_GATE: &str = "SET @waited = get_lock(concat('gate of ', database()), 20), \
                                       @let = release_lock(concat('gate of ', database()))";
/// For a trigger as well.
pub(crate) const DISK_IS_FULL: &str = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'told to'";

pub(crate) const CONNECTIONS: &str = "SELECT count(*) FROM information_schema.processlist WHERE db = 'NAME'";
pub(crate) const WAITING: &str = "SELECT count(*) FROM information_schema.processlist
    WHERE db = 'NAME' AND id <> connection_id()
    AND (state = 'User lock' OR id IN (
        SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'))";
pub(crate) const WAITING_SESSION: &str = "SELECT coalesce(max(id), 0) FROM information_schema.processlist
    WHERE state = 'User lock' AND db = 'NAME'";
pub(crate) const OTHER_SESSIONS: &str =
    "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()";
/// The server shows transactions as of the last time that nobody had asked for a tenth of a second.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(150);

/// What is told of a link that ends.
pub(crate) const BROKEN_OFF: &[ErrorKind] = &[ErrorKind::Unavailable];

/// Where a query finds the tables' names.
pub(crate) const SCHEMA: &str = "database()";

/// Round trips of a slot's first claim that is granted.
pub(crate) const FIRST_CLAIM: u128 = 3;

/// Round trips of a call that writes to several locks.
pub(crate) const SEVERAL_LOCKS: u128 = 4;

/// Whoever may not write to one of these cannot claim.
pub(crate) const WRITTEN_BY_A_CLAIM: &[&str] = &["cronward_slots"];

/// What ShedLock's documentation makes, and its statements for this server.
pub(crate) const SHEDLOCK_TABLE: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL PRIMARY KEY,
    lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL)";
pub(crate) const SHEDLOCK_INSERT: &str =
    "INSERT IGNORE INTO shedlock (name, lock_until, locked_at, locked_by) VALUES (ROW)";
pub(crate) const SHEDLOCK_NOW: &str = "utc_timestamp(3)";
pub(crate) const SHEDLOCK_UNTIL: &str = "timestampadd(microsecond, 600000000, utc_timestamp(3))";
/// The block of the page for users of ShedLock.
pub(crate) const CLOSE_SHEDLOCK: &str = "close-mysql.sql";

/// The part of a url before the path of an authority's certificate, so that the server's is checked.
pub(crate) const CHECKED_BY: &str = "ssl-mode=verify_identity&ssl-ca";
pub(crate) const CA_OPTION: &str = "ssl-ca";

pub(crate) fn start_to_share() -> Server {
    MariadbServer::start()
}

pub(crate) fn start() -> Server {
    MariadbServer::start()
}

/// What it commits survives a crash.
pub(crate) fn start_that_syncs() -> Server {
    MariadbServer::start_with(&["--innodb-flush-log-at-trx-commit=1"])
}

pub(crate) fn start_with_tls(files: &TlsFiles) -> Server {
    files.let_others_read();
    let option = |name: &str, file: &str| format!("--ssl-{name}={}", files.dir().join(file).display());
    let options = [option("ca", "ca.pem"), option("cert", "cert.pem"), option("key", "key.pem")];
    MariadbServer::start_with(&options.each_ref().map(String::as_str))
}

/// A database whose clock is three hours ahead of this process's, and the url of a user for whom it is: `init_connect` sets the
/// time of plain users.
pub(crate) async fn three_hours_ahead() -> (Database, String) {
    let server = MariadbServer::start_with(&["--init-connect=SET timestamp = unix_timestamp() + 10800"]);
    let database = Database::alone_on(server).await;
    store::migrate(&database.url()).await.unwrap();
    database.sql(&user_of_all("plain", &database.name)).await;
    let url = database.url_of("plain");
    (database, url)
}

/// `INSERT` or `UPDATE`.
pub(crate) fn before_each(event: &str, body: &str) -> String {
    format!("CREATE TRIGGER before_{event} BEFORE {event} ON cronward_slots FOR EACH ROW {body}")
}

pub(crate) fn kill(session: i64) -> String {
    format!("KILL CONNECTION {session}")
}

/// A user who may do everything with the database.
pub(crate) fn user_of_all(user: &str, database: &str) -> String {
    format!("CREATE USER {user} IDENTIFIED BY 'secret'; GRANT ALL ON {database}.* TO {user}")
}

/// A user who may not make tables.
pub(crate) fn user_who_reads(user: &str, database: &str) -> String {
    format!("CREATE USER {user} IDENTIFIED BY 'secret'; GRANT SELECT ON {database}.* TO {user}")
}

/// The password `fresh`, and the end of the sessions with the old one.
pub(crate) fn new_password(user: &str) -> [String; 2] {
    [format!("ALTER USER {user} IDENTIFIED BY 'fresh'"), format!("KILL USER {user}")]
}

/// A documented statement for a user of another name, with the password `secret`.
pub(crate) fn granted_to(user: &str, grant: &str) -> String {
    grant
        .replace("cronward IDENTIFIED BY 'PASSWORD'", &format!("{user} IDENTIFIED BY 'secret'"))
        .replace("TO cronward", &format!("TO {user}"))
}
