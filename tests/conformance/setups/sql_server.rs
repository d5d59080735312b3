//! A database server: as the owner of the tables, and as a user with the documented grants only. Each has a database of its
//! own on one server. What a dialect has of its own is in the module that takes this one in.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use cronward::job::{LockName, Namespace};
use cronward::slot::{Attempt, Slot, Token};
use cronward::store::conformance::{LockProbe, Probe, Rewrite, Scale, Setup};
use cronward::store::{LockStore, Store, StoreOptions, Topic, open_locks};
use tokio::sync::Mutex;

use super::super::Edit;
use super::{Connection, NOW, Server, documented_grants, new_password, store, with_marks};

/// What is said of a slot's row.
const ITS_ROW: &str = "namespace = ? AND job = ? AND slot = ?";

/// The server that all set-ups share, for as long as one of them lives.
static SERVER: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());

async fn server() -> Arc<Server> {
    let mut shared = SERVER.lock().await;
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start());
        *shared = Arc::downgrade(&server);
        server
    })
}

struct Database {
    server: Arc<Server>,
    name: &'static str,
    url: String,
    scale: Scale,
}

pub(crate) async fn as_owner() -> Result<Arc<dyn Setup>, String> {
    let (server, name) = (server().await, "owner_db");
    server.database(name).await;
    let url = server.url(name);
    // The probes look before the first store has made the tables.
    store::migrate(&url).await.map_err(|error| error.to_string())?;
    // Every grant waits for the disk.
    let scale = Scale { slots: 2_000, ..Scale::default() };
    Ok(Arc::new(Database { url, server, name, scale }))
}

pub(crate) async fn with_least_privilege() -> Result<Arc<dyn Setup>, String> {
    let (server, name) = (server().await, "least_db");
    server.database(name).await;
    store::migrate(&server.url(name)).await.map_err(|error| error.to_string())?;
    for grant in documented_grants() {
        server.sql(name, &grant).await;
    }
    server.sql(name, &new_password("cronward", "secret")).await;
    // The rules are the same as the owner's; what may be missing is a grant.
    let scale = Scale { slots: 500, operations: 200, ..Scale::default() };
    let url = format!("{}?migrate=off", server.url_of("cronward", name));
    Ok(Arc::new(Database { url, server, name, scale }))
}

#[async_trait]
impl Setup for Database {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        store::open(&self.url, patient(namespace)).map_err(|error| error.to_string())
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        Ok(Box::new(self.raw(namespace).await))
    }

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        open_locks(&self.url, patient(namespace)).await.map_err(|error| error.to_string())
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Ok(Box::new(self.raw(namespace).await))
    }

    fn scale(&self) -> Scale {
        self.scale
    }
}

/// The contests want every answer, also from a busy machine.
fn patient(namespace: &Namespace) -> StoreOptions {
    StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(Duration::from_secs(60))
}

impl Database {
    async fn raw(&self, namespace: &Namespace) -> Raw {
        Raw { namespace: namespace.clone(), conn: Mutex::new(self.server.connect(self.name).await) }
    }
}

/// A superuser's connection that shares nothing with the stores.
struct Raw {
    namespace: Namespace,
    conn: Mutex<Connection>,
}

impl Raw {
    async fn update(&self, slot: &Slot, change: &str) -> Result<u64, String> {
        let sql = with_marks(&format!("UPDATE cronward_slots SET {change} WHERE {ITS_ROW}"));
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str())
            .bind(slot.job().as_str())
            .bind(slot.key().to_string())
            .execute(&mut *self.conn.lock().await)
            .await;
        done.map(|done| done.rows_affected()).map_err(|error| error.to_string())
    }

    async fn number(&self, slot: &Slot, what: &str) -> Result<Option<i64>, String> {
        let sql = with_marks(&format!("SELECT {what} FROM cronward_slots WHERE {ITS_ROW}"));
        let found: Result<Option<Option<i64>>, _> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str())
            .bind(slot.job().as_str())
            .bind(slot.key().to_string())
            .fetch_optional(&mut *self.conn.lock().await)
            .await;
        found.map(Option::flatten).map_err(|error| error.to_string())
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
        self.update(slot, &format!("until_ms = {NOW}")).await.map(drop)
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.update(slot, "attempts = 0").await.map(drop)
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        Ok(self.update(slot, "state = 'what somebody else wrote'").await? > 0)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        let sql = with_marks(&format!("UPDATE cronward_notes SET kept_from_ms = 0 WHERE {ITS_ROW}"));
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str())
            .bind(slot.job().as_str())
            .bind(slot.key().to_string())
            .execute(&mut *self.conn.lock().await)
            .await;
        done.map(drop).map_err(|error| error.to_string())
    }

    async fn rewrite_messages(&self, topic: &Topic, rewrite: Rewrite<'_>) -> Result<bool, String> {
        let mut conn = self.conn.lock().await;
        let its_topic = "namespace = ? AND topic = ?";
        let sql = with_marks(&format!("SELECT document FROM cronward_messages WHERE {its_topic}"));
        let known: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str())
            .bind(topic.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(|error| error.to_string())?;
        let Some(known) = known else { return Ok(false) };
        let set = "document = ?, needed_ms = 0, version = version + 1";
        let sql = with_marks(&format!("UPDATE cronward_messages SET {set} WHERE {its_topic}"));
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(rewrite(&known))
            .bind(self.namespace.as_str())
            .bind(topic.as_str())
            .execute(&mut *conn)
            .await;
        done.map(|_| true).map_err(|error| error.to_string())
    }

    async fn wipe(&self) -> Result<(), String> {
        for table in ["slots", "turns", "pauses", "jobs", "nodes", "notes", "locks", "messages"] {
            let sql = with_marks(&format!("DELETE FROM cronward_{table} WHERE namespace = ?"));
            let done = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(self.namespace.as_str());
            done.execute(&mut *self.conn.lock().await).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// What is said of a lock's row.
const ITS_LOCK: &str = "cronward_locks.namespace = ? AND cronward_locks.lock = ?";

impl Raw {
    async fn edit(&self, lock: &LockName, edit: Edit) -> Result<(), String> {
        let mut conn = self.conn.lock().await;
        let sql = with_marks(&format!("SELECT document FROM cronward_locks WHERE {ITS_LOCK}"));
        let found: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(self.namespace.as_str())
            .bind(lock.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(|error| error.to_string())?;
        let Some(document) = found else { return Ok(()) };
        let sql =
            with_marks(&format!("UPDATE cronward_locks SET document = ?, version = version + 1 WHERE {ITS_LOCK}"));
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(edit.of(document.as_bytes())?)
            .bind(self.namespace.as_str())
            .bind(lock.as_str())
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
        let sql = with_marks(&format!("DELETE FROM cronward_locks WHERE {ITS_LOCK}"));
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
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
