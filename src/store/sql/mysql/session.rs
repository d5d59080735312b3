//! The tables through MySQL's eyes: its connection, its statements, and the writing of a slot in a transaction.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlRow};
use sqlx::{ConnectOptions, MySqlConnection, Row as _};

use super::fault::is_duplicate;
use crate::store::ErrorKind;
use crate::store::sql::fault::Fault;
use crate::store::sql::row::{self, Why};
use crate::store::sql::session::{Columns, Session, Texts, Value, texts, values};
use crate::store::sql::slots::{Change, Scope};

static TEXTS: Texts = texts!(
    slot_load,
    slots_read,
    runs_read,
    audit_read,
    pause_get,
    pause_set,
    pauses,
    jobs_register,
    jobs,
    nodes_forget,
    node_save,
    nodes,
    purge,
);

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
        session.execute(include_str!("greet.sql"), values![seconds(limit)]).await?;
        if session.number(include_str!("is_mariadb.sql")).await? == Some(1) {
            session.execute(include_str!("limit_mariadb.sql"), values![millis(limit), seconds(limit)]).await?;
        } else {
            session.execute(include_str!("limit_mysql.sql"), values![millis(limit)]).await?;
        }
        Ok(session)
    }

    /// Runs a statement without values, as it stands.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut self.conn).await.map(drop)
    }

    /// Reads the server's clock.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        let now = self.number(include_str!("now.sql")).await?.unwrap_or(i64::MIN);
        let odd = || Fault::known(ErrorKind::Unavailable, format!("the server's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(odd)?;
        Ok(())
    }

    /// One number of a statement's one row.
    pub(super) async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error> {
        sqlx::query_scalar(sql).fetch_one(&mut self.conn).await
    }

    /// Writes what a rule has changed. False when the row is not as it was read any more.
    pub(super) async fn write(
        &mut self,
        scope: &Scope,
        change: &Change<'_>,
        version: Option<i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        let (run, audit) = (change.run()?, change.audit()?);
        if run.is_none() && audit.is_none() && !change.forget {
            return self.save_row(scope, change, version, limit).await;
        }
        self.run("START TRANSACTION").await?;
        if !self.save_row(scope, change, version, limit).await? {
            self.run("ROLLBACK").await?;
            return Ok(false);
        }
        let id = change.slot(scope);
        if change.forget {
            self.execute(include_str!("runs_forget.sql"), id.clone()).await?;
            self.execute(include_str!("audit_forget.sql"), id.clone()).await?;
        }
        if let Some(run) = run {
            self.execute(include_str!("run_save.sql"), [id.clone(), run].concat()).await?;
        }
        if let Some(audit) = audit {
            self.execute(include_str!("audit_add.sql"), [id, values![audit]].concat()).await?;
        }
        self.run("COMMIT").await?;
        Ok(true)
    }

    /// The row alone. Its new version is larger than any that a row of this slot has had, also one that was purged: it is
    /// never below the clock.
    async fn save_row(
        &mut self,
        scope: &Scope,
        change: &Change<'_>,
        version: Option<i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        let (now, limit) = (change.image.now, millis(limit));
        let mut values = change.row(scope)?;
        let saved = match version {
            None => {
                values.extend(values![now, now, limit]);
                self.execute(include_str!("slot_insert.sql"), values).await
            }
            Some(version) => {
                // The condition stands behind what is set.
                values.rotate_left(change.slot(scope).len());
                let next = version.saturating_add(1).max(now.timestamp_millis());
                let id = values.split_off(values.len().saturating_sub(change.slot(scope).len()));
                let values = [values, values![next], id, values![version, now, limit]].concat();
                self.execute(include_str!("slot_update.sql"), values).await
            }
        };
        match saved {
            Ok(rows) => Ok(rows > 0),
            Err(error) if is_duplicate(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
