//! The tables through PostgreSQL's eyes: from the url to a connection, its statements, how they are made, and the writing of a slot.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow, PgSslMode};
use sqlx::{ConnectOptions, PgConnection, Row as _};

use crate::job::Namespace;
use crate::store::sql::fault::Fault;
use crate::store::sql::row;
use crate::store::sql::server::{Access, are_missing, take_access};
use crate::store::sql::session::{Columns, Session, Texts, Value, Why, statements, values};
use crate::store::sql::slots::{NO_TURN, Scope, SlotWrite};
use crate::store::{ErrorKind, Migration, OpenError, Wake, redact};

const FILE: &str = include_str!("statements.sql");

const SCHEMA: &str = include_str!("schema.sql");

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::of(FILE));

/// What only PostgreSQL is asked.
pub(super) static OWN: LazyLock<Own> = LazyLock::new(|| Own::of(FILE));

statements! {
    /// The statements that no other dialect has.
    Own {
        greet,
        now,
        settings,
        schema_lock,
        schema_there,
        schema_version,
        tell,
        slot_write,
        turn_begin,
        turns_purge,
    }
}

/// The url's parameters, as sqlx and libpq name them.
const PARAMETERS: [&str; 10] =
    ["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port", "dbname", "user", "password", "application_name"];

/// Where the server is.
#[derive(Clone)]
pub(super) struct Place {
    /// Holds the password: never printed.
    pub(super) options: PgConnectOptions,
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
    let (parsed, access) = read(url)?;
    let options = PgConnectOptions::from_url(&parsed).map_err(|_| refused(url, &wrong()))?;
    let named = parsed.query_pairs().any(|(name, _)| name == "application_name");
    let options = if named { options } else { options.application_name("cronward") };
    Ok(Place { options: options.disable_statement_logging(), access, location: redact(url) })
}

pub(in crate::store) const FORM: &str =
    "write postgres://user:password@host:5432/database, special characters percent-encoded";

fn refused(url: &str, message: &str) -> OpenError {
    OpenError::Url { url: redact(url), message: message.to_owned() }
}

fn wrong() -> String {
    format!("a parameter is wrong: {FORM}")
}

/// Refuses a url for its text.
pub(in crate::store) fn check(url: &str) -> Result<(), OpenError> {
    read(url).map(drop)
}

/// What the text says. The driver would also read the environment and the file of passwords, so what it refuses of a text is
/// refused here.
fn read(url: &str) -> Result<(url::Url, Access), OpenError> {
    let refuse = |message: String| refused(url, &message);
    let mut parsed = url::Url::parse(url).map_err(|error| refuse(format!("{error}: {FORM}")))?;
    let access = take_access(&mut parsed, &PARAMETERS).map_err(&refuse)?;
    let is_value = |name: &str, value: &str| match name {
        "sslmode" => value.parse::<PgSslMode>().is_ok(),
        "port" => value.parse::<u16>().is_ok(),
        _ => true,
    };
    // Only a host that is the path of a socket is decoded.
    let socket = parsed.host_str().filter(|host| host.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2F")));
    let texts = [Some(parsed.username()), parsed.password(), Some(parsed.path()), socket];
    if parsed.query_pairs().all(|(name, value)| is_value(&name, &value)) && texts.into_iter().flatten().all(is_text) {
        Ok((parsed, access))
    } else {
        Err(refuse(wrong()))
    }
}

/// Whether a part of a url is UTF-8 when it is decoded: what is not becomes U+FFFD, unless that is written.
fn is_text(encoded: &str) -> bool {
    let other = encoded.to_ascii_uppercase().replace("%EF%BF%BD", "_");
    let is_whole = |text: &str| !text.contains(char::REPLACEMENT_CHARACTER);
    url::form_urlencoded::parse(other.as_bytes()).all(|(name, value)| is_whole(&name) && is_whole(&value))
}

/// The channel of a namespace: within the 63 bytes of a name ([`crate::job::NAME_RULE`] has 52 of them).
pub(super) fn channel(namespace: &Namespace) -> String {
    format!("cronward:{namespace}")
}

/// One connection.
#[derive(Debug)]
pub(in crate::store::sql) struct PgSession {
    conn: PgConnection,
    now: DateTime<Utc>,
}

impl Columns for PgRow {
    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }
}

#[async_trait]
impl Session for PgSession {
    type Row = PgRow;

