//! The tables through PostgreSQL's eyes: its connection, its statements, and the writing of a slot in one of them.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::{ConnectOptions, PgConnection, Row as _};

use super::listen::channel;
use crate::store::sql::fault::Fault;
use crate::store::sql::row::{self, Why};
use crate::store::sql::session::{Columns, Session, Texts, Value, texts, values};
use crate::store::sql::slots::{Scope, SlotWrite};
use crate::store::{ErrorKind, Wake};

static TEXTS: Texts = texts!();

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

    fn last_turn(&self, row: &PgRow) -> Result<Option<i64>, Why> {
        row::number(row, "turn")
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
        session.fetch(include_str!("greet.sql"), values![millis(limit).to_string()]).await?;
        Ok(session)
    }

    /// Runs a statement without values, as it stands.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut self.conn).await.map(drop)
    }

    /// Reads the server's clock.
    pub(super) async fn look(&mut self) -> Result<(), Fault> {
        let now: i64 = sqlx::query_scalar(include_str!("now.sql")).fetch_one(&mut self.conn).await?;
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
        self.fetch(include_str!("tell.sql"), values![channel(&scope.namespace), wake.to_string()]).await?;
        Ok(())
    }

    /// Writes what a rule has changed. False when the row is not as it was read any more.
    pub(super) async fn write(
        &mut self,
        scope: &Scope,
        write: &SlotWrite,
        version: Option<i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        let mut values = write.row(scope)?;
        values.extend(values![version, write.now, millis(limit)]);
        values.extend(write.run()?.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]));
        values.push(write.audit()?.unwrap_or(Value::Text(None)));
        let wake = write.change.wake.as_ref().map(ToString::to_string);
        values.extend(values![channel(&scope.namespace), wake, write.turn]);
        if !write.change.forgets {
            return self.write_row(values).await;
        }
        self.run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        self.execute(include_str!("runs_forget.sql"), write.slot(scope)).await?;
        self.execute(include_str!("audit_forget.sql"), write.slot(scope)).await?;
        let written = self.write_row(values).await?;
        self.run(if written { "COMMIT" } else { "ROLLBACK" }).await?;
        Ok(written)
    }

    async fn write_row(&mut self, values: Vec<Value>) -> Result<bool, Fault> {
        let row = bound(include_str!("slot_write.sql"), values).fetch_one(&mut self.conn).await?;
        Ok(row.try_get::<i64, _>("written")? > 0)
    }
}
