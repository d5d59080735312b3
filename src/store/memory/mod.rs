//! A store in this process's memory: for tests, examples, the model and the simulator.
//!
//! - [`Ledger`] keeps the slots and the registry as plain data; the time is a parameter. No lock, no runtime. What it answers
//!   about a slot is decided by `store::rules`, as in every store that does not decide by itself.
//! - [`MemoryStore`] is a ledger behind a lock and a clock: the [`super::Store`].

mod ledger;
mod probe;
mod store;

pub use ledger::Ledger;
pub(super) use store::MemoryBackend;
pub use store::MemoryStore;

#[cfg(test)]
mod tests;
