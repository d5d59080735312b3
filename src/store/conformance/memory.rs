//! The executable specification as a setup of its own suite. What it passes says that the suite asks for nothing that the
//! specification does not do; it says nothing about any other store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::{Attempt, Slot};
use crate::store::conformance::{Probe, Setup};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreOptions};

/// One ledger that all connections share.
#[derive(Debug)]
pub struct MemorySetup {
    root: MemoryStore,
}

impl MemorySetup {
    /// An empty ledger that judges time by `clock`, which must run: one case waits for a lease to lapse by itself.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { root: MemoryStore::new(StoreOptions::default(), clock) }
    }

    /// The store as seen from a namespace.
    pub fn room(&self, namespace: &Namespace) -> MemoryStore {
        self.root.beside(namespace.clone())
    }
}

#[async_trait]
impl Setup for MemorySetup {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        Ok(Arc::new(self.room(namespace)))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        Ok(Box::new(MemoryProbe(self.room(namespace))))
    }
}

struct MemoryProbe(MemoryStore);

#[async_trait]
impl Probe for MemoryProbe {
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String> {
        Ok(self.0.with_ledger(|ledger, _| ledger.counter(slot)))
    }

    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String> {
        Ok(self.0.with_ledger(|ledger, now| ledger.mark_ttl(slot, now)))
    }

    async fn expire_mark(&self, slot: &Slot) -> Result<(), String> {
        self.0.with_ledger(|ledger, now| ledger.expire_mark(slot, now));
        Ok(())
    }

    async fn forget_counter(&self, slot: &Slot) -> Result<(), String> {
        self.0.with_ledger(|ledger, _| ledger.forget_counter(slot));
        Ok(())
    }

    async fn corrupt_mark(&self, _slot: &Slot) -> Result<bool, String> {
        // Plain data of our own types: there is nothing to misread.
        Ok(false)
    }

    async fn age_notes(&self, slot: &Slot) -> Result<(), String> {
        self.0.with_ledger(|ledger, _| ledger.age_notes(slot));
        Ok(())
    }

    async fn wipe(&self) -> Result<(), String> {
        self.0.with_ledger(|ledger, _| ledger.wipe());
        Ok(())
    }
}
