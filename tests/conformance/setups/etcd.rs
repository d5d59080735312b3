//! A real etcd member that all connections share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::clock::SystemClock;
use cronward::job::{LockName, Namespace};
use cronward::slot::{Attempt, Slot, Token};
use cronward::store::conformance::{LockProbe, Probe, Rewrite, Scale, Setup};
use cronward::store::etcd::EtcdStore;
use cronward::store::{LockStore, Store, StoreOptions, Topic};

use super::Edit;
use crate::etcd_server::EtcdServer;

struct Etcd {
    server: Arc<EtcdServer>,
    url: String,
}

pub(super) async fn start() -> Result<Arc<dyn Setup>, String> {
    let server = EtcdServer::start();
    Ok(Arc::new(Etcd { url: server.url(), server: Arc::new(server) }))
}

#[async_trait]
impl Setup for Etcd {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        Ok(Box::new(self.raw(namespace)))
    }

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Ok(Box::new(self.raw(namespace)))
    }

    fn scale(&self) -> Scale {
        // Every grant waits for the disk twice.
        Scale { slots: 2_000, ..Scale::default() }
    }
}

impl Etcd {
    async fn open(&self, namespace: &Namespace) -> Result<EtcdStore, String> {
        // The contests want every answer, also from a busy machine.
        let options =
            StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(Duration::from_secs(30));
        EtcdStore::open(&self.url, options, Arc::new(SystemClock)).await.map_err(|error| error.to_string())
    }

    fn raw(&self, namespace: &Namespace) -> EtcdProbe {
        EtcdProbe { server: Arc::clone(&self.server), root: format!("/cronward/{namespace}/") }
    }
}

/// Reads and writes keys as a person with `etcdctl` would.
struct EtcdProbe {
    server: Arc<EtcdServer>,
    root: String,
}

impl EtcdProbe {
    fn mark(&self, slot: &Slot) -> String {
        format!("{}mark/{slot}", self.root)
    }

    fn attempts_key(&self, slot: &Slot) -> String {
        format!("{}attempts/{slot}", self.root)
    }
}

#[async_trait]
impl Probe for EtcdProbe {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let counter = self.server.get(&self.attempts_key(slot));
        counter.map(|found| found.value.parse().map_err(|_| format!("the counter is {found:?}"))).transpose()
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let Some(mark) = self.server.get(&self.mark(slot)) else { return Ok(None) };
        if mark.lease != 0 {
            let seconds = u64::try_from(self.server.time_to_live(mark.lease)).ok();
            return Ok(seconds.map(Duration::from_secs));
        }
        let text: serde_json::Value = serde_json::from_str(&mark.value).map_err(|error| error.to_string())?;
        let left = text["until_ms"].as_i64().ok_or("a mark without an end")? - now_ms();
        Ok(u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        match self.server.get(&self.mark(slot)) {
            Some(mark) if mark.lease != 0 => {
                self.server.revoke(mark.lease);
            }
            Some(mark) => self.end_now(&mark.key, &mark.value)?,
            None => {}
        }
        Ok(())
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.server.remove(&self.attempts_key(slot));
        Ok(())
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        self.server.set(&self.mark(slot), "what somebody else wrote", true);
        Ok(true)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        for found in self.server.get_all(&format!("{}note/{slot}/", self.root)) {
            let mut text: serde_json::Value = serde_json::from_str(&found.value).map_err(|error| error.to_string())?;
            text["kept_from_ms"] = 0.into();
            self.server.set(&found.key, &text.to_string(), false);
        }
        Ok(())
    }

    async fn rewrite_messages(&self, topic: &Topic, rewrite: Rewrite<'_>) -> Result<bool, String> {
        let Some(found) = self.server.get(&format!("{}message/{topic}", self.root)) else { return Ok(false) };
        self.server.set(&found.key, &rewrite(&found.value), false);
        Ok(true)
    }

    async fn wipe(&self) -> Result<(), String> {
        self.server.remove_all(&self.root);
        Ok(())
    }
}

impl EtcdProbe {
    async fn edit(&self, lock: &LockName, edit: Edit) -> Result<(), String> {
        if let Some(found) = self.server.get(&format!("{}lock/{lock}", self.root)) {
            self.server.set(&found.key, &edit.of(found.value.as_bytes())?, false);
        }
        Ok(())
    }
}

#[async_trait]
impl LockProbe for EtcdProbe {
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String> {
        self.edit(lock, Edit::Lapse(token)).await
    }

    async fn forget(&self, lock: &LockName) -> Result<(), String> {
        self.server.remove(&format!("{}lock/{lock}", self.root));
        Ok(())
    }

    async fn wipe(&self) -> Result<(), String> {
        Probe::wipe(self).await
    }

    async fn crowd(&self, lock: &LockName, more: usize) -> Result<bool, String> {
        self.edit(lock, Edit::Crowd(more)).await.map(|()| true)
    }
}

impl EtcdProbe {
    fn end_now(&self, key: &str, value: &str) -> Result<(), String> {
        let mut text: serde_json::Value = serde_json::from_str(value).map_err(|error| error.to_string())?;
        let until = text["until_ms"].as_i64().ok_or("a mark without an end")?;
        text["until_ms"] = until.min(now_ms()).into();
        self.server.set(key, &text.to_string(), false);
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "the store is judged by the machine's clock")]
fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}
