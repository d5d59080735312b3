//! ZooKeeper as a kind of store, and where it keeps a slot.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::Backend;
use crate::store::zookeeper::ZookeeperStore;
use crate::store::zookeeper::operations::CAPABILITY;
use crate::store::zookeeper::paths::Paths;
use crate::store::zookeeper::target::{FORM, Target};
use crate::store::{Capability, Finding, OpenError, Store, StoreOptions, Trial};

/// ZooKeeper.
pub(in crate::store) struct ZookeeperBackend;

#[async_trait]
impl Backend for ZookeeperBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        Target::parse(url).map(drop)
    }

    fn form(&self, _url: &str) -> String {
        FORM.to_owned()
    }

    async fn open(&self, url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(ZookeeperStore::open(url, options, clock).await?))
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(ZookeeperStore::open(url, options, clock).await?.examine().await)
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(ZookeeperStore::open(url, options, clock).await?.forget(trial).await?)
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        // What follows the servers in the url is above everything.
        let (_, servers) = location.split_once("://").unwrap_or(("", location));
        let chroot = servers.find('/').and_then(|slash| servers.get(slash..)).unwrap_or("").trim_end_matches('/');
        let paths = Paths::new(chroot, namespace);
        vec![
            (paths.slot(slot), "all but the outputs, which are below it"),
            (paths.note(slot), "what nodes noted"),
            (paths.pauses(), "every job's pause"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_are_those_that_stores_md_promises() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        for (location, chroot) in [("zookeeper://a:1,b", ""), ("zookeeper://a/ops/cron", "/ops/cron")] {
            let nodes = ZookeeperBackend.where_kept(location, &Namespace::new("prod").unwrap(), &slot);
            let names: Vec<&str> = nodes.iter().map(|(name, _)| name.as_str()).collect();
            let root = format!("{chroot}/cronward/prod");
            assert_eq!(
                names,
                [
                    format!("{root}/slot/billing/2026-11-21T14Z"),
                    format!("{root}/note/billing/2026-11-21T14Z"),
                    format!("{root}/pauses"),
                ]
            );
        }
    }
}
