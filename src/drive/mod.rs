//! Driving one slot: carries out what a [`crate::machine::SlotMachine`] asks for, with a runtime, a clock and a store.
//!
//! - [`Drive`] is one slot being driven; it decides nothing.
//! - [`Gate`] is where many of them wait for their turn; `admission` decides whose it is.
//! - [`Work`] is what a granted slot starts: a command (`command`), or a future of a service.
//! - `locks` is the same for one request for locks, of a slot or of a service.
//! - `entropy` draws random bits, `timers` sleeps: the only files that do.
//!
//! The daemon drives many slots at once, `cronward exec` and an embedding service one at a time. Nothing here plans, reads
//! files or starts processes.

mod admission;
#[cfg(feature = "daemon")]
mod again;
#[cfg(feature = "daemon")]
mod command;
#[cfg(test)]
mod crowd_tests;
mod entropy;
mod facts;
mod gate;
#[cfg(feature = "daemon")]
mod held;
#[cfg(test)]
mod lock_tests;
pub(crate) mod locks;
mod once;
mod overtaker;
mod patience;
mod shortage;
mod standstill;
mod task;
pub(crate) mod timers;
mod tools;
mod traces;
mod work;

pub use admission::{Limits, MAX_RUNNING, Occupancy};
#[cfg(feature = "daemon")]
pub use command::{JobCommand, Launches};
pub use entropy::Entropy;
#[doc(hidden)]
pub use facts::Fact;
pub use facts::Facts;
pub use gate::{Gate, Waiting};
#[cfg(feature = "daemon")]
pub(crate) use held::HolderWait;
pub use once::Once;
#[cfg(feature = "daemon")]
pub(crate) use once::node_and_label;
pub use once::{Account, Lost, RunAccount};
pub use patience::{Patience, Wait};
pub use task::{Drive, Message};
pub use tools::Tools;
pub use traces::{Introduction, Traces};
pub use work::{Renewals, Started, Work};
