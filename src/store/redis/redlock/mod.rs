//! Redlock over independent Redis masters (`docs/redlock.md`): asks each of them, and lets `store::redlock` decide.
//!
//! - Each master is a [`super::RedisStore`] of its own, with its own connection and the same keys and scripts.
//! - A claim has two halves, `lua/reserve.lua` and `lua/grant.lua`; what came to nothing is taken back by `lua/undo.lua`.
//! - `masters` asks all at once and waits no longer than it takes a majority, and a little grace.
//!
//! Nothing here weighs an answer; nothing here asks a master the same thing twice, but where a contest is undecided.

mod adapter;
mod claim;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod master;
mod masters;
mod slots;
mod store;

pub(in crate::store) use adapter::CAPABILITY;
pub use store::RedlockStore;
pub(in crate::store::redis) use store::check;
