//! Real Redis servers: plain over TCP, over a unix socket, over TLS as a user with the documented permissions only, behind
//! sentinels, and in a cluster.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::job::{LockName, Namespace};
use cronward::slot::{Attempt, Slot, Token};
use cronward::store::conformance::{LockProbe, Probe, Rewrite, Scale, Setup};
use cronward::store::redis::RedisStore;
use cronward::store::{LockStore, Store, StoreOptions, Topic};

#[cfg(feature = "redis-cluster")]
use crate::redis_group::ClusterGroup;
#[cfg(feature = "redis-sentinel")]
use crate::redis_group::SentinelGroup;
use crate::redis_server::{RedisServer, documented_permissions};
use crate::tls_files::TlsFiles;

/// One server that all connections share, or several that belong together.
struct Redis {
    /// Those at which a key may stand.
    servers: Arc<Servers>,
    url: String,
    /// Kept for as long as new connections read the CA.
    _files: Option<TlsFiles>,
}

pub(super) async fn over_tcp() -> Result<Arc<dyn Setup>, String> {
    let server = RedisServer::start();
    Ok(Arc::new(Redis { url: server.url(), servers: Arc::new(Servers::One(server)), _files: None }))
}

pub(super) async fn over_unix_socket() -> Result<Arc<dyn Setup>, String> {
    let server = RedisServer::start();
    Ok(Arc::new(Redis { url: server.unix_url(), servers: Arc::new(Servers::One(server)), _files: None }))
}

pub(super) async fn over_tls_as_a_user() -> Result<Arc<dyn Setup>, String> {
    let files = TlsFiles::make();
    let (server, port) = RedisServer::start_with_tls(files.dir());
    server.allow(&documented_permissions());
    let url = format!("rediss://cronward:secret@127.0.0.1:{port}?ca={}", files.ca().display());
    Ok(Arc::new(Redis { url, servers: Arc::new(Servers::One(server)), _files: Some(files) }))
}

#[cfg(feature = "redis-sentinel")]
pub(super) async fn behind_sentinels() -> Result<Arc<dyn Setup>, String> {
    let group = SentinelGroup::start();
    Ok(Arc::new(Redis { url: group.url(), servers: Arc::new(Servers::Watched(group)), _files: None }))
}

#[cfg(feature = "redis-cluster")]
pub(super) async fn in_a_cluster() -> Result<Arc<dyn Setup>, String> {
    let group = ClusterGroup::start();
    Ok(Arc::new(Redis { url: group.url(), servers: Arc::new(Servers::Shared(group)), _files: None }))
}

/// The servers of a setup.
enum Servers {
    One(RedisServer),
    #[cfg(feature = "redis-sentinel")]
    Watched(SentinelGroup),
    #[cfg(feature = "redis-cluster")]
    Shared(ClusterGroup),
}

impl Servers {
    fn all(&self) -> &[RedisServer] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            #[cfg(feature = "redis-sentinel")]
            Self::Watched(group) => std::slice::from_ref(&group.master),
            #[cfg(feature = "redis-cluster")]
            Self::Shared(group) => group.servers.get(..3).unwrap_or_default(),
        }
    }

    /// At whichever server keeps the key.
    fn command(&self, words: &[&str]) -> redis::Value {
        let elsewhere = |error: &redis::RedisError| error.code() == Some("MOVED");
        let mut answers = self.all().iter().map(|server| server.try_command(words));
        let answer = answers.find(|answer| !answer.as_ref().is_err_and(elsewhere));
        answer.expect("some server keeps the key").unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn text(&self, words: &[&str]) -> Option<String> {
        redis::from_redis_value(self.command(words)).expect("a text")
    }

    fn number(&self, words: &[&str]) -> i64 {
        redis::from_redis_value(self.command(words)).expect("a number")
    }
}

#[async_trait]
impl Setup for Redis {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.open(namespace).await?))
    }

    /// The scripts decide by themselves, so most is asked of one server that runs them.
    fn scale(&self) -> Scale {
        let operations = if self.url.starts_with("redis://") { 20_000 } else { Scale::default().operations };
        Scale { operations, ..Scale::default() }
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
}

