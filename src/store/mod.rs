//! The stores: the contract that each one keeps, and the adapters that keep it.
//!
//! - [`Store`] is the contract, one atomic step per operation; [`crate::reply`] has what it answers.
//! - [`memory`] is the executable specification: what it answers is right by definition.
//! - [`layer`] decorates any store: a time limit, observation, chaos.
//! - `redis` and `sql` are adapters. They know the trait and the words, never each other and never `guard`.
//! - [`open()`] turns a url into a store; the one file that names every adapter.

mod capability;
mod contract;
pub mod handover;
pub mod layer;
pub mod memory;
mod open;
#[cfg(feature = "redis")]
pub mod redis;
mod registry;
#[cfg(feature = "sqlite")]
pub mod sql;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use crate::error::{Applied, ErrorKind, Op, StoreError};
pub use crate::reply::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal, Settlement};
pub use crate::wake::{Wake, WakeKind, WakeParseError};
pub use capability::{Capability, Reach, StoreClock};
pub use contract::{Store, StoreOptions, Wakeups};
pub use open::{OpenError, SCHEMES, open, redact, secrets};
pub use registry::{HeartbeatReply, JobEntry, NodeEntry, NodeReport, Pause};
