//! The PostgreSQL store: tables in a database that every node reaches; version 12 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row, the run's output and
//!   the hint together, or nothing: two round trips, and no transaction is open between them.
//! - **Hints** come by LISTEN on a connection of its own; NOTIFY is part of the writing statement, so none is sent for what was
//!   not committed.
//! - **Isolation** is READ COMMITTED, set on each connection: each statement sees what was committed before it, and a
//!   conditional write judges the row as it is when its lock is there.

mod listener;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, PgConnection};
use url::Url;

use crate::slot::Token;
use crate::store::contract::OUTPUT_BYTES;
use crate::store::locks::{LockWakeups, messages_to};
use crate::store::sql::fault::SqlFault;
use crate::store::sql::queues::{LocksWrite, listed};
use crate::store::sql::row;
use crate::store::sql::server::{Dialect, Sent, ServerPlace, ServerSession, ServerStore, ServerTexts, millis};
use crate::store::sql::session::{Columns, Session, Texts, statements, values};
use crate::store::sql::slots::{NO_TURN, Scope, SlotWrite};
use crate::store::tls::TlsWords;
use crate::store::{
    Capability, ErrorKind, Finding, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Wake, Wakeups,
};
use listener::{NotifyListener, channel};

/// A store in the PostgreSQL server at `url`. Connects with the first call.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(ServerStore::<Postgres>::open(url, options)?))
}

/// Makes the tables. The url's user becomes their owner.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    ServerStore::<Postgres>::migrate(url).await
}

/// Encodings of a database that keep every text as it is. `SQL_ASCII` converts nothing.
const KEEP_UTF8: [&str; 2] = ["UTF8", "SQL_ASCII"];

fn other_encoding(encoding: &str) -> SqlFault {
    let message = format!(
        "its encoding {encoding} cannot keep every text: CREATE DATABASE cronward ENCODING 'UTF8' TEMPLATE template0, and name that \
         database in the url"
    );
    SqlFault::known(ErrorKind::Unsupported, message)
}

/// How often somebody who waits looks again while no hints come.
const POLL: Duration = Duration::from_secs(5);

const FILE: &str = include_str!("statements.sql");

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));
static SERVER_TEXTS: LazyLock<ServerTexts> = LazyLock::new(|| ServerTexts::of(FILE));

/// What only PostgreSQL is asked.
static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        greet,
        schema_lock,
        tell,
        slot_write,
        locks_write,
    }
}

/// PostgreSQL.
#[derive(Debug)]
pub(in crate::store::sql) struct Postgres {
    listener: NotifyListener,
}

#[async_trait]
impl Dialect for Postgres {
    type Options = PgConnectOptions;
    type Connection = PgConnection;

    const CAPABILITY: Capability = Capability {
        name: "postgres",
        reach: Reach::Network,
        clock: StoreClock::Server,
        push: true,
        poll: POLL,
        durable: true,
        expires_records: false,
        locks: true,
        tells_changes: false,
        output_bytes: OUTPUT_BYTES,
        messages: true,
    };

    const FORM: &'static str = "write postgres://user:password@host:5432/database, special characters percent-encoded";

