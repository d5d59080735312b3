//! What a chaos run needs of a store, so that one harness serves them all.

use super::fault::{LinkFault, ServerFault};

/// A store under chaos: one or more servers, and a link to them for each node.
pub(super) trait Backend {
    /// Name and version, for reports: `redis 7.0.15`.
    fn name(&self) -> String;

    /// The url by which this node reaches it, past every failover.
    fn url(&self, node: usize) -> String;

    /// Begins to spoil a node's link; `pick` chooses among variants. Never called without links.
    fn spoil(&mut self, node: usize, fault: LinkFault, pick: u64);

    /// Mends a node's link.
    fn mend(&mut self, node: usize);

    /// Begins a fault of the server.
    fn begin(&mut self, fault: ServerFault, pick: u64);

    /// Ends it.
    fn end(&mut self, fault: ServerFault);
}
