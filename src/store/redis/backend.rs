//! Redis as four kinds of stores: one server, the master behind sentinels, a cluster, and with Redlock a majority of masters.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::Backend;
use crate::store::redis::RedisStore;
use crate::store::redis::adapter::CAPABILITY;
use crate::store::redis::keys::Keys;
use crate::store::url::scheme;
use crate::store::{Capability, Finding, OpenError, Store, StoreOptions, Trial, UrlFault};

/// Redis where one server keeps a slot.
pub(in crate::store) struct RedisBackend {
    name: &'static str,
    check: fn(&str) -> Result<(), UrlFault>,
    keys: fn(&Namespace) -> Keys,
}

/// One server.
pub(in crate::store) const ONE_SERVER: RedisBackend =
    RedisBackend { name: CAPABILITY.name, check: one_host, keys: Keys::new };

/// The master that sentinels name.
#[cfg(feature = "redis-sentinel")]
pub(in crate::store) const SENTINEL: RedisBackend =
    RedisBackend { name: "redis-sentinel", check: hosts_and_master, keys: Keys::new };

/// A cluster.
#[cfg(feature = "redis-cluster")]
pub(in crate::store) const CLUSTER: RedisBackend =
    RedisBackend { name: "redis-cluster", check: hosts, keys: Keys::in_cluster };

#[async_trait]
impl Backend for RedisBackend {
    fn capability(&self) -> Capability {
        Capability { name: self.name, ..CAPABILITY }
    }

    fn check(&self, url: &str) -> Result<(), UrlFault> {
        (self.check)(url)
    }

    fn holds_foreign_keys(&self) -> bool {
        true
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(RedisStore::open(url, options).await?))
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(RedisStore::open(url, options).await?.examine().await)
    }

    #[cfg(feature = "redis-cluster")]
    async fn stations(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<crate::store::Station>, OpenError> {
        Ok(RedisStore::open(url, options).await?.stations().await)
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        _clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(RedisStore::open(url, options).await?.forget(trial).await?)
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        names(&(self.keys)(namespace), slot)
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

    fn check(&self, url: &str) -> Result<(), UrlFault> {
        masters(url)
    }

    fn advice(&self) -> Option<crate::store::Advice> {
        Some(crate::store::Advice {
            code: "redlock-limits",
            message: "redlock: leases hold while most masters' clocks run at one rate, fences are unique while most keep their data",
            hint: "let the resource check the fence (CRONWARD_FENCE); docs/redlock.md has what each failure can lose",
        })
    }

    async fn open(&self, url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(super::RedlockStore::open(url, options, clock).await?))
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(super::RedlockStore::open(url, options, clock).await?.examine().await)
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(super::RedlockStore::open(url, options, clock).await?.forget(trial).await?)
    }

    async fn stations(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Vec<crate::store::Station>, OpenError> {
        Ok(super::RedlockStore::open(url, options, clock).await?.stations())
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        names(&Keys::new(namespace), slot)
    }
}

/// The names that `docs/PROTOCOL.md` promises ("Keys in Redis").
fn names(keys: &Keys, slot: &Slot) -> Vec<(String, &'static str)> {
    let of_slot = keys.slot(slot);
    vec![
        (of_slot.mark, "lease, wait or done marker"),
        (of_slot.attempts, "attempt counter"),
        (of_slot.log, "each attempt, verdict, audit"),
        (keys.outputs(slot), "the end of each attempt's output"),
        (keys.notes(slot), "what nodes noted"),
    ]
}

fn fault(what: impl Into<String>, hint: String) -> Result<(), UrlFault> {
    Err(UrlFault { what: what.into(), hint })
}

fn one_host(url: &str) -> Result<(), UrlFault> {
    let scheme = scheme(url);
    if scheme == "redis+unix" {
        return Ok(());
    }
    let hint = format!("write {scheme}://HOST:6379, with USER:PASSWORD@ before the host if it needs them");
    match url::Url::parse(url) {
        Ok(parsed) if parsed.host_str().is_some_and(|host| !host.is_empty()) => Ok(()),
        Ok(_) => fault("names no host", hint),
        Err(error) => fault(format!("is no url: {error}"), hint),
    }
}

/// The hosts of a list as they are written, and the path after them.
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster", feature = "redis-redlock"))]
fn parts(url: &str) -> (Vec<&str>, &str) {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or("");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    (authority.rsplit('@').next().unwrap_or("").split(',').collect(), path)
}

#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster", feature = "redis-redlock"))]
fn no_host_is_empty(url: &str, name: &str) -> Result<(), UrlFault> {
    if parts(url).0.iter().any(|host| host.is_empty()) {
        return fault("names no host, or an empty one", of_hosts(url, name));
    }
    Ok(())
}

#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster", feature = "redis-redlock"))]
fn of_hosts(url: &str, name: &str) -> String {
    let scheme = scheme(url);
    format!("write {scheme}://HOST1,HOST2,HOST3{name}, with USER:PASSWORD@ before the hosts if the servers need them")
}

#[cfg(feature = "redis-cluster")]
fn hosts(url: &str) -> Result<(), UrlFault> {
    no_host_is_empty(url, "")
}

#[cfg(feature = "redis-sentinel")]
fn hosts_and_master(url: &str) -> Result<(), UrlFault> {
    no_host_is_empty(url, "/mymaster")?;
    if parts(url).1.is_empty() {
        return fault("does not name the master that the sentinels watch", of_hosts(url, "/mymaster"));
    }
    Ok(())
}

/// A majority needs an odd number of masters.
#[cfg(feature = "redis-redlock")]
fn masters(url: &str) -> Result<(), UrlFault> {
    no_host_is_empty(url, "")?;
    let count = parts(url).0.len();
    if count < 3 || count.is_multiple_of(2) {
        let what = format!("names {count} masters: three, five or seven make a majority worth having");
        return fault(what, of_hosts(url, ""));
    }
    Ok(())
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
            ]
        );
        #[cfg(feature = "redis-cluster")]
        {
            let kept = CLUSTER.where_kept("redis+cluster://h", &Namespace::new("prod").unwrap(), &slot);
            assert_eq!(kept.first().map(|(name, _)| name.as_str()), Some("cronward:prod:{billing}@2026-11-21T14Z"));
        }
    }
}
