//! A store in this process's memory: the executable specification. What it answers is right by definition; the suite in
//! `store::conformance` holds every other store to it.
//!
//! - [`Ledger`] is the rules alone: plain data, one method per operation, the time a parameter. No lock, no runtime.
//! - [`MemoryStore`] is a ledger behind a lock and a clock: the [`super::Store`] for tests, examples and the simulator.

mod backend;
mod claim;
mod close;
mod ledger;
mod log;
mod notes;
mod operator;
mod probe;
mod registry;
mod renew;
mod settle;
mod store;

pub(super) use backend::MemoryBackend;
pub use ledger::Ledger;
pub use store::MemoryStore;

#[cfg(test)]
mod tests;
