//! One running node: drives slot machines with a runtime, a clock, a store and child processes.
//!
//! - [`Node`] is the loop: beats, ticks, wake-ups, endings, commands. It owns no rule of the protocol.
//! - Each slot is a task of its own, a [`crate::drive::Drive`].
//! - `roll` keeps the slots that are being driven, `chores` asks the store what is no slot's matter: heartbeats,
//!   registration, verdicts, purging.
//! - `digest` tells in sums what happens to many slots at once.
//! - `store_time` puts a wall clock right that is far from the store's.
//!
//! Nothing here reads files, knows signals or writes to a terminal: plans and commands come in through a channel, health
//! goes out through another.

mod beat;
mod chores;
mod daemon;
mod digest;
mod health;
mod plan;
mod presence;
mod roll;
mod store_time;
mod ticking;
mod verdicts;

pub use daemon::{Command, Node, NodeError, Ports};
pub use health::Health;
pub use plan::{Identity, Plan};