    fn texts(&self) -> &'static Texts {
        &TEXTS
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, row: &PgRow) -> Result<DateTime<Utc>, Why> {
        row::now(row)
    }

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<PgRow>, sqlx::Error> {
        bound(sql, values).fetch_all(&mut self.conn).await
    }

    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        Ok(bound(sql, values).execute(&mut self.conn).await?.rows_affected())
    }
}

fn bound(sql: &'static str, values: Vec<Value>) -> sqlx::query::Query<'static, sqlx::Postgres, PgArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// Milliseconds as the server's settings and statements take them; it has 32 bits for a time-out, and 0 means none.
fn millis(span: Duration) -> i64 {
    i64::from(i32::try_from(span.as_millis()).unwrap_or(i32::MAX).max(1))
}

impl PgSession {
    /// Connects, and has the server give up whatever takes longer than `limit`.
    pub(super) async fn connect(options: &PgConnectOptions, limit: Duration) -> Result<Self, Fault> {
        let conn = options.connect().await?;
        let mut session = Self { conn, now: DateTime::UNIX_EPOCH };
        session.fetch(OWN.greet, values![millis(limit).to_string()]).await?;
        Ok(session)
    }

    /// Runs a statement without values, as it stands.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut self.conn).await.map(drop)
    }

    /// Reads the server's clock.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        let now: i64 = sqlx::query_scalar(OWN.now).fetch_one(&mut self.conn).await?;
        let odd = || Fault::known(ErrorKind::Unavailable, format!("the server's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(odd)?;
        Ok(())
    }

    /// One number of a statement's one row.
    pub(super) async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(sql).fetch_one(&mut self.conn).await
    }

    /// Publishes a hint when the transaction commits.
    pub(super) async fn tell(&mut self, scope: &Scope, wake: &Wake) -> Result<(), Fault> {
        self.fetch(OWN.tell, values![channel(&scope.namespace), wake.to_string()]).await?;
        Ok(())
    }

    /// Makes the tables where there are none, if that is allowed: by one of the processes that start together, in one transaction.
    pub(super) async fn bring_up(&mut self, access: Access) -> Result<Migration, Fault> {
        let found = self.version().await?;
        if !are_missing(found, access)? {
            return Ok(Migration { from: found, to: found });
        }
        self.run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        // Until the end of the transaction; processes that start together wait for each other here.
        self.run(OWN.schema_lock).await?;
        // Read again: another process may have done it meanwhile.
        let from = self.version().await?;
        if are_missing(from, access)? {
            self.run(SCHEMA).await?;
        }
        let to = self.version().await?;
        self.run("COMMIT").await?;
        Ok(Migration { from, to })
    }

    /// 0 when there are no tables.
    async fn version(&mut self) -> Result<i64, Fault> {
        if self.number(OWN.schema_there).await? == Some(0) {
            return Ok(0);
        }
        Ok(self.number(OWN.schema_version).await?.unwrap_or(0))
    }

    /// Writes what a rule has changed, in one statement; for the first turn of a job with what it has come to lately, in two. False
    /// when the row is not as it was read any more.
    pub(super) async fn write(&mut self, scope: &Scope, write: &SlotWrite, limit: Duration) -> Result<bool, Fault> {
        let mut values = write.row(scope)?;
        let (wake, latest) = (write.change.wake.as_ref().map(ToString::to_string), write.latest()?);
        let (next, mut read) = (write.turn.map(|turn| turn.next), write.turn.and_then(|turn| turn.read));
        if latest.is_some() && read.is_none() {
            self.execute(OWN.turn_begin, write.job(scope)).await?;
            read = Some(NO_TURN);
        }
        values.extend(values![write.version, write.now, millis(limit), next, read, channel(&scope.namespace), wake]);
        values.push(i64::from(write.change.forgets).into());
        values.extend(write.output()?.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]));
        values.push(latest.into());
        let row = bound(OWN.slot_write, values).fetch_one(&mut self.conn).await?;
        Ok(row.try_get::<i64, _>("written")? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::session::unmatched;

    fn refusal(url: &str) -> String {
        resolve(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve("postgres://u:p%40ss@db.example:5433/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 5433));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "postgres://u:***@db.example:5433/cron"));
        assert_eq!(resolve("postgres://h/d").unwrap().access, Access::Migrate);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_folder() {
        let place = resolve("postgres:///cron?host=/run/postgresql&user=u").unwrap();
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
        assert_eq!(unmatched(FILE, Own::NAMES), [""; 0]);
    }
}
