//! What there is to a kind of store besides its operations: what it can and cannot do, as data; what its url may say, how it is opened and
//! looked at, where it keeps a slot. Each adapter has one, and `open` has the table of them. Nothing asks "is it Redis?".

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::{Advice, Finding, Migration, OpenError, Station, Store, StoreOptions, Trial};

/// Differences between stores that somebody above them has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The store's name in documents, logs and metrics.
    pub name: &'static str,
    /// Who can share it.
    pub reach: Reach,
    /// Whose clock judges leases and windows.
    pub clock: StoreClock,
    /// True when it tells of releases by itself; otherwise waiting nodes look again every [`Capability::poll`].
    pub push: bool,
    /// How often a node that waits for a release looks again where `push` is false.
    pub poll: Duration,
    /// True when an acknowledged write outlives the process that keeps the store.
    pub durable: bool,
    /// True when old records go by themselves; otherwise the node calls `purge`.
    pub expires_records: bool,
}

impl Capability {
    /// What a cluster misses with this store, on one line; none where it misses nothing.
    pub fn lacks(&self) -> Option<String> {
        let reach = match self.reach {
            Reach::Process => Some("it ends with its process".to_owned()),
            Reach::Host => Some("it reaches the processes of one host only".to_owned()),
            Reach::Network => None,
        };
        let clock = match self.clock {
            StoreClock::Servers => {
                Some("a lease holds as far as the clocks of most of its servers run at one rate".to_owned())
            }
            StoreClock::Server | StoreClock::Host | StoreClock::Node => None,
        };
        let push =
            (!self.push).then(|| format!("it tells of no release, so who waits looks again every {:?}", self.poll));
        let durable = (!self.durable).then(|| "it may lose what it has acknowledged".to_owned());
        let missing: Vec<String> = [reach, clock, push, durable].into_iter().flatten().collect();
        (!missing.is_empty()).then(|| format!("store {}: {}", self.name, missing.join("; ")))
    }
}

/// Who can share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One process.
    Process,
    /// Every process of one host.
    Host,
    /// Every node that reaches it over the network.
    Network,
}

/// Whose clock judges leases and windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreClock {
    /// The server's: a node's wrong clock cannot start a run early or late.
    Server,
    /// Those of several servers, of which the middle one counts. A lease and its fence are as good as the assumption that
    /// most of these clocks run at one rate, and that most of these servers keep what they acknowledged.
    Servers,
    /// The host's that every user of the store shares.
    Host,
    /// Each node's own judges when a slot begins and ends and how long a wait lasts: a node's wrong clock can start a run
    /// early or late. Leases do not depend on it: the store ends them by itself.
    Node,
}

/// How far a url is read.
#[cfg(any(feature = "redis", feature = "etcd"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// With the files that it names.
    Read,
    /// Its text alone.
    Unread,
}

/// A kind of store. What one has nothing of is as if it were asked and found nothing.
#[async_trait]
pub(super) trait Backend: Sync {
    /// What it can do.
    fn capability(&self) -> Capability;

    /// Refuses what [`Backend::open`] refuses for the text of the url alone: reads no file and no environment, and asks nobody.
    fn check(&self, _url: &str) -> Result<(), OpenError> {
        Ok(())
    }

    /// What to write, where the reason of [`Backend::check`] does not say it.
    fn form(&self, _url: &str) -> String {
        String::new()
    }

    /// What it does not promise, for whoever chooses it.
    fn advice(&self) -> Option<Advice> {
        None
    }

    /// Whether the lock of a foreign program can be held there ([`StoreOptions::lock_key`]).
    fn holds_foreign_keys(&self) -> bool {
        false
    }

    /// Opens it. No connection is made where that can wait.
    async fn open(&self, url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, OpenError>;

    /// What is particular to it; see [`crate::store::examine`].
    async fn examine(
        &self,
        _url: &str,
        _options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Finding>, OpenError> {
        Ok(Vec::new())
    }

    /// Its servers, where there are several with rights of their own; see [`crate::store::stations`].
    async fn stations(
        &self,
        _url: &str,
        _options: StoreOptions,
        _clock: Arc<dyn Clock>,
    ) -> Result<Vec<Station>, OpenError> {
        Ok(Vec::new())
    }

    /// Removes what a trial wrote.
    async fn forget(
        &self,
        _url: &str,
        _options: StoreOptions,
        _clock: Arc<dyn Clock>,
        _trial: &Trial,
    ) -> Result<(), OpenError> {
        Ok(())
    }

    /// Makes its tables where there are none; nothing where there are none to be made.
    async fn migrate(&self, _url: &str) -> Result<Option<Migration>, OpenError> {
        Ok(None)
    }

    /// Where the store at this location keeps a slot, each name with what it is; for a person with the store's own client at hand.
    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, &'static str)>;
}