impl Redis {
    async fn open(&self, namespace: &Namespace) -> Result<RedisStore, String> {
        // The contests want every answer, also from a busy machine.
        let options =
            StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(Duration::from_secs(20));
        RedisStore::open(&self.url, options).await.map_err(|error| error.to_string())
    }

    fn raw(&self, namespace: &Namespace) -> RedisProbe {
        let prefix = format!("cronward:{namespace}:");
        let locks = format!("{prefix}{{{namespace}:locks}}");
        RedisProbe { servers: Arc::clone(&self.servers), prefix, locks }
    }
}

/// Reads and writes keys as a person with `redis-cli` would.
struct RedisProbe {
    servers: Arc<Servers>,
    prefix: String,
    /// What the keys of locks begin with.
    locks: String,
}

impl RedisProbe {
    fn mark(&self, slot: &Slot) -> String {
        match &*self.servers {
            #[cfg(feature = "redis-cluster")]
            Servers::Shared(_) => format!("{}{{{}}}@{}", self.prefix, slot.job(), slot.key()),
            _ => format!("{}{{{slot}}}", self.prefix),
        }
    }

    fn attempts(&self, slot: &Slot) -> String {
        format!("{}:attempts", self.mark(slot))
    }
}

#[async_trait]
impl Probe for RedisProbe {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let counter = self.servers.text(&["GET", &self.attempts(slot)]);
        counter.map(|counter| counter.parse().map_err(|_| format!("the counter is {counter:?}"))).transpose()
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let left = self.servers.number(&["PTTL", &self.mark(slot)]);
        Ok(u64::try_from(left).ok().map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        self.servers.command(&["PEXPIRE", &self.mark(slot), "0"]);
        // The time of a lease runs out in both places.
        self.servers.command(&["HDEL", &format!("{}{{{}}}:running", self.prefix, slot.job()), &slot.key().to_string()]);
        Ok(())
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.servers.command(&["DEL", &self.attempts(slot)]);
        Ok(())
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        self.servers.command(&["SET", &self.mark(slot), "what somebody else wrote", "KEEPTTL"]);
        Ok(true)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        // Its time has run out.
        self.servers.command(&["PEXPIRE", &format!("{}:notes", self.mark(slot)), "0"]);
        Ok(())
    }

    async fn rewrite_messages(&self, topic: &Topic, rewrite: Rewrite<'_>) -> Result<bool, String> {
        let key = format!("{}{{{topic}}}:messages", self.prefix);
        let Some(known) = self.servers.text(&["GET", &key]) else { return Ok(false) };
        self.servers.command(&["SET", &key, &rewrite(&known), "KEEPTTL"]);
        Ok(true)
    }

    async fn wipe(&self) -> Result<(), String> {
        let pattern = format!("{}*", self.prefix);
        for server in self.servers.all() {
            let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", &pattern])).unwrap();
            for key in keys {
                self.servers.command(&["DEL", &key]);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl LockProbe for RedisProbe {
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String> {
        let key = format!("{}:{lock}", self.locks);
        let fields: Vec<String> = redis::from_redis_value(self.servers.command(&["HGETALL", &key])).unwrap();
        let token = token.map(|token| token.to_string());
        for pair in fields.chunks(2) {
            // `<place> <fence> <weight> <of> <until> …`, at the request's token.
            if pair[0].len() == 32 && token.as_ref().is_none_or(|token| *token == pair[0]) {
                let mut parts: Vec<&str> = pair[1].split(' ').collect();
                parts[4] = "1";
                self.servers.command(&["HSET", &key, &pair[0], &parts.join(" ")]);
            }
        }
        Ok(())
    }

    async fn forget(&self, lock: &LockName) -> Result<(), String> {
        for end in ["", ":queue", ":spent", ":audit"] {
            self.servers.command(&["DEL", &format!("{}:{lock}{end}", self.locks)]);
        }
        Ok(())
    }

    async fn wipe(&self) -> Result<(), String> {
        Probe::wipe(self).await
    }
}
