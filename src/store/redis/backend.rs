//! Redis as four kinds of stores: one server, the master behind sentinels, a cluster, and with Redlock a majority of masters. What a
//! trial wrote is removed by naming every key, and never by looking for others.

use std::sync::Arc;

use async_trait::async_trait;
use redis::Cmd;

#[cfg(feature = "redis-cluster")]
use super::cluster::slot_of;
#[cfg(feature = "redis-cluster")]
use super::route::Route;
use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use crate::store::backend::Files;
use crate::store::backend::{Backend, KeptPart, Opened};
use crate::store::redis::RedisStore;
use crate::store::redis::adapter::CAPABILITY;
use crate::store::redis::keys::Keys;
use crate::store::url::scheme;
use crate::store::{Capability, Finding, Op, OpenError, StoreError, StoreOptions, Trial};

/// Redis where one server keeps a slot.
pub(in crate::store) struct RedisBackend {
    name: &'static str,
    check: fn(&str) -> Result<(), OpenError>,
    form: fn(&str) -> String,
    keys: fn(&Namespace) -> Keys,
}

/// One server.
pub(in crate::store) const ONE_SERVER: RedisBackend =
    RedisBackend { name: CAPABILITY.name, check: super::target::check, form: of_host, keys: Keys::new };

/// The master that sentinels name.
#[cfg(feature = "redis-sentinel")]
pub(in crate::store) const SENTINEL: RedisBackend = RedisBackend {
    name: "redis-sentinel",
    check: |url| super::sentinel::Sentinels::parse(url, "", Files::Unread).map(drop),
    form: |url| of_hosts(url, "/mymaster"),
    keys: Keys::new,
};

/// A cluster.
#[cfg(feature = "redis-cluster")]
pub(in crate::store) const CLUSTER: RedisBackend = RedisBackend {
    name: "redis-cluster",
    check: |url| super::cluster::Cluster::parse(url, "", std::time::Duration::ZERO, Files::Unread).map(drop),
    form: |url| of_hosts(url, ""),
    keys: Keys::in_cluster,
};

#[async_trait]
impl Backend for RedisBackend {
    fn capability(&self) -> Capability {
        Capability { name: self.name, ..CAPABILITY }
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        (self.check)(url)
    }

    fn form(&self, url: &str) -> String {
        (self.form)(url)
    }

    fn holds_foreign_keys(&self) -> bool {
        true
    }

    #[cfg(feature = "redis-cluster")]
    fn has_stations(&self) -> bool {
        true
    }

    async fn open(&self, url: &str, options: StoreOptions, _: Arc<dyn Clock>) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(RedisStore::open(url, options).await?))
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        names(&(self.keys)(namespace), slot)
    }

    fn client_command(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<String> {
        // What `-u` takes: no socket, and not several servers.
        let program = match scheme(location) {
            "redis" | "rediss" => "redis-cli",
            "valkey" | "valkeys" => "valkey-cli",
            _ => return Vec::new(),
        };
        let mark = (self.keys)(namespace).slot(slot).mark;
        [program, "-u", location, "GET", &mark].map(str::to_owned).to_vec()
    }
}

/// Several masters that know nothing of each other; on each of them alike.
#[cfg(feature = "redis-redlock")]
pub(in crate::store) struct RedlockBackend;

#[cfg(feature = "redis-redlock")]
#[async_trait]
impl Backend for RedlockBackend {
    fn capability(&self) -> Capability {
        crate::store::redis::redlock::CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        super::redlock::check(url)
    }

    fn form(&self, url: &str) -> String {
        of_hosts(url, "")
    }

    fn advice(&self) -> Option<crate::store::Advice> {
        Some(crate::store::Advice {
            code: "redlock-limits",
            message: "redlock: leases hold while most masters' clocks run at one rate, fences are unique while most keep their data",
            hint: "let the resource check the fence (CRONWARD_FENCE); docs/redlock.md has what each failure can lose",
        })
    }

    fn has_stations(&self) -> bool {
        true
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(super::RedlockStore::open(url, options, clock).await?))
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        names(&Keys::new(namespace), slot)
    }
}

/// The names that `docs/PROTOCOL.md` promises ("Keys in Redis").
fn names(keys: &Keys, slot: &Slot) -> Vec<(String, KeptPart)> {
    let of_slot = keys.slot(slot);
    vec![
        (of_slot.mark, KeptPart::Mark),
        (of_slot.attempts, KeptPart::Attempts),
        (of_slot.log, KeptPart::Log),
        (keys.outputs(slot), KeptPart::Outputs),
        (keys.notes(slot), KeptPart::Decisions),
        (keys.latest(slot.job()), KeptPart::Latest),
    ]
}

