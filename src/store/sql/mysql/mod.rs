//! The MySQL store: tables in a database that every node reaches; MariaDB 10.6 or later, MySQL 8.0.4 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row on the condition of its version.
//!   Only where a run's output changes, which stands in a table of its own, it needs a short transaction.
//! - **Hints** reach this process only; others look again at an interval.
//! - **Isolation** is READ COMMITTED, set on each connection: fewer gap locks, so fewer deadlocks. A listing of many slots
//!   reads from one consistent snapshot.
//! - **Strict.** The SQL mode is set on each connection, so that nothing is cut or rounded in silence.

mod locks;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError};
use sqlx::{ConnectOptions, MySqlConnection};
use url::Url;

use crate::slot::Token;
use crate::store::contract::OUTPUT_BYTES;
use crate::store::hints::Teller;
use crate::store::locks::{LockHints, LockWakeups};
use crate::store::sql::fault::SqlFault;
use crate::store::sql::queues::LocksWrite;
use crate::store::sql::server::{Dialect, Sent, ServerPlace, ServerSession, ServerStore, ServerTexts, millis};
use crate::store::sql::session::{Columns, Session, Texts, Value, statements, values};
use crate::store::sql::slots::{NO_TURN, Scope, SlotWrite};
use crate::store::tls::TlsWords;
use crate::store::{
    Capability, ErrorKind, Finding, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Wake, Wakeups,
};

/// A store in the MySQL or MariaDB server at `url`. Connects with the first call.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(ServerStore::<MySql>::open(url, options)?))
}

/// Makes the tables.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    ServerStore::<MySql>::migrate(url).await
}

/// How often somebody who waits looks again: other processes' releases are not heard of.
const POLL: Duration = Duration::from_millis(500);

const FILE: &str = include_str!("statements.sql");

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));
static SERVER_TEXTS: LazyLock<ServerTexts> = LazyLock::new(|| ServerTexts::of(FILE));

/// What only MySQL is asked.
static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        greet,
        server,
        limit_mariadb,
        limit_mysql,
        schema_lock,
        slot_insert,
        slot_update,
        slot_grant,
        slot_begin,
        outputs_forget,
        output_save,
        output_remove,
        locks_insert,
        locks_update,
    }
}

/// The version of a row that nothing has been written to: no other has it, whose versions are never below the clock.
const UNTOUCHED: i64 = 0;

/// MySQL and MariaDB.
#[derive(Debug)]
pub(in crate::store::sql) struct MySql {
    hints: Teller,
    lock_hints: LockHints,
}

#[async_trait]
impl Dialect for MySql {
    type Options = MySqlConnectOptions;
    type Connection = MySqlConnection;

    const CAPABILITY: Capability = Capability {
        name: "mysql",
        reach: Reach::Network,
        clock: StoreClock::Server,
        push: false,
        poll: POLL,
        durable: true,
        expires_records: false,
        locks: true,
        tells_changes: false,
        output_bytes: OUTPUT_BYTES,
        messages: true,
    };

    const FORM: &'static str = "write mysql://user:password@host:3306/database, special characters percent-encoded";

