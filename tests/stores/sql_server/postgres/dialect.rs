//! What PostgreSQL has of its own: how its servers are started, and the SQL of the common suite.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use cronward::store::ErrorKind;

pub(crate) use cronward::store::sql::postgres as store;

use super::suite::database::Database;
use crate::postgres_server::PostgresServer;
pub(crate) use crate::postgres_server::documented_grants;
use crate::tls_files::TlsFiles;

pub(crate) type Server = PostgresServer;
pub(crate) type Connection = sqlx::PgConnection;

pub(crate) const SCHEME: &str = "postgres";

/// The stores' page has a section of it.
pub(crate) const SECTION: &str = "PostgreSQL";

/// Nothing was changed for longer than anything is kept.
pub(crate) const OUTLASTED: &str = "UPDATE cronward_slots SET touched_ms = 0, version = version + 1,
    document = jsonb_set(document::jsonb, '{touched_ms}', '0')::text";

/// A lock by number is the database's.
pub(crate) const CLOSE_GATE: &str = "SELECT pg_advisory_lock(42)";
pub(crate) const OPEN_GATE: &str = "SELECT pg_advisory_unlock(42)";
/// For a trigger.
pub(crate) const WAIT_AT_GATE: &str = "PERFORM pg_advisory_xact_lock(42);";
/// For a trigger as well.
pub(crate) const DISK_IS_FULL: &str = "RAISE EXCEPTION 'told to' USING ERRCODE = '53100';";

pub(crate) const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'NAME'";
pub(crate) const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = 'NAME' AND wait_event_type = 'Lock'";
pub(crate) const WAITING_SESSION: &str = "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity
    WHERE datname = 'NAME' AND wait_event_type = 'Lock'";
pub(crate) const OTHER_SESSIONS: &str = "SELECT pid::bigint FROM pg_stat_activity
    WHERE datname = current_database() AND usename = 'owner' AND pid <> pg_backend_pid()";
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A link that ends amid the greeting looks like a server of another kind.
pub(crate) const BROKEN_OFF: &[ErrorKind] = &[ErrorKind::Unavailable, ErrorKind::Unsupported];

/// Where a query finds the tables' names.
pub(crate) const SCHEMA: &str = "'public'";

/// Round trips of a slot's first claim that is granted.
pub(crate) const FIRST_CLAIM: u128 = 2;

/// Round trips of a call that writes to several locks.
pub(crate) const SEVERAL_LOCKS: u128 = 2;

/// Whoever may not write to one of these cannot claim.
pub(crate) const WRITTEN_BY_A_CLAIM: &[&str] = &["cronward_slots", "cronward_outputs"];

/// What ShedLock's documentation makes, and its statements for this server.
pub(crate) const SHEDLOCK_TABLE: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL PRIMARY KEY,
    lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)";
pub(crate) const SHEDLOCK_INSERT: &str =
    "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES (ROW) ON CONFLICT (name) DO NOTHING";
pub(crate) const SHEDLOCK_NOW: &str = "timezone('utc', current_timestamp)";
pub(crate) const SHEDLOCK_UNTIL: &str = "timezone('utc', current_timestamp) + make_interval(secs => 600)";
/// The block of the page for users of ShedLock.
pub(crate) const CLOSE_SHEDLOCK: &str = "close-postgres.sql";

/// The part of a url before the path of an authority's certificate, so that the server's is checked.
pub(crate) const CHECKED_BY: &str = "sslmode=verify-full&sslrootcert";
pub(crate) const CA_OPTION: &str = "sslrootcert";

/// A deadlock is found at once.
pub(crate) fn start_to_share() -> Server {
    PostgresServer::start_with("deadlock_timeout = 20ms")
}

pub(crate) fn start() -> Server {
    PostgresServer::start()
}

/// What it commits survives a crash.
pub(crate) fn start_that_syncs() -> Server {
    PostgresServer::start_with("fsync = on")
}

pub(crate) fn start_with_tls(files: &TlsFiles) -> Server {
    // The server reads its key as its own user, and refuses one that others can read.
    files.let_others_read();
    let (key, folder) = (files.dir().join("key.pem"), files.dir().display());
    let owner = nix::unistd::User::from_name("postgres").unwrap();
    if let Some(owner) = owner.filter(|_| nix::unistd::Uid::effective().is_root()) {
        std::os::unix::fs::chown(&key, Some(owner.uid.as_raw()), Some(owner.gid.as_raw())).unwrap();
    }
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    PostgresServer::start_with(&format!(
        "ssl = on\nssl_cert_file = '{folder}/cert.pem'\nssl_key_file = '{folder}/key.pem'\n"
    ))
}

/// A database whose clock is three hours ahead of this process's, and the url of a user for whom it is.
pub(crate) async fn three_hours_ahead() -> (Database, String) {
    let database = Database::new().await;
    database.store().await;
    database
        .sql(
            "CREATE SCHEMA fast;
             CREATE FUNCTION fast.clock_timestamp() RETURNS timestamptz LANGUAGE sql
             AS $$ SELECT pg_catalog.clock_timestamp() + interval '3 hours' $$",
        )
        .await;
    database.sql(&format!("ALTER DATABASE {} SET search_path = fast, pg_catalog, public", database.name)).await;
    let url = database.url();
    (database, url)
}

/// `INSERT`, `UPDATE`, or `INSERT OR UPDATE`; the body is PL/pgSQL.
pub(crate) fn before_each(event: &str, body: &str) -> String {
    let name = format!("before_{}", event.replace(' ', "_"));
    format!(
        "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN new; END $$;
         CREATE TRIGGER {name} BEFORE {event} ON cronward_slots FOR EACH ROW EXECUTE FUNCTION {name}()"
    )
}

pub(crate) fn kill(session: i64) -> String {
    format!("SELECT pg_terminate_backend({session})")
}

/// A user who may do everything.
pub(crate) fn user_of_all(user: &str, _database: &str) -> String {
    format!("CREATE ROLE {user} LOGIN SUPERUSER PASSWORD 'secret'")
}

/// A user who may not make tables: since PostgreSQL 15 a plain one may not in `public`.
pub(crate) fn user_who_reads(user: &str, _database: &str) -> String {
    format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM public")
}

/// The password `fresh`, and the end of the sessions with the old one.
pub(crate) fn new_password(user: &str) -> [String; 2] {
    let sessions = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'");
    [format!("ALTER ROLE {user} PASSWORD 'fresh'"), sessions]
}

/// A documented statement for a user of another name, with the password `secret`.
pub(crate) fn granted_to(user: &str, grant: &str) -> String {
    grant
        .replace("CREATE ROLE cronward LOGIN", &format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'"))
        .replace("TO cronward", &format!("TO {user}"))
}
