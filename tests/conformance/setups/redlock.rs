//! Real Redis servers that know nothing of each other, and the store on a majority of them. The probe reads what a majority
//! has, and changes all of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cronward::clock::SystemClock;
use cronward::job::Namespace;
use cronward::slot::{Attempt, Slot};
use cronward::store::conformance::{Probe, Scale, Setup};
use cronward::store::redis::RedlockStore;
use cronward::store::{Store, StoreOptions};

use crate::redis_server::RedisServer;

struct Redlock {
    servers: Arc<[RedisServer]>,
    url: String,
}

pub(super) async fn over(masters: usize) -> Result<Arc<dyn Setup>, String> {
    let servers: Vec<RedisServer> = (0..masters).map(|_| RedisServer::start()).collect();
    // Servers that have just begun count only after a lease; these are to have been there for ever.
    servers.iter().for_each(RedisServer::make_old);
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    Ok(Arc::new(Redlock { servers: servers.into(), url: format!("redlock://{}", hosts.join(",")) }))
}

#[async_trait]
impl Setup for Redlock {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        // The contests want every answer, also from a busy machine.
        let options =
            StoreOptions::default().with_namespace(namespace.clone()).with_op_timeout(Duration::from_secs(60));
        let store = RedlockStore::open(&self.url, options, Arc::new(SystemClock)).await;
        Ok(Arc::new(store.map_err(|error| error.to_string())?))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        let prefix = format!("cronward:{namespace}:");
        Ok(Box::new(Probes { servers: Arc::clone(&self.servers), prefix }))
    }

    /// Every operation is as many as there are masters, and a claim is two or three.
    fn scale(&self) -> Scale {
        Scale { claimers: 24, slots: 400, in_flight: 8, ..Scale::default() }
    }
}

/// Reads and writes keys as a person with `redis-cli` would.
struct Probes {
    servers: Arc<[RedisServer]>,
    prefix: String,
}

impl Probes {
    fn mark(&self, slot: &Slot) -> String {
        format!("{}{{{slot}}}", self.prefix)
    }

    fn attempts(&self, slot: &Slot) -> String {
        format!("{}:attempts", self.mark(slot))
    }

    /// The largest that a majority reaches.
    fn of_a_majority(&self, mut values: Vec<i64>) -> Option<u64> {
        values.sort_unstable_by(|a, b| b.cmp(a));
        values.get(self.servers.len() / 2).and_then(|value| u64::try_from(*value).ok())
    }
}

#[async_trait]
impl Probe for Probes {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        let key = self.attempts(slot);
        let counter = |server: &RedisServer| match server.text(&["GET", &key]) {
            Some(counter) => counter.parse().map_err(|_| format!("the counter is {counter:?}")),
            None => Ok(-1),
        };
        let counters = self.servers.iter().map(counter).collect::<Result<Vec<i64>, String>>()?;
        self.of_a_majority(counters).map(Attempt::try_from).transpose().map_err(|error| error.to_string())
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        let key = self.mark(slot);
        let left = self.servers.iter().map(|server| server.number(&["PTTL", &key])).collect();
        Ok(self.of_a_majority(left).map(Duration::from_millis))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        for server in self.servers.iter() {
            server.command(&["PEXPIRE", &self.mark(slot), "0"]);
            // The time of a lease runs out in both places.
            server.command(&["HDEL", &format!("{}{{{}}}:running", self.prefix, slot.job()), &slot.key().to_string()]);
        }
        Ok(())
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        for server in self.servers.iter() {
            server.command(&["DEL", &self.attempts(slot)]);
        }
        Ok(())
    }

    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String> {
        for server in self.servers.iter() {
            server.command(&["SET", &self.mark(slot), "what somebody else wrote", "KEEPTTL"]);
        }
        Ok(true)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        // Their time has run out.
        for server in self.servers.iter() {
            server.command(&["PEXPIRE", &format!("{}:notes", self.mark(slot)), "0"]);
        }
        Ok(())
    }

    async fn wipe(&self) -> Result<(), String> {
        let pattern = format!("{}*", self.prefix);
        for server in self.servers.iter() {
            let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", &pattern])).unwrap();
            for key in keys {
                server.command(&["DEL", &key]);
            }
        }
        Ok(())
    }
}
