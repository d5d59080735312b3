//! Slots in etcd, version 3.4 or later: one atomic transaction per operation, one key per thing that a person looks for.
//!
//! - **Atomic steps.** Each operation reads the slot, lets a rule decide on its image, and writes what has changed under
//!   the condition that nothing of what was read has changed since (`mod_revision`; `create_revision` 0 for what was not
//!   there). Otherwise it begins anew: nothing was done yet. So of many claimers one wins (I1, I5). A first claim reads nothing
//!   before: it presumes a slot that nobody has touched, under the same condition.
//! - **A lease** is a mark that stands under an etcd lease of its own. The cluster removes it, by the leader's steady
//!   clock: no node's clock can shorten or lengthen it. A copy of it stands among the leases of its job, so that a slot that has to
//!   run alone is granted on the condition that none but its own is there. Counter, document and done marker are kept without.
//! - **Time** for everything else (when a slot begins and ends, how long a wait lasts) is the asking node's: etcd has no
//!   clock that can be asked ([`StoreClock::Node`](crate::store::StoreClock)).
//! - **Hints** come by a watch, also when a lease lapses. After a broken connection it goes on where it was.
//! - **Bounded.** A call ends within `op_timeout`. A member that does not answer is left for the next one.
//! - **Applied.** Only the transaction that writes can be `Maybe`; it is never sent twice.
//! - **Values are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod api;
mod backend;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod keys;
mod link;
mod read;
mod registry;
mod slots;
mod store;
mod target;
mod watch;

pub(super) use backend::EtcdBackend;
pub use store::EtcdStore;
