//! What a chaos run needs of a store, so that one harness serves them all.

use std::time::Duration;

use super::fault::{LinkFault, ServerFault};
use super::links::Links;

/// What can be done to a store and to those who use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bears {
    /// Each node has links of its own to the servers, which can be spoilt.
    pub(super) links: bool,
    /// No node's clock decides anything, so that a wrong one harms no slot.
    pub(super) clocks: bool,
    /// What can be done to the servers.
    pub(super) server: &'static [ServerFault],
    /// How long the servers need after a fault of their own, at least.
    pub(super) rests: Duration,
    /// A failover takes its time, and loses what was acknowledged before it. So that it loses something that matters, each
    /// storm begins with one that strikes when much has just been done, and all nodes look at their slots anew after it.
    pub(super) forgets: bool,
    /// It keeps locks: jobs share some, and programs beside them.
    pub(super) locks: bool,
}

/// A store under chaos: one or more servers, and a link to them for each node.
pub(super) trait Backend {
    /// Name and version, for reports: `redis 7.0.15`.
    fn name(&self) -> String;

    /// The url by which this node reaches it, past every failover.
    fn url(&self, node: usize) -> String;

    /// Each node's links to the servers, where it has any.
    fn links(&self) -> Option<&Links> {
        None
    }

    /// Begins to spoil a node's link; `pick` chooses among variants. Never called without links.
    fn spoil(&mut self, node: usize, fault: LinkFault, pick: u64) {
        self.links().unwrap_or_else(|| panic!("there is no link for {fault:?}")).spoil(node, fault, pick);
    }

    /// Mends a node's link.
    fn mend(&mut self, node: usize) {
        if let Some(links) = self.links() {
            links.mend(node);
        }
    }

    /// Begins a fault of the server, which is ready for one.
    fn begin(&mut self, fault: ServerFault, pick: u64);

    /// Begins to end it: takes no longer than a node's fault may be late by.
    fn end(&mut self, fault: ServerFault);

    /// Whether the fault has ended, for all that the nodes can tell.
    fn is_over(&mut self) -> bool {
        true
    }

    /// Whether the servers are as before, so that another fault can begin.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Whether another server has taken the lead since this was asked last though nobody did anything, as on a machine that
    /// is too busy, where that may lose data. Asked only between faults.
    fn has_switched(&mut self) -> bool {
        false
    }

    /// What differs from one life of the servers to the next, by their own account: who leads, and since when. Asked only
    /// while they are ready.
    fn life(&self) -> String;

    /// What differs after a fault that took effect, by the servers' own account.
    fn trace(&self, _of: ServerFault) -> String {
        self.life()
    }
}
