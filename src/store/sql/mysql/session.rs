//! The tables through MySQL's eyes: its connection, its statements, and the writing of a slot, which one of them decides.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlRow};
use sqlx::{ConnectOptions, MySqlConnection, Row as _};

use super::fault::is_duplicate;
use crate::slot::RunRecord;
use crate::store::ErrorKind;
use crate::store::sql::fault::Fault;
use crate::store::sql::row::{self, Why};
use crate::store::sql::session::{Columns, Session, Texts, Value, texts, values};
use crate::store::sql::slots::{Scope, SlotWrite};

static TEXTS: Texts = texts!();

/// What a row was when it was read.
#[derive(Clone, Debug)]
pub(in crate::store::sql) struct Basis {
    version: i64,
    last_run: Option<LastRun>,
}

/// Whose run stands in the row.
#[derive(Clone, Debug)]
struct LastRun {
    attempt: i64,
    token: String,
}

impl Basis {
    /// None where there is no row.
    pub(super) fn read(row: &impl Columns) -> Result<Option<Self>, Why> {
        let Some(version) = row::number(row, "version")? else { return Ok(None) };
        let last = row::number(row, "run_attempt")?.zip(row::text(row, "run_token")?);
        Ok(Some(Self { version, last_run: last.map(|(attempt, token)| LastRun { attempt, token }) }))
    }
}

impl LastRun {
    fn is_of(&self, run: &RunRecord) -> bool {
        (self.attempt, self.token.as_str()) == (i64::from(run.attempt), run.token.to_string().as_str())
    }
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

    fn last_run(&self, row: &MySqlRow) -> Result<Option<RunRecord>, Why> {
        row::record(row, "run_record")
    }

    fn last_turn(&self, row: &MySqlRow) -> Result<Option<i64>, Why> {
        row::number(row, "turn")
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

    /// Grants a slot that nobody has touched, if nothing else is in the way; none where something is. Answers the number of the
    /// insertion as an instant, which is that of the grant, if it is one.
    pub(super) async fn grant(&mut self, values: Vec<Value>) -> Result<Option<Option<DateTime<Utc>>>, Fault> {
        let inserted = match bound(include_str!("slot_grant.sql"), values).execute(&mut self.conn).await {
            Err(error) if is_duplicate(&error) => return Ok(None),
            done => done?,
        };
        let number = i64::try_from(inserted.last_insert_id()).ok();
        Ok((inserted.rows_affected() > 0).then(|| number.and_then(DateTime::from_timestamp_millis)))
    }

    /// Writes what a rule has changed: one statement decides. False when the row is not as it was read any more. An operator's
    /// verb, and what takes the place of records older than the retention, needs a transaction.
    pub(super) async fn write(
        &mut self,
        scope: &Scope,
        write: &SlotWrite,
        basis: Option<&Basis>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        let (run, audit) = (write.run()?, write.audit()?);
        // What is outlasted is forgotten, not kept.
        if let (Some(run), Some(basis)) = (&write.change.run, basis)
            && !write.change.forgets
            && basis.last_run.as_ref().is_some_and(|last| !last.is_of(run))
        {
            let values = [write.slot(scope), values![basis.version]].concat();
            self.execute(include_str!("run_keep.sql"), values).await?;
        }
        if audit.is_none() && !write.change.forgets {
            return self.save_row(scope, write, (run, basis), limit).await;
        }
        self.run("START TRANSACTION").await?;
        if !self.save_row(scope, write, (run, basis), limit).await? {
            self.run("ROLLBACK").await?;
            return Ok(false);
        }
        let id = write.slot(scope);
        if write.change.forgets {
            self.execute(include_str!("runs_forget.sql"), id.clone()).await?;
            self.execute(include_str!("audit_forget.sql"), id.clone()).await?;
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
        write: &SlotWrite,
        (run, basis): (Option<Vec<Value>>, Option<&Basis>),
        limit: Duration,
    ) -> Result<bool, Fault> {
        let (now, limit) = (write.now, millis(limit));
        let mut values = write.row(scope)?;
        let replaced = i64::from(run.is_some() || write.change.forgets);
        let run = run.unwrap_or_else(|| values![None::<i64>, None::<String>, None::<String>]);
        let saved = match basis {
            None => {
                let values = [values, values![now], run, values![write.turn, now, limit]].concat();
                self.execute(include_str!("slot_insert.sql"), values).await
            }
            Some(Basis { version, .. }) => {
                // The condition stands behind what is set.
                let set = values.split_off(write.slot(scope).len());
                let next = version.saturating_add(1).max(now.timestamp_millis());
                let run = run.into_iter().flat_map(|value| [replaced.into(), value]).collect();
                let values =
                    [set, values![next], run, values![write.turn], values, values![*version, now, limit]].concat();
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
