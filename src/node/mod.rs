//! One running node.
//!
//! - `NodeMachine` is what it does, without a runtime: planning, taking over, heartbeats, verdicts, reload and shutdown. It
//!   owns no rule of the protocol.
//! - [`Node`] is the loop that drives it with a runtime, a clock and a store; the simulator drives it in virtual time.
//! - Each slot is a task of its own, a [`crate::drive::Drive`]; `active` keeps which slots are driven.
//! - `agenda` keeps the ticks that are armed; `first_seen` says which scheduled times a job owes.
//! - `membership` is the node as the cluster sees it, `presence` is what the registry says of it, `chores` asks the store what is no slot's matter.
//! - `request` judges what an operator asks this node to run.
//! - `digest` tells in sums what happens to many slots at once.
//! - `time` beats every second, and shows a wall clock that was put right by the store's.
//!
//! Nothing here reads files, knows signals or writes to a terminal: plans and commands come in through a channel, health
//! goes out through another.

#[allow(missing_docs, reason = "no page shows it: it is what the driver of a machine says and hears")]
mod action;
mod active;
mod agenda;
#[cfg(feature = "daemon")]
mod chores;
#[cfg(feature = "daemon")]
mod daemon;
#[cfg(feature = "daemon")]
mod digest;
#[cfg(feature = "daemon")]
mod drift;
mod first_contact;
mod first_seen;
#[cfg(test)]
mod handover_tests;
#[cfg(feature = "daemon")]
#[cfg(test)]
mod leaving_tests;
mod machine;
mod membership;
mod plan;
mod presence;
#[cfg(feature = "daemon")]
mod releases;
mod request;
mod resets;
#[cfg(feature = "daemon")]
mod time;
#[cfg(test)]
mod trigger_tests;
mod verdicts;

// A machine, and what its driver says and hears, are public for the simulator (`tools/simulate`): no promise is made of them.
#[doc(hidden)]
pub use action::{Action, DriveId, Looked, Question, Report, Start};
#[cfg(feature = "daemon")]
pub use daemon::{Command, Node, NodeError, Ports};
#[doc(hidden)]
pub use machine::NodeMachine;
#[doc(hidden)]
pub use plan::Upkeep;
pub use plan::{Health, Identity, Plan, ZonesNow};
pub use request::{TriggerRefusal, TriggerRequest};
