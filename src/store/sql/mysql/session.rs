//! The tables through MySQL's eyes: from the url to a connection, its statements, how they are made, and the writing of a slot, which one of them
//! decides.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlRow};
use sqlx::{ConnectOptions, MySqlConnection, Row as _};

use super::fault::is_duplicate;
use crate::store::sql::fault::Fault;
use crate::store::sql::row;
use crate::store::sql::server::{Access, are_missing, take_access};
use crate::store::sql::session::{Columns, Session, Texts, Value, Why, statements, values};
use crate::store::sql::slots::{NO_TURN, Scope, SlotWrite};
use crate::store::{ErrorKind, Migration, OpenError, redact};

const FILE: &str = include_str!("statements.sql");

/// Each of its statements can be run again; the version is written last.
const SCHEMA: &str = include_str!("schema.sql");

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));

/// What only MySQL is asked.
pub(super) static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        greet,
        is_mariadb,
        limit_mariadb,
        limit_mysql,
        now,
        settings,
        begin_snapshot,
        schema_lock,
        schema_unlock,
        schema_there,
        schema_version,
        slot_insert,
        slot_update,
        slot_grant,
        slot_begin,
        turn_begin,
        turns_purge,
        outputs_forget,
        output_save,
        output_remove,
    }
}

/// The version of a row that nothing has been written to: no other has it, whose versions are never below the clock.
const UNTOUCHED: i64 = 0;

/// The url's parameters, as sqlx and the client of MySQL name them.
const PARAMETERS: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

pub(in crate::store) const FORM: &str =
    "write mysql://user:password@host:3306/database, special characters percent-encoded";

/// Where the server is.
#[derive(Clone)]
pub(super) struct Place {
    /// Holds the password: never printed.
    pub(super) options: MySqlConnectOptions,
    pub(super) access: Access,
    /// For messages.
    pub(super) location: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("location", &self.location).field("access", &self.access).finish_non_exhaustive()
    }
}

/// What a url names.
pub(super) fn resolve(url: &str) -> Result<Place, OpenError> {
    let refuse = |message: String| OpenError::Url { url: redact(url), message };
    let mut parsed = url::Url::parse(url).map_err(|error| refuse(format!("{error}: {FORM}")))?;
    let access = take_access(&mut parsed, &PARAMETERS).map_err(&refuse)?;
    let options =
        MySqlConnectOptions::from_url(&parsed).map_err(|_| refuse(format!("a parameter is wrong: {FORM}")))?;
    if options.get_database().is_none() {
        return Err(refuse(format!("it names no database: {FORM}")));
    }
    // What the driver would set on each connection is set here, once, with the rest.
    let options = options.pipes_as_concat(false).no_engine_substitution(false);
    Ok(Place { options: options.disable_statement_logging(), access, location: redact(url) })
}

/// Refuses a url for its text. The driver reads neither a file nor the environment for it.
pub(in crate::store) fn check(url: &str) -> Result<(), OpenError> {
    resolve(url).map(drop)
}

/// One connection.
#[derive(Debug)]
pub(in crate::store::sql) struct MySqlSession {
    conn: MySqlConnection,
    now: DateTime<Utc>,
}

impl Columns for MySqlRow {
    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }
}

#[async_trait]
impl Session for MySqlSession {
    type Row = MySqlRow;

    fn texts(&self) -> &'static Texts {
        &TEXTS
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, row: &MySqlRow) -> Result<DateTime<Utc>, Why> {
        row::now(row)
    }

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<MySqlRow>, sqlx::Error> {
        bound(sql, values).fetch_all(&mut self.conn).await
    }

    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        Ok(bound(sql, values).execute(&mut self.conn).await?.rows_affected())
    }
}

