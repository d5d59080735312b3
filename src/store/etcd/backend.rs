//! etcd as a kind of store: what is said of it where it is chosen, and where it keeps a slot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::{Backend, Files};
use crate::store::etcd::EtcdStore;
use crate::store::etcd::keys::Keys;
use crate::store::etcd::operations::CAPABILITY;
use crate::store::etcd::target::{FORM, Target};
use crate::store::{Advice, Capability, Finding, OpenError, Store, StoreOptions, Trial};

/// etcd.
pub(in crate::store) struct EtcdBackend;

#[async_trait]
impl Backend for EtcdBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        Target::parse(url, Duration::ZERO, Files::Unread).map(drop)
    }

    fn form(&self, _url: &str) -> String {
        FORM.to_owned()
    }

    fn advice(&self) -> Option<Advice> {
        Some(Advice {
            code: "no-store-clock",
            message: "etcd has no clock that nodes could share: each node's own judges when a slot begins and ends",
            hint: "keep every node's clock in step by NTP; leases do not depend on it",
        })
    }

    async fn open(&self, url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(EtcdStore::open(url, options, clock).await?))
    }

    async fn examine(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(EtcdStore::open(url, options, clock).await?.examine().await)
    }

    async fn forget(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
        trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(EtcdStore::open(url, options, clock).await?.forget(trial).await?)
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)> {
        let keys = Keys::new(namespace);
        vec![
            (keys.mark(slot), "lease, wait or done marker"),
            (keys.attempts(slot), "attempt counter"),
            (keys.document(slot), "each attempt, verdict, audit"),
            (keys.outputs(slot), "the outputs, by their prefix"),
            (keys.notes(slot), "what nodes noted, by its prefix"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_that_stores_md_promises() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let keys = EtcdBackend.where_kept("etcd://h", &Namespace::new("prod").unwrap(), &slot);
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "/cronward/prod/mark/billing@2026-11-21T14Z",
                "/cronward/prod/attempts/billing@2026-11-21T14Z",
                "/cronward/prod/slot/billing@2026-11-21T14Z",
                "/cronward/prod/output/billing@2026-11-21T14Z/",
                "/cronward/prod/note/billing@2026-11-21T14Z/",
            ]
        );
    }
}