    /// As sqlx and libpq name them.
    const PARAMETERS: &'static [&'static str] = &[
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "host",
        "port",
        "dbname",
        "user",
        "password",
        "application_name",
    ];

    const SCHEMA: &'static str = include_str!("schema.sql");

    const TLS: &'static str = "TLS failed: check sslmode, and name the CA of its certificate with sslrootcert";

    const TLS_WORDS: TlsWords = TlsWords::of_driver("sslrootcert=FILE", "sslcert=FILE&sslkey=FILE", "sslmode=disable");

    const STRANGER: &'static str = "what answers there is not PostgreSQL, or broke off";

    fn texts() -> &'static Texts {
        &TEXTS
    }

    fn server_texts() -> &'static ServerTexts {
        &SERVER_TEXTS
    }

    /// The driver would also read the environment and the file of passwords, so what it refuses of a text is refused here.
    fn check(url: &Url) -> Result<(), String> {
        let is_value = |name: &str, value: &str| match name {
            "sslmode" => value.parse::<PgSslMode>().is_ok(),
            "port" => value.parse::<u16>().is_ok(),
            _ => true,
        };
        // Only a host that is the path of a socket is decoded.
        let socket = url.host_str().filter(|host| host.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2F")));
        let texts = [Some(url.username()), url.password(), Some(url.path()), socket];
        let is_fine =
            url.query_pairs().all(|(name, value)| is_value(&name, &value)) && texts.into_iter().flatten().all(is_text);
        if is_fine { Ok(()) } else { Err(wrong()) }
    }

    fn options(url: &Url) -> Result<PgConnectOptions, String> {
        Self::check(url)?;
        let options = PgConnectOptions::from_url(url).map_err(|_| wrong())?;
        // No fraction is read, and poolers refuse this parameter.
        let options = options.extra_float_digits(None);
        let named = url.query_pairs().any(|(name, _)| name == "application_name");
        Ok(if named { options } else { options.application_name("cronward") })
    }

    fn answered(error: &sqlx::Error) -> Option<(ErrorKind, &'static str)> {
        match error {
            // A hint to another client of the same server connection.
            sqlx::Error::Protocol(text) if text.contains("NotificationResponse") => Some(POOLED),
            _ => code(error).map(|code| answered(&code)),
        }
    }

    fn sent(error: &sqlx::Error) -> Sent {
        sent(error)
    }

    fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
        judge(said)
    }

    fn at(place: &ServerPlace<PgConnectOptions>, options: &StoreOptions) -> Self {
        Self { listener: NotifyListener::new(place.clone(), &options.namespace, options.op_timeout) }
    }

    async fn greet(session: &mut ServerSession<Self>, limit: Duration) -> Result<(), SqlFault> {
        let rows = session.fetch(OWN.greet, values![millis(limit).to_string()]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        match row.text("encoding")?.as_deref() {
            Some(encoding) if !KEEP_UTF8.contains(&encoding) => Err(other_encoding(encoding)),
            _ => Ok(()),
        }
    }

    /// Until the end of the transaction.
    async fn lock_schema(session: &mut ServerSession<Self>, _limit: Duration) -> Result<(), SqlFault> {
        session.run(SERVER_TEXTS.begin).await?;
        Ok(session.run(OWN.schema_lock).await?)
    }

    /// In one statement; for the first turn of a job with what it has come to lately, in two.
    async fn write(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &SlotWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault> {
        let mut values = write.row(scope)?;
        let (wake, latest) = (write.change.wake.as_ref().map(ToString::to_string), write.latest()?);
        let (next, mut read) = (write.turn.map(|turn| turn.next), write.turn.and_then(|turn| turn.read));
        if latest.is_some() && read.is_none() {
            session.execute(SERVER_TEXTS.turn_begin, write.job(scope)).await?;
            read = Some(NO_TURN);
        }
        values.extend(values![write.version, write.now, millis(limit), next, read, channel(&scope.namespace), wake]);
        values.push(i64::from(write.change.forgets).into());
        values
            .extend(write.output(usize::MAX)?.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]));
        values.push(latest.into());
        let rows = session.fetch(OWN.slot_write, values).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.number("written")?.is_some_and(|written| written > 0))
    }

    async fn tell(session: &mut ServerSession<Self>, scope: &Scope, wake: &Wake) -> Result<(), SqlFault> {
        session.fetch(OWN.tell, values![channel(&scope.namespace), wake.to_string()]).await?;
        Ok(())
    }

    // What is committed comes back from the server, as to everybody else: nobody has to be told here.
    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }

    /// In one statement, however many.
    async fn write_locks(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &LocksWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault> {
        let rows = write.known.iter().chain(&write.fresh);
        let hints = row::json(&messages_to(&write.wakes, usize::MAX)).map_err(SqlFault::Row)?;
        let (namespace, channel) = (scope.namespace.as_str(), channel(&scope.namespace));
        let values = values![namespace, listed(rows)?, write.now, millis(limit), channel, hints];
        let found = session.fetch(OWN.locks_write, values).await?;
        let found = found.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(found.number("written")?.is_some_and(|written| written > 0))
    }

    fn listen_locks(&self, instance: Token) -> LockWakeups {
        self.listener.listen_locks(instance)
    }
}

fn wrong() -> String {
    format!("a parameter is wrong: {}", Postgres::FORM)
}

/// Whether a part of a url is UTF-8 when it is decoded: what is not becomes U+FFFD, unless that is written.
fn is_text(encoded: &str) -> bool {
    let other = encoded.to_ascii_uppercase().replace("%EF%BF%BD", "_");
    let is_whole = |text: &str| !text.contains(char::REPLACEMENT_CHARACTER);
    url::form_urlencoded::parse(other.as_bytes()).all(|(name, value)| is_whole(&name) && is_whole(&value))
}