fn bound(sql: &'static str, values: Vec<Value>) -> sqlx::query::Query<'static, sqlx::MySql, MySqlArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// Milliseconds as statements take them; 0 would mean no limit.
fn millis(span: Duration) -> i64 {
    i64::from(i32::try_from(span.as_millis()).unwrap_or(i32::MAX).max(1))
}

/// Whole seconds, at least one and at most a year: what settings take that know no less.
fn seconds(span: Duration) -> i64 {
    let whole = span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(i64::MAX).clamp(1, 31_536_000)
}

impl MySqlSession {
    /// Connects, and has the server give up what takes longer than `limit`, as far as it can.
    pub(super) async fn connect(options: &MySqlConnectOptions, limit: Duration) -> Result<Self, Fault> {
        let conn = options.connect().await?;
        let mut session = Self { conn, now: DateTime::UNIX_EPOCH };
        // The variable of that name differs between the servers; the statement does not.
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
        session.execute(OWN.greet, values![seconds(limit)]).await?;
        if session.number(OWN.is_mariadb).await? == Some(1) {
            session.execute(OWN.limit_mariadb, values![millis(limit), seconds(limit)]).await?;
        } else {
            session.execute(OWN.limit_mysql, values![millis(limit)]).await?;
        }
        Ok(session)
    }

    /// Runs a statement without values, as it stands.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut self.conn).await.map(drop)
    }

    /// Reads the server's clock.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        let now = self.number(OWN.now).await?.unwrap_or(i64::MIN);
        let odd = || Fault::known(ErrorKind::Unavailable, format!("the server's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(odd)?;
        Ok(())
    }

    /// One number of a statement's one row.
    pub(super) async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(sql).fetch_one(&mut self.conn).await
    }

    /// Makes the tables where there are none, if that is allowed: by one of the processes that start together; waits as long for
    /// others who do the same.
    pub(super) async fn bring_up(&mut self, access: Access, limit: Duration) -> Result<Migration, Fault> {
        let found = self.version().await?;
        if !are_missing(found, access)? {
            return Ok(Migration { from: found, to: found });
        }
        self.lock(limit).await?;
        let done = self.make(access).await;
        // Else the lock would stay as long as the connection.
        self.run(OWN.schema_unlock).await?;
        done
    }

    async fn lock(&mut self, limit: Duration) -> Result<(), Fault> {
        let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX).max(1);
        let rows = self.fetch(OWN.schema_lock, values![seconds]).await?;
        match rows.first().map(|row| row.number("locked")).transpose()?.flatten() {
            Some(1) => Ok(()),
            _ => Err(Fault::known(ErrorKind::Timeout, "another process makes the tables: try again".to_owned())),
        }
    }

    async fn make(&mut self, access: Access) -> Result<Migration, Fault> {
        // Read again: another process may have done it meanwhile.
        let from = self.version().await?;
        if are_missing(from, access)? {
            self.run(SCHEMA).await?;
        }
        Ok(Migration { from, to: self.version().await? })
    }

    /// 0 when there are no tables.
    async fn version(&mut self) -> Result<i64, Fault> {
        if self.number(OWN.schema_there).await? == Some(0) {
            return Ok(0);
        }
        Ok(self.number(OWN.schema_version).await?.unwrap_or(0))
    }

    /// Writes what a rule has changed: one statement decides, and an output needs a transaction with another. False when the row is
    /// not as it was read any more.
    pub(super) async fn write(&mut self, scope: &Scope, write: &SlotWrite, limit: Duration) -> Result<bool, Fault> {
        if !write.has_outputs() {
            return self.save_row(scope, write, limit).await;
        }
        let output = write.output()?;
        self.run("START TRANSACTION").await?;
        if !self.save_row(scope, write, limit).await? {
            self.run("ROLLBACK").await?;
            return Ok(false);
        }
        let id = write.slot(scope);
        if write.change.forgets {
            self.execute(OWN.outputs_forget, id.clone()).await?;
        }
        match output.as_deref() {
            Some([attempt, token, Value::Text(None)]) => {
                let named = [id, vec![attempt.clone(), token.clone()]].concat();
                self.execute(OWN.output_remove, named).await?;
            }
            Some(output) => {
                self.execute(OWN.output_save, [&id, output].concat()).await?;
            }
            None => {}
        }
        self.run("COMMIT").await?;
        Ok(true)
    }

    /// Makes the row of a slot that had none, where there is still none.
    async fn begin_slot(&mut self, scope: &Scope, write: &SlotWrite) -> Result<(), Fault> {
        let values = values![write.now, write.untouched()?, UNTOUCHED];
        self.execute(OWN.slot_begin, [write.slot(scope), values].concat()).await?;
        Ok(())
    }

    /// The row alone.
    async fn save_row(&mut self, scope: &Scope, write: &SlotWrite, limit: Duration) -> Result<bool, Fault> {
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
                    self.execute(OWN.turn_begin, write.job(scope)).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::session::unmatched;

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve("mysql://u:p%40ss@db.example:3307/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 3307));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "mysql://u:***@db.example:3307/cron"));
        assert!(!format!("{place:?}").contains("p@ss"));
    }

    #[test]
    fn a_unix_socket_is_named_by_its_path() {
        let place = resolve("mysql://u@localhost/cron?socket=/run/mysqld/mysqld.sock").unwrap();
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
            let message = resolve(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err();
            assert!(message.contains(part) && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn every_named_statement_is_used_and_every_name_that_is_used_is_there_once() {
        assert_eq!(unmatched(FILE, Own::NAMES), [""; 0]);
    }
}
