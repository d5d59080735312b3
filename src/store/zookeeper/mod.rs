//! Slots in ZooKeeper, version 3.6 or later: one node per slot, guarded by its version.
//!
//! - **Atomic steps.** Each operation reads the slot's node, lets a rule decide on its image, and writes it back under the
//!   condition that its version is the one that was read, together with what else it concerns (`multi`). Otherwise it
//!   begins anew: nothing was done yet. So of many claimers one wins (I1, I5).
//! - **Time** is the leader's: it stamps each change, and a small one is made to learn its clock (`time`). No node's wall
//!   clock decides anything.
//! - **A lease** is a mark with its end, as in a database, and no ephemeral node: a session that its servers give up after
//!   ten seconds must not end a lease that its holder may trust for a minute; and a session goes on while the one who should
//!   renew hangs. So the end of a session costs nothing but hints: they tell `Resync`, holders renew at once, and a new
//!   session is begun. The token says whose lease it is, whatever the session.
//! - **Hints** are nodes that are made and removed in the same step as the change; a persistent watch tells of them.
//! - **Bounded.** A call ends within `op_timeout`.
//! - **Applied.** Only the step that writes can be `Maybe`; it is never sent twice.
//! - **Nodes are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod fault;
mod inspect;
mod link;
mod operations;
mod paths;
mod purge;
mod registry;
mod slots;
mod store;
mod target;
mod time;
mod watch;

pub(super) use operations::CAPABILITY;
pub use store::ZookeeperStore;
