//! The tables through SQLite's eyes: its statements, its rows, and the writing of a slot in a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};

use super::lane::Tx;
use crate::store::sql::fault::Fault;
use crate::store::sql::row::Why;
use crate::store::sql::session::{Columns, Session, Texts, Value, texts, values};
use crate::store::sql::slots::{Scope, SlotWrite};

static TEXTS: Texts = texts!();

impl Columns for SqliteRow {
    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }
}

#[async_trait]
impl Session for Tx<'_> {
    type Row = SqliteRow;

    fn texts(&self) -> &'static Texts {
        &TEXTS
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, _row: &SqliteRow) -> Result<DateTime<Utc>, Why> {
        Ok(self.now)
    }

    async fn fetch(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<SqliteRow>, sqlx::Error> {
        bound(sql, values).fetch_all(self.on()).await
    }

    async fn execute(&mut self, sql: &'static str, values: Vec<Value>) -> Result<u64, sqlx::Error> {
        Ok(bound(sql, values).execute(self.on()).await?.rows_affected())
    }
}

fn bound(sql: &'static str, values: Vec<Value>) -> sqlx::query::Query<'static, sqlx::Sqlite, SqliteArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// Writes what a rule has changed. The transaction holds the write lock since before the slot was read, so nothing is
/// overwritten.
pub(super) async fn save(tx: &mut Tx<'_>, scope: &Scope, write: &SlotWrite) -> Result<(), Fault> {
    if write.change.is_none() {
        return Ok(());
    }
    let id = write.slot(scope);
    if write.change.forgets {
        tx.execute(include_str!("slot_forget.sql"), id.clone()).await?;
    }
    tx.execute(include_str!("slot_save.sql"), write.row(scope)?).await?;
    if let Some(run) = write.run()? {
        tx.execute(include_str!("run_save.sql"), [id.clone(), run].concat()).await?;
    }
    if let Some(audit) = write.audit()? {
        tx.execute(include_str!("audit_add.sql"), [id, values![audit]].concat()).await?;
    }
    Ok(())
}
