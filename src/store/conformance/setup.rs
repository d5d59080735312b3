//! What the suite needs of a store's author, and the same for the store in memory. The suite never starts a server and never reads a
//! clock itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::{LockName, Namespace};
use crate::slot::{Attempt, Slot, Token};
use crate::store::memory::MemoryStore;
use crate::store::{LockStore, Store, StoreOptions, Topic};

/// One way to run a store: a server that was started, a file, a process's memory.
#[async_trait]
pub trait Setup: Send + Sync + 'static {
    /// A connection of its own to the same data as every other connection to this namespace. Two connections share no
    /// socket, no cache and no lock, as far as the store allows.
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String>;

    /// Access to the namespace's data behind the store's back.
    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String>;

    /// A connection to the namespace's locks, where the store keeps any.
    async fn connect_locks(&self, _namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        Err("this store keeps no locks".to_owned())
    }

    /// Access to the namespace's locks behind the store's back.
    async fn lock_probe(&self, _namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Err("this store keeps no locks".to_owned())
    }

    /// How much the contests ask of the store.
    fn scale(&self) -> Scale {
        Scale::default()
    }
}

/// How much the contests ask of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Claimers of one slot, each on a connection of its own.
    pub claimers: usize,
    /// Slots that two nodes claim at the same time.
    pub slots: usize,
    /// Claims of one node that are under way at the same time.
    pub in_flight: usize,
    /// How long a hint, or the lapse of a lease, may be waited for.
    pub patience: Duration,
    /// Operations in random sequences, at least.
    pub operations: u32,
}

impl Default for Scale {
    fn default() -> Self {
        Self { claimers: 64, slots: 10_000, in_flight: 32, patience: Duration::from_secs(30), operations: 600 }
    }
}

/// What a text becomes.
pub type Rewrite<'r> = &'r (dyn Fn(&str) -> String + Send + Sync);

/// Raw access to one namespace's data, with the store's native means and not with the adapter's code.
#[async_trait]
pub trait Probe: Send + Sync {
    /// The attempt counter as it is stored; none when there is none.
    async fn attempts(&self, slot: &Slot) -> Result<Option<Attempt>, String>;

    /// How long what stands at the slot's key (lease, wait or done marker) lasts; none when nothing stands there.
    async fn mark_ttl(&self, slot: &Slot) -> Result<Option<Duration>, String>;

    /// What stands at the slot's key runs out now. Nothing else changes. Nothing happens when nothing stands there.
    async fn expire_mark(&self, slot: &Slot) -> Result<(), String>;

    /// The attempt counter is lost, as by an eviction; the records of the runs are kept.
    async fn forget_counter(&self, slot: &Slot) -> Result<(), String>;

    /// What stands at the slot's key becomes something that cronward did not write. False when the store's types leave
    /// no room for that.
    async fn corrupt_mark(&self, slot: &Slot) -> Result<bool, String>;

    /// What was noted on the slot was changed last longer ago than any retention, and the slot has ended by then.
    async fn age_notes(&self, slot: &Slot) -> Result<(), String>;

    /// The document of the topic's messages, where there is one, becomes what is made of it. False where the store keeps no text, or the
    /// probe does not reach it.
    async fn rewrite_messages(&self, _topic: &Topic, _rewrite: Rewrite<'_>) -> Result<bool, String> {
        Ok(false)
    }

    /// Everything of the namespace is gone, as after a restart without persistence.
    async fn wipe(&self) -> Result<(), String>;
}

/// Raw access to one namespace's locks, with the store's native means and not with the adapter's code.
#[async_trait]
pub trait LockProbe: Send + Sync {
    /// The request's entry in this lock lapses now; that of everybody where none is named.
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String>;

    /// All that is known of the lock is lost, as by an eviction.
    async fn forget(&self, lock: &LockName) -> Result<(), String>;

    /// Every lock of the namespace is gone.
    async fn wipe(&self) -> Result<(), String>;

    /// So many more requests of others stand in the lock, each with an entry like its only one. False where the probe leaves that to
    /// those who ask: of a store that reads and writes all of a queue with each request they would take their time.
    async fn crowd(&self, _lock: &LockName, _more: usize) -> Result<bool, String> {
        Ok(false)
    }
}

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

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        Ok(Arc::new(self.room(namespace)))
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        Ok(Box::new(MemoryProbe(self.room(namespace))))
    }
}

#[async_trait]
impl LockProbe for MemoryProbe {
    async fn expire(&self, lock: &LockName, token: Option<Token>) -> Result<(), String> {
        self.0.with_ledger(|ledger, now| ledger.expire_lock(lock, token, now));
        Ok(())
    }

    async fn forget(&self, lock: &LockName) -> Result<(), String> {
        self.0.with_ledger(|ledger, _| ledger.forget_lock(lock));
        Ok(())
    }

    async fn wipe(&self) -> Result<(), String> {
        self.0.with_ledger(|ledger, _| ledger.wipe());
        Ok(())
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
