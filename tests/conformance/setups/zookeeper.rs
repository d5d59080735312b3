//! A real ZooKeeper server that all connections share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::clock::SystemClock;
use cronward::job::{LockName, Namespace};
use cronward::slot::{Attempt, Slot, Token};
use cronward::store::conformance::{LockProbe, Probe, Rewrite, Scale, Setup};
use cronward::store::zookeeper::ZookeeperStore;
use cronward::store::{LockStore, Store, StoreOptions, Topic};
use serde_json::Value;
use zookeeper_client::{Client, Error};

use super::Edit;
use crate::zookeeper_server::{ZookeeperServer, remove_all};

struct Zookeeper {
    server: ZookeeperServer,
}

pub(super) async fn start() -> Result<Arc<dyn Setup>, String> {
    Ok(Arc::new(Zookeeper { server: ZookeeperServer::start() }))
}

#[async_trait]
impl Setup for Zookeeper {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        Ok(Box::new(self.raw(namespace).await))
    }

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Ok(Box::new(self.raw(namespace).await))
    }

    fn scale(&self) -> Scale {
        // Every grant waits for the disk.
        Scale { slots: 2_000, ..Scale::default() }
    }
}

impl Zookeeper {
    async fn open(&self, namespace: &Namespace) -> Result<ZookeeperStore, String> {
        // The contests want every answer, also from a busy machine.
        let options =
            StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(Duration::from_secs(30));
        let url = format!("{}/suite", self.server.url());
        ZookeeperStore::open(&url, options, Arc::new(SystemClock)).await.map_err(|error| error.to_string())
    }

    async fn raw(&self, namespace: &Namespace) -> ZookeeperProbe {
        ZookeeperProbe { client: self.server.connect().await, root: format!("/suite/cronward/{namespace}") }
    }
}

/// Reads and writes nodes as a person with `zkCli.sh` would.
struct ZookeeperProbe {
    client: Client,
    root: String,
}

impl ZookeeperProbe {
    fn path(&self, slot: &Slot) -> String {
        format!("{}/slot/{}/{}", self.root, slot.job(), slot.key())
    }

    async fn read(&self, slot: &Slot) -> Result<Option<Value>, String> {
        // A server may lag behind what another session has written.
        self.client.sync("/").await.map_err(|error| error.to_string())?;
        match self.client.get_data(&self.path(slot)).await {
            Ok((data, _)) => serde_json::from_slice(&data).map(Some).map_err(|error| error.to_string()),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn change(&self, slot: &Slot, change: impl Fn(&mut Value) + Send) -> Result<(), String> {
        let Some(mut text) = self.read(slot).await? else { return Ok(()) };
        change(&mut text);
        let set = self.client.set_data(&self.path(slot), text.to_string().as_bytes(), None).await;
        set.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Probe for ZookeeperProbe {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let counter = self.read(slot).await?.and_then(|text| text["attempts"].as_u64()).filter(|counter| *counter > 0);
        counter.map(Attempt::try_from).transpose().map_err(|error| error.to_string())
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let until = self.read(slot).await?.and_then(|text| text["mark"]["until_ms"].as_i64());
        let left = until.and_then(|until| u64::try_from(until - now_ms()).ok());
        Ok(left.filter(|left| *left > 0).map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        self.change(slot, |text| {
            if let Some(until) = text["mark"]["until_ms"].as_i64() {
                // The store's clock may lag behind by as long as it took to ask for it.
                text["mark"]["until_ms"] = until.min(now_ms() - 1_000).into();
            }
        })
        .await
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.change(slot, |text| text["attempts"] = 0.into()).await
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        self.change(slot, |text| text["mark"] = "what somebody else wrote".into()).await?;
        Ok(true)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        let path = format!("{}/note/{}/{}", self.root, slot.job(), slot.key());
        let (data, _) = self.client.get_data(&path).await.map_err(|error| error.to_string())?;
        let mut text: Value = serde_json::from_slice(&data).map_err(|error| error.to_string())?;
        text["kept_from_ms"] = 0.into();
        let set = self.client.set_data(&path, text.to_string().as_bytes(), None).await;
        set.map(drop).map_err(|error| error.to_string())
    }

    async fn rewrite_messages(&self, topic: &Topic, rewrite: Rewrite<'_>) -> Result<bool, String> {
        let path = format!("{}/message/{topic}", self.root);
        self.client.sync("/").await.map_err(|error| error.to_string())?;
        let (data, _) = self.client.get_data(&path).await.map_err(|error| error.to_string())?;
        let set = self.client.set_data(&path, rewrite(&String::from_utf8_lossy(&data)).as_bytes(), None).await;
        set.map(|_| true).map_err(|error| error.to_string())
    }

    async fn wipe(&self) -> Result<(), String> {
        remove_all(&self.client, &self.root).await.map_err(|error| error.to_string())
    }
}

impl ZookeeperProbe {
    async fn edit(&self, lock: &LockName, edit: Edit) -> Result<(), String> {
        let path = format!("{}/lock/{lock}", self.root);
        self.client.sync("/").await.map_err(|error| error.to_string())?;
        let data = match self.client.get_data(&path).await {
            Ok((data, _)) => data,
            Err(Error::NoNode) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let set = self.client.set_data(&path, edit.of(&data)?.as_bytes(), None).await;
        set.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl LockProbe for ZookeeperProbe {
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String> {
        self.edit(lock, Edit::Lapse(token)).await
    }

    async fn forget(&self, lock: &LockName) -> Result<(), String> {
        match self.client.delete(&format!("{}/lock/{lock}", self.root), None).await {
            Ok(()) | Err(Error::NoNode) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn wipe(&self) -> Result<(), String> {
        Probe::wipe(self).await
    }

    async fn crowd(&self, lock: &LockName, more: usize) -> Result<bool, String> {
        self.edit(lock, Edit::Crowd(more)).await.map(|()| true)
    }
}

#[allow(clippy::disallowed_methods, reason = "server and test share the machine's clock")]
fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}