fn of_host(url: &str) -> String {
    match scheme(url) {
        scheme @ ("redis+unix" | "valkey+unix") => {
            format!("write {scheme}:///path/to/socket, with ?db=0&user=USER&pass=PASSWORD if it needs them")
        }
        scheme => format!("write {scheme}://HOST:6379/0, with USER:PASSWORD@ before the host if it needs them"),
    }
}

#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster", feature = "redis-redlock"))]
fn of_hosts(url: &str, path: &str) -> String {
    let scheme = scheme(url);
    format!("write {scheme}://HOST1,HOST2,HOST3{path}, with USER:PASSWORD@ before the hosts if the servers need them")
}

#[async_trait]
impl Opened for RedisStore {
    async fn examine(&self) -> Vec<Finding> {
        self.look().await
    }

    /// Each master of the cluster, as it tells now who they are, to be tried by itself: through the jobs whose keys it keeps. None of a
    /// single server.
    #[cfg(feature = "redis-cluster")]
    async fn stations(self: Arc<Self>) -> Vec<crate::store::Station> {
        let Route::Many(cluster) = &self.route else { return Vec::new() };
        // That no server tells of the cluster is found out by whoever asks first.
        let Some(map) = cluster.map().await.map(Arc::new) else { return Vec::new() };
        let keys = self.keys.clone();
        let store: Arc<dyn crate::store::Store> = Arc::clone(&self) as _;
        let masters: std::collections::BTreeSet<_> = map.owners().cloned().collect();
        let station = |master| {
            let (map, keys) = (Arc::clone(&map), keys.clone());
            // All keys of a job are kept together.
            let keeps = move |job: &crate::job::JobName| map.owner(slot_of(&keys.pause(job))) == Some(&master);
            crate::store::Station::of_some(Arc::clone(&store), keeps)
        };
        masters.into_iter().map(station).collect()
    }

    /// One refusal does not keep the rest; the first is told.
    async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        let mut first = Ok(());
        for (key, command) in self.removals(trial) {
            first = first.and(self.call((Op::Purge, &key), &command, |_| Ok(())).await);
        }
        first
    }
}

impl RedisStore {
    /// One command for each key: in a cluster each may be with another server.
    fn removals(&self, trial: &Trial) -> Vec<(String, Cmd)> {
        let of_job =
            trial.job.iter().flat_map(|job| [(self.keys.jobs(), job.as_str()), (self.keys.pauses(), job.as_str())]);
        let of_node = trial.node.iter().map(|node| (self.keys.nodes(), node.as_str()));
        let listed = of_job.chain(of_node);
        let field = |(key, name): (String, &str)| {
            let command = redis::cmd("HDEL").arg(&key).arg(name).take();
            (key, command)
        };
        let whole = |key: String| {
            let command = redis::cmd("DEL").arg(&key).take();
            (key, command)
        };
        let of_slots = trial.slots.iter().flat_map(|slot| {
            let keys = self.keys.slot(slot);
            [keys.mark, keys.attempts, keys.log, self.keys.outputs(slot), self.keys.notes(slot)]
        });
        let of_job = trial.job.iter().flat_map(|job| {
            [
                self.keys.pause(job),
                self.keys.running(job),
                self.keys.latest(job),
                self.keys.messages(&job.clone().into()),
            ]
        });
        let of_lock = trial.lock.iter().flat_map(|lock| {
            let keys = self.keys.lock(lock);
            [keys.known, keys.queue, keys.spent, keys.audit]
        });
        let name = trial.lock.iter().map(|lock| {
            let key = self.keys.lock_names();
            let command = redis::cmd("ZREM").arg(&key).arg(lock.as_str()).take();
            (key, command)
        });
        let whole_keys = of_job.chain(of_slots).chain(of_lock).map(whole);
        listed.map(field).chain(name).chain(whole_keys).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_protocol() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let kept = ONE_SERVER.where_kept("redis://h", &Namespace::new("prod").unwrap(), &slot);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cronward:prod:{billing@2026-11-21T14Z}",
                "cronward:prod:{billing@2026-11-21T14Z}:attempts",
                "cronward:prod:{billing@2026-11-21T14Z}:log",
                "cronward:prod:{billing@2026-11-21T14Z}:outputs",
                "cronward:prod:{billing@2026-11-21T14Z}:notes",
                "cronward:prod:{billing}:last",
            ]
        );
        #[cfg(feature = "redis-cluster")]
        {
            let kept = CLUSTER.where_kept("redis+cluster://h", &Namespace::new("prod").unwrap(), &slot);
            assert_eq!(kept.first().map(|(name, _)| name.as_str()), Some("cronward:prod:{billing}@2026-11-21T14Z"));
        }
    }
}
