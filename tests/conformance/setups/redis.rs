//! Real Redis servers: plain over TCP, over a unix socket, and over TLS as a user with the documented permissions only.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::job::Namespace;
use cronward::slot::{Attempt, Slot};
use cronward::store::conformance::{Probe, Setup};
use cronward::store::redis::RedisStore;
use cronward::store::{Store, StoreOptions};

use crate::redis_server::{RedisServer, documented_permissions};
use crate::tls_files::TlsFiles;

/// One server that all connections share.
struct Redis {
    server: Arc<RedisServer>,
    url: String,
    /// Kept for as long as new connections read the CA.
    _files: Option<TlsFiles>,
}

pub(super) async fn over_tcp() -> Result<Arc<dyn Setup>, String> {
    let server = RedisServer::start();
    Ok(Arc::new(Redis { url: server.url(), server: Arc::new(server), _files: None }))
}

pub(super) async fn over_unix_socket() -> Result<Arc<dyn Setup>, String> {
    let server = RedisServer::start();
    Ok(Arc::new(Redis { url: server.unix_url(), server: Arc::new(server), _files: None }))
}

pub(super) async fn over_tls_as_a_user() -> Result<Arc<dyn Setup>, String> {
    let files = TlsFiles::make();
    let (server, port) = RedisServer::start_with_tls(files.dir());
    server.allow(&documented_permissions());
    let url = format!("rediss://cronward:secret@127.0.0.1:{port}?ca={}", files.ca().display());
    Ok(Arc::new(Redis { url, server: Arc::new(server), _files: Some(files) }))
}

#[async_trait]
impl Setup for Redis {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        let options = StoreOptions {
            namespace: namespace.clone(),
            // The contests want every answer, also from a busy machine.
            op_timeout: Duration::from_secs(20),
            ..StoreOptions::default()
        };
        let store = RedisStore::open(&self.url, options).await.map_err(|error| error.to_string())?;
        Ok(Arc::new(store))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        let prefix = format!("cronward:{namespace}:");
        Ok(Box::new(RedisProbe { server: Arc::clone(&self.server), prefix }))
    }
}

/// Reads and writes keys as a person with `redis-cli` would.
struct RedisProbe {
    server: Arc<RedisServer>,
    prefix: String,
}

impl RedisProbe {
    fn mark(&self, slot: &Slot) -> String {
        format!("{}{{{slot}}}", self.prefix)
    }

    fn attempts(&self, slot: &Slot) -> String {
        format!("{}:attempts", self.mark(slot))
    }
}

#[async_trait]
impl Probe for RedisProbe {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let counter = self.server.text(&["GET", &self.attempts(slot)]);
        counter.map(|counter| counter.parse().map_err(|_| format!("the counter is {counter:?}"))).transpose()
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let left = self.server.number(&["PTTL", &self.mark(slot)]);
        Ok(u64::try_from(left).ok().map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        self.server.command(&["PEXPIRE", &self.mark(slot), "0"]);
        Ok(())
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.server.command(&["DEL", &self.attempts(slot)]);
        Ok(())
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        self.server.command(&["SET", &self.mark(slot), "what somebody else wrote", "KEEPTTL"]);
        Ok(true)
    }

    async fn wipe(&self) -> Result<(), String> {
        let pattern = format!("{}*", self.prefix);
        let keys: Vec<String> = redis::from_redis_value(self.server.command(&["KEYS", &pattern])).unwrap();
        for key in keys {
            self.server.command(&["DEL", &key]);
        }
        Ok(())
    }
}