    /// As sqlx and the client of MySQL name them.
    const PARAMETERS: &'static [&'static str] = &["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

    /// Each of its statements can be run again.
    const SCHEMA: &'static str = include_str!("schema.sql");

    const TLS: &'static str = "TLS failed: check ssl-mode, and name the CA of its certificate with ssl-ca";

    const TLS_WORDS: TlsWords = TlsWords::of_driver("ssl-ca=FILE", "ssl-cert=FILE&ssl-key=FILE", "ssl-mode=disabled");

    const STRANGER: &'static str = "what answers there is not MySQL, or broke off";

    fn texts() -> &'static Texts {
        &TEXTS
    }

    fn server_texts() -> &'static ServerTexts {
        &SERVER_TEXTS
    }

    /// The driver reads neither a file nor the environment for it.
    fn options(url: &Url) -> Result<MySqlConnectOptions, String> {
        let options =
            MySqlConnectOptions::from_url(url).map_err(|_| format!("a parameter is wrong: {}", Self::FORM))?;
        if options.get_database().is_none() {
            return Err(format!("it names no database: {}", Self::FORM));
        }
        // What the driver would set on each connection is set in `greet`, once, with the rest.
        Ok(options.pipes_as_concat(false).no_engine_substitution(false))
    }

    fn answered(error: &sqlx::Error) -> Option<(ErrorKind, &'static str)> {
        number(error).map(answered)
    }

    fn sent(error: &sqlx::Error) -> Sent {
        sent(error)
    }

    fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
        judge(said)
    }

    fn at(_place: &ServerPlace<MySqlConnectOptions>, _options: &StoreOptions) -> Self {
        Self { hints: Teller::default(), lock_hints: LockHints::default() }
    }

    async fn greet(session: &mut ServerSession<Self>, limit: Duration) -> Result<(), SqlFault> {
        // The variable of that name differs between the servers; the statement does not.
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
        session.execute(OWN.greet, values![seconds(limit)]).await?;
        let rows = session.fetch(OWN.server, values![]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (is_mariadb, packet) = (row.number("is_mariadb")?, row.number("packet")?);
        if row.number("foreign_columns")?.is_some_and(|columns| columns > 0) {
            return Err(other_charset());
        }
        session.packet = packet.and_then(|packet| usize::try_from(packet).ok()).unwrap_or(usize::MAX);
        if is_mariadb == Some(1) {
            session.execute(OWN.limit_mariadb, values![millis(limit), seconds(limit)]).await?;
        } else {
            session.execute(OWN.limit_mysql, values![millis(limit)]).await?;
        }
        Ok(())
    }

    async fn lock_schema(session: &mut ServerSession<Self>, limit: Duration) -> Result<(), SqlFault> {
        let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX).max(1);
        let rows = session.fetch(OWN.schema_lock, values![seconds]).await?;
        match rows.first().map(|row| row.number("locked")).transpose()?.flatten() {
            Some(1) => Ok(()),
            _ => Err(SqlFault::known(ErrorKind::Timeout, "another process makes the tables: try again".to_owned())),
        }
    }

    /// One statement decides, and an output needs a transaction with another.
    async fn write(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &SlotWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault> {
        if !write.has_outputs() {
            return session.save_row(scope, write, limit).await;
        }
        let output = write.output(session.packet / 2)?;
        session.run(SERVER_TEXTS.begin).await?;
        if !session.save_row(scope, write, limit).await? {
            session.roll_back().await?;
            return Ok(false);
        }
        let id = write.slot(scope);
        if write.change.forgets {
            session.execute(OWN.outputs_forget, id.clone()).await?;
        }
        match output.as_deref() {
            Some([attempt, token, Value::Text(None)]) => {
                let named = [id, vec![attempt.clone(), token.clone()]].concat();
                session.execute(OWN.output_remove, named).await?;
            }
            Some(output) => {
                session.execute(OWN.output_save, [&id, output].concat()).await?;
            }
            None => {}
        }
        session.commit().await?;
        Ok(true)
    }

    // It tells nobody of what is committed: those in this process are told here.
    fn told(&self, wake: Wake) {
        self.hints.tell(wake);
    }

    fn subscribe(&self) -> Wakeups {
        self.hints.subscribe()
    }

    async fn write_locks(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &LocksWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault> {
        session.write_locks(scope, write, limit).await
    }

    fn told_locks(&self, wakes: Vec<(Token, Token)>) {
        self.lock_hints.tell(wakes);
    }

    fn listen_locks(&self, instance: Token) -> LockWakeups {
        self.lock_hints.listen(instance)
    }
}

impl ServerSession<MySql> {
    /// Makes the row of a slot that had none, where there is still none.
    async fn begin_slot(&mut self, scope: &Scope, write: &SlotWrite) -> Result<(), SqlFault> {
        let values = values![write.now, write.untouched()?, UNTOUCHED];
        self.execute(OWN.slot_begin, [write.slot(scope), values].concat()).await?;
        Ok(())
    }

    /// The row alone.
    async fn save_row(&mut self, scope: &Scope, write: &SlotWrite, limit: Duration) -> Result<bool, SqlFault> {
        let mut row = write.row(scope)?;
        let fresh = values![write.now, millis(limit)];
        // The condition stands behind what is set.
        let mut split = || row.split_off(write.slot(scope).len());
        let saved = match (write.turn, write.version) {
            (Some(turn), version) => {
                if version.is_none() {
                    self.begin_slot(scope, write).await?;
                }
                if turn.read.is_none() {
                    self.execute(SERVER_TEXTS.turn_begin, write.job(scope)).await?;
                }
                let read = values![version.unwrap_or(UNTOUCHED), turn.read.unwrap_or(NO_TURN)];
                let set = split();
                self.execute(OWN.slot_grant, [values![turn.next, write.latest()?], set, row, read, fresh].concat())
                    .await
            }
            (None, None) => self.execute(OWN.slot_insert, [row, fresh].concat()).await,
            (None, Some(version)) => {
                let set = split();
                self.execute(OWN.slot_update, [set, row, values![version], fresh].concat()).await
            }
        };
        match saved {
            Ok(rows) => Ok(rows > 0),
            Err(error) if is_duplicate(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn other_charset() -> SqlFault {
    let message = "its tables cannot keep every text: ALTER TABLE cronward_slots MODIFY document LONGTEXT CHARACTER SET utf8mb4 NOT \
                   NULL; ALTER TABLE cronward_outputs MODIFY output LONGTEXT CHARACTER SET utf8mb4 NOT NULL";
    SqlFault::known(ErrorKind::Unsupported, message.to_owned())
}

/// Whole seconds, at least one and at most a year: what settings take that know no less.
fn seconds(span: Duration) -> i64 {
    let whole = span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(i64::MAX).clamp(1, 31_536_000)
}

/// What is to be said of a server with these variables.
fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let is = |name: &str, wanted: &[&str]| wanted.iter().any(|wanted| word(name).eq_ignore_ascii_case(wanted));
    let mut findings = vec![Finding::ok("version", word("version"))];
    findings.push(if is("read_only", &["1", "ON"]) {
        let fix = "[store] url: name the primary; or SET GLOBAL read_only = OFF";
        Finding::fault("role", "read_only is on", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let flush = word("innodb_flush_log_at_trx_commit");
    findings.push(if flush == "1" {
        Finding::ok("persistence", "innodb_flush_log_at_trx_commit 1")
    } else {
        let effect = "a crash of the server loses what was answered last: a slot may be granted twice";
        let fix = "my.cnf: innodb_flush_log_at_trx_commit = 1";
        Finding::warning("persistence", format!("innodb_flush_log_at_trx_commit {flush}"), effect, fix)
    });
    if is("innodb_doublewrite", &["0", "OFF"]) {
        let effect = "a power cut may damage the tables: nothing is claimed";
        findings.push(Finding::warning(
            "durability",
            "innodb_doublewrite off",
            effect,
            "my.cnf: innodb_doublewrite = ON",
        ));
    }
    let logs = is("log_bin", &["1", "ON"]);
    findings.push(match (logs, word("sync_binlog")) {
        (false, _) => Finding::ok("binlog", "off: it has no replicas"),
        (true, "1") => Finding::ok("binlog", "sync_binlog 1"),
        (true, sync) => {
            let effect = "after a crash its replicas may lack what was answered last: a slot may be granted twice";
            Finding::warning("binlog", format!("sync_binlog {sync}"), effect, "my.cnf: sync_binlog = 1")
        }
    });
    findings
}

/// The number that the server answered with (dev.mysql.com/doc/mysql-errors, mariadb.com/kb/en/mariadb-error-codes).
fn number(error: &sqlx::Error) -> Option<u16> {
    Some(error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

/// True when a row with that key is there already.
fn is_duplicate(error: &sqlx::Error) -> bool {
    number(error) == Some(1062)
}

/// What an error tells about what was sent. Whatever the server refused is not committed: the connection that it happened on
/// is closed, and its transaction rolled back.
fn sent(error: &sqlx::Error) -> Sent {
    match number(error) {
        // Deadlock; a row that changed since the snapshot (innodb_snapshot_isolation).
        Some(1213 | 1020) => Sent::RolledBack,
        // Shutting down, killed, gone.
        None | Some(1053 | 1077 | 1079 | 1152 | 1154..=1161 | 1184 | 1317 | 1927 | 4031) => Sent::Unknown,
        Some(_) => Sent::Refused,
    }
}

/// What each number means.
const fn answered(number: u16) -> (ErrorKind, &'static str) {
    use ErrorKind::{Content, Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
    match number {
        1153 | 1301 => (Content, "the request is larger than it takes: raise max_allowed_packet"),
        1366 | 1406 | 3854 => (Content, "it refuses a text: too long, or with characters that utf8mb4 lacks"),
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
        1053 | 1077 | 1079 | 1152 | 1154..=1161 | 1184 | 1317 | 1927 | 4031 => {
            (Unavailable, "it is stopping, or somebody ended the connection")
        }
        _ => (Corrupt, "its tables are not as cronward made them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;
    use crate::store::sql::mysql::MySql;
    use crate::store::sql::server::{Access, meaning, resolve};
    use crate::store::sql::session::unmatched;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("version", "10.11"), ("read_only", "0"), ("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "0")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_variable_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("innodb_flush_log_at_trx_commit", "2")]), ["persistence warning"]);
        assert_eq!(trouble(&[("read_only", "1")]), ["role error"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "0")]), ["binlog warning"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "1")]), [""; 0]);
        assert_eq!(trouble(&[("innodb_doublewrite", "OFF")]), ["durability warning"]);
    }

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve::<MySql>("mysql://u:p%40ss@db.example:3307/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 3307));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "mysql://u:***@db.example:3307/cron"));
        assert!(!format!("{place:?}").contains("p@ss"));
    }

    #[test]
    fn a_unix_socket_is_named_by_its_path() {
        let place = resolve::<MySql>("mysql://u@localhost/cron?socket=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(place.options.get_socket().unwrap().to_str(), Some("/run/mysqld/mysqld.sock"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_its_secrets() {
        for (url, part) in [
            ("mysql://u:hunter2@h/d?sslmod=required", "\"sslmod\" is not known"),
            ("mysql://u:hunter2@h/d?ssl-mode=perhaps", "a parameter is wrong"),
            ("mysql://u:hunter2@h/d?migrate=yes", "\"on\" or \"off\""),
            ("mysql://u:hunter2@h", "names no database"),
        ] {
            let message =
                resolve::<MySql>(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err();
            assert!(message.contains(part) && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn every_named_statement_is_used_and_every_name_that_is_used_is_there_once() {
        assert_eq!(unmatched(FILE, &[ServerTexts::NAMES, Own::NAMES].concat()), [""; 0]);
    }

    #[test]
    fn each_number_has_its_kind() {
        use ErrorKind::{Content, Corrupt, Denied, Overloaded, ReadOnly, Timeout, Unavailable, Unsupported};
        for (number, kind) in [
            (1153, Content),
            (1366, Content),
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
