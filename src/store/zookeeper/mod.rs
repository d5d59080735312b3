//! Slots in ZooKeeper, version 3.6 or later: one node per slot, guarded by its version.
//!
//! - **Atomic steps.** Each operation reads the slot's node, lets a rule decide on its state, and writes it back under the
//!   condition that its version is the one that was read, together with what else it concerns (`multi`). Otherwise it
//!   begins anew: nothing was done yet. So of many claimers one wins (I1, I5).
//! - **Time** is the leader's: it stamps each change, and a small one is made to learn its clock (`time`). No node's wall
//!   clock decides anything.
//! - **A lease** is a mark with its end, as in a database: a session that its servers give up after ten seconds must not end a
//!   lease that its holder may trust for a minute, and a session goes on while the one who should renew hangs. The token says
//!   whose lease it is, whatever the session.
//! - **Alone.** What is leased of a job stands in one place, a node for each slot (`leases`). A grant of a slot that has to run alone
//!   changes the node above them, under the condition of its version.
//! - **A session** is watched all the same: beside each lease stands an ephemeral node, its owner, which goes with the session
//!   that wrote the lease last. A renewal that finds it gone, or another's, knows that the session was lost: the lease was in
//!   doubt. The mark decides what became of it; if it still stands it is renewed, the node is made anew in the same step, and
//!   `Resync` tells the other holders to renew at once.
//! - **Hints** are nodes that are made and removed in the same step as the change; a persistent watch tells of them.
//! - **Bounded.** A call ends within `op_timeout`.
//! - **Applied.** Only the step that writes can be `Maybe`; it is never sent twice.
//! - **Nodes are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod backend;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod leases;
mod link;
mod nodes;
mod purge;
mod registry;
mod slots;
mod store;
mod time;
mod watch;

pub(super) use backend::ZookeeperBackend;
pub use store::ZookeeperStore;