/// What is to be said of a server with these settings.
fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let mut findings = vec![Finding::ok("version", format!("postgresql {}", word("server_version")))];
    findings.push(if word("in_recovery") == "true" {
        let fix = "[store] url: name the primary, or add target_session_attrs to what chooses it";
        Finding::fault("role", "it is a standby", "it refuses writes: nothing is claimed", fix)
    } else if word("default_transaction_read_only") == "on" {
        let fix = "ALTER ROLE cronward SET default_transaction_read_only = off";
        Finding::fault("role", "transactions are read-only", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let loses = "a crash of the server loses what was answered last: a slot may be granted twice";
    findings.push(match word("synchronous_commit") {
        "off" => {
            let fix = "ALTER ROLE cronward SET synchronous_commit = on";
            Finding::warning("persistence", "synchronous_commit off", loses, fix)
        }
        "" => Finding::unknown(
            "persistence",
            "the server does not tell synchronous_commit",
            loses,
            "SHOW synchronous_commit",
        ),
        how => Finding::ok("persistence", format!("synchronous_commit {how}")),
    });
    for setting in ["fsync", "full_page_writes"] {
        if word(setting) == "off" {
            let effect = "a power cut may damage the tables: nothing is claimed, or a slot twice";
            let fix = format!("postgresql.conf: {setting} = on");
            findings.push(Finding::fault("durability", format!("{setting} off"), effect, fix));
        }
    }
    findings.push(match word("synchronous_standby_names") {
        "" => Finding::ok("replicas", "none is waited for: a failover may lose what was answered last"),
        names => Finding::ok("replicas", format!("synchronous_standby_names {names}")),
    });
    findings
}

/// The SQLSTATE code that the server answered with (postgresql.org/docs/current/errcodes-appendix.html).
fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// What an error tells about what was sent. A statement that the server refused is rolled back, so is one whose turn of the job
/// another slot has taken meanwhile, or one of whose locks somebody has used first; a server that shuts down may do so between the commit and its answer.
fn sent(error: &sqlx::Error) -> Sent {
    match code(error).as_deref() {
        Some("23505" | "40001" | "40P01") => Sent::RolledBack,
        // statement_completion_unknown
        Some("40003") | None => Sent::Unknown,
        Some(code) if ["08", "57P", "58", "XX"].iter().any(|class| code.starts_with(class)) => Sent::Unknown,
        Some(_) => Sent::Refused,
    }
}

/// A pooler that gives one connection of the server to several clients, one transaction each.
const POOLED: (ErrorKind, &str) = (
    ErrorKind::Unsupported,
    "a pooler (PgBouncer) shares one server connection among its clients: set pool_mode = session, or name the server itself",
);

/// What each code means.
fn answered(code: &str) -> (ErrorKind, &'static str) {
    use ErrorKind::{Content, Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
    match code {
        "28P01" | "28000" => (Denied, "it refuses this user: check user, password and pg_hba.conf"),
        "42501" => {
            (Denied, "the user lacks a right: see docs/stores.md for the grants, or run `cronward migrate` as owner")
        }
        "25006" => (ReadOnly, "it takes no writes, as a standby does: name the primary in the url"),
        "3D000" => (Unsupported, "there is no such database: create it, or name another in the url"),
        "3F000" | "42P01" => (Unsupported, "its tables are missing: run `cronward migrate`"),
        "53300" => (
            Overloaded,
            "it has no room for one more connection: raise max_connections (100 by default; a daemon has up to 9)",
        ),
        "53100" => (Overloaded, "its disk is full"),
        // A statement that another client prepared, and one that it did not.
        "42P05" | "26000" => POOLED,
        "40001" | "40P01" => (Overloaded, "too many others change the same at the same time"),
        "57014" | "55P03" | "25P03" => (Timeout, "it gave the statement up: it is slow, or somebody keeps a lock"),
        "22001" | "22021" | "22P05" | "54000" => {
            (Content, "it refuses a text: too long, or with characters that its encoding lacks (UTF8 has them all)")
        }
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
    use crate::store::Severity;
    use crate::store::sql::postgres::Postgres;
    use crate::store::sql::server::{Access, meaning, resolve};
    use crate::store::sql::session::unmatched;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("server_version", "15.9"), ("synchronous_commit", "on"), ("fsync", "on"), ("in_recovery", "false")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_setting_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("synchronous_commit", "off")]), ["persistence warning"]);
        assert_eq!(trouble(&[("fsync", "off")]), ["durability error"]);
        assert_eq!(trouble(&[("full_page_writes", "off")]), ["durability error"]);
        assert_eq!(trouble(&[("in_recovery", "true")]), ["role error"]);
        assert_eq!(trouble(&[("default_transaction_read_only", "on")]), ["role error"]);
    }

    fn refusal(url: &str) -> String {
        resolve::<Postgres>(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve::<Postgres>("postgres://u:p%40ss@db.example:5433/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 5433));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "postgres://u:***@db.example:5433/cron"));
        assert_eq!(resolve::<Postgres>("postgres://h/d").unwrap().access, Access::Migrate);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_folder() {
        let place = resolve::<Postgres>("postgres:///cron?host=/run/postgresql&user=u").unwrap();
        assert_eq!(place.options.get_socket().unwrap().to_str(), Some("/run/postgresql"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_its_secrets() {
        for (url, part) in [
            ("postgres://u:hunter2@h/d?sslmod=require", "\"sslmod\" is not known"),
            ("postgres://u:hunter2@h/d?sslmode=perhaps", "a parameter is wrong"),
            ("postgres://u:hunter2@h/d?migrate=yes", "\"on\" or \"off\""),
            ("postgres://u:hunter2@h:port/d", "write postgres://"),
        ] {
            let message = refusal(url);
            assert!(message.contains(part) && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn every_named_statement_is_used_and_every_name_that_is_used_is_there_once() {
        assert_eq!(unmatched(FILE, &[ServerTexts::NAMES, Own::NAMES].concat()), [""; 0]);
    }

    #[test]
    fn each_class_of_code_has_its_kind() {
        use ErrorKind::{Content, Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
        for (code, kind) in [
            ("22P05", Content),
            ("22021", Content),
            ("54000", Content),
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
            ("42P05", Unsupported),
            ("26000", Unsupported),
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
