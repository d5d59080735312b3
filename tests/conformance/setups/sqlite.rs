//! One SQLite file in a directory of its own; each connection is a store with connections of its own to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::job::{LockName, Namespace};
use cronward::slot::{Attempt, Slot, Token};
use cronward::store::conformance::{LockProbe, Probe, Rewrite, Setup};
use cronward::store::sql::SqliteStore;
use cronward::store::{LockStore, Store, StoreOptions, Topic};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Sqlite};
use tokio::sync::Mutex;

use super::Edit;

/// The host's clock as SQLite has it, in epoch milliseconds.
const NOW: &str = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";

struct File {
    // Removed with the setup.
    _directory: tempfile::TempDir,
    path: PathBuf,
}

pub(super) async fn start() -> Result<Arc<dyn Setup>, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join("cronward.sqlite");
    Ok(Arc::new(File { _directory: directory, path }))
}

#[async_trait]
impl Setup for File {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        Ok(Box::new(self.raw(namespace).await?))
    }

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Ok(Box::new(self.raw(namespace).await?))
    }
}

impl File {
    async fn open(&self, namespace: &Namespace) -> Result<SqliteStore, String> {
        // Every trial writes to the one file, and each commit waits for the disk.
        let patient = Duration::from_secs(60);
        let options = StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(patient);
        let url = format!("sqlite:{}", self.path.display());
        SqliteStore::open(&url, options).await.map_err(|error| error.to_string())
    }

    async fn raw(&self, namespace: &Namespace) -> Result<Raw, String> {
        // The tables are the store's to make.
        self.open(namespace).await?;
        let options = SqliteConnectOptions::new().filename(&self.path).busy_timeout(Duration::from_secs(60));
        let conn = options.connect().await.map_err(|error| error.to_string())?;
        Ok(Raw { namespace: namespace.clone(), conn: Mutex::new(conn) })
    }
}

/// A connection that shares nothing with the stores.
struct Raw {
    namespace: Namespace,
    conn: Mutex<SqliteConnection>,
}

impl Raw {
    /// A statement whose `?1`, `?2`, `?3` are the slot's identity.
    fn at<'q>(&self, slot: &Slot, sql: String) -> sqlx::query::Query<'q, Sqlite, SqliteArguments> {
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str().to_owned())
            .bind(slot.job().as_str().to_owned())
            .bind(slot.key().to_string())
    }

    async fn update(&self, slot: &Slot, change: &str) -> Result<u64, String> {
        let sql = format!("UPDATE slots SET {change} WHERE namespace = ?1 AND job = ?2 AND slot = ?3");
        let done = self.at(slot, sql).execute(&mut *self.conn.lock().await).await;
        done.map(|done| done.rows_affected()).map_err(|error| error.to_string())
    }

    async fn number(&self, slot: &Slot, what: &str) -> Result<Option<i64>, String> {
        let sql = format!("SELECT {what} FROM slots WHERE namespace = ?1 AND job = ?2 AND slot = ?3");
        let found = self.at(slot, sql).fetch_optional(&mut *self.conn.lock().await).await;
        let found = found.map_err(|error| error.to_string())?;
        found.map_or(Ok(None), |row| sqlx::Row::try_get(&row, 0).map_err(|error| error.to_string()))
    }
}

#[async_trait]
impl Probe for Raw {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let counter = self.number(slot, "nullif(attempts, 0)").await?;
        counter.map(Attempt::try_from).transpose().map_err(|error| error.to_string())
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let left = self.number(slot, &format!("until_ms - {NOW}")).await?;
        Ok(left.and_then(|left| u64::try_from(left).ok()).filter(|left| *left > 0).map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        self.update(slot, &format!("until_ms = min(until_ms, {NOW})")).await.map(drop)
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.update(slot, "attempts = 0").await.map(drop)
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        Ok(self.update(slot, "state = 'x''; DROP TABLE slots; --'").await? == 1)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        let sql = "UPDATE notes SET kept_from_ms = 0 WHERE namespace = ?1 AND job = ?2 AND slot = ?3";
        let done = self.at(slot, sql.to_owned()).execute(&mut *self.conn.lock().await).await;
        done.map(drop).map_err(|error| error.to_string())
    }

    async fn rewrite_messages(&self, topic: &Topic, rewrite: Rewrite<'_>) -> Result<bool, String> {
        let mut conn = self.conn.lock().await;
        let known: Option<String> =
            sqlx::query_scalar("SELECT document FROM messages WHERE namespace = ?1 AND topic = ?2")
                .bind(self.namespace.as_str())
                .bind(topic.as_str())
                .fetch_optional(&mut *conn)
                .await
                .map_err(|error| error.to_string())?;
        let Some(known) = known else { return Ok(false) };
        let done = sqlx::query("UPDATE messages SET document = ?3, needed_ms = 0 WHERE namespace = ?1 AND topic = ?2")
            .bind(self.namespace.as_str())
            .bind(topic.as_str())
            .bind(rewrite(&known))
            .execute(&mut *conn)
            .await;
        done.map(|_| true).map_err(|error| error.to_string())
    }

    async fn wipe(&self) -> Result<(), String> {
        let mut conn = self.conn.lock().await;
        for table in ["slots", "latest", "pauses", "jobs", "nodes", "notes", "locks", "messages"] {
            // Outputs go with their slots.
            sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table} WHERE namespace = ?1")))
                .bind(self.namespace.as_str())
                .execute(&mut *conn)
                .await
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Raw {
    async fn edit(&self, lock: &LockName, edit: Edit) -> Result<(), String> {
        let mut conn = self.conn.lock().await;
        let its_lock = "WHERE namespace = ?1 AND lock = ?2";
        let found: Option<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT document FROM locks {its_lock}")))
                .bind(self.namespace.as_str())
                .bind(lock.as_str())
                .fetch_optional(&mut *conn)
                .await
                .map_err(|error| error.to_string())?;
        let Some(document) = found else { return Ok(()) };
        let done = sqlx::query(sqlx::AssertSqlSafe(format!("UPDATE locks SET document = ?3 {its_lock}")))
            .bind(self.namespace.as_str())
            .bind(lock.as_str())
            .bind(edit.of(document.as_bytes())?)
            .execute(&mut *conn)
            .await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl LockProbe for Raw {
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String> {
        self.edit(lock, Edit::Lapse(token)).await
    }

    async fn forget(&self, lock: &LockName) -> Result<(), String> {
        let done = sqlx::query("DELETE FROM locks WHERE namespace = ?1 AND lock = ?2")
            .bind(self.namespace.as_str())
            .bind(lock.as_str())
            .execute(&mut *self.conn.lock().await)
            .await;
        done.map(drop).map_err(|error| error.to_string())
    }

    async fn wipe(&self) -> Result<(), String> {
        Probe::wipe(self).await
    }

    async fn crowd(&self, lock: &LockName, more: usize) -> Result<bool, String> {
        self.edit(lock, Edit::Crowd(more)).await.map(|()| true)
    }
}
