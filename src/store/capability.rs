//! What a store can and cannot do, as data: shown in the docs, used to pick tests and waits. Nothing asks "is it Redis?".

use std::time::Duration;

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
