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
    /// The host's that every user of the store shares.
    Host,
}
