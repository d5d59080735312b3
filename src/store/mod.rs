//! The stores: the contract that each one keeps, and the adapters that keep it.
//!
//! - [`Store`] is the contract, one atomic step per operation; [`crate::reply`] has what it answers.
//! - `rules` decide about a slot, on its `state`: the executable specification, run by every store but Redis.
//! - [`memory`] keeps slots in this process.
//! - [`layer`] decorates any store: a time limit, chaos, a password that changes.
//! - `redis`, `sql`, `etcd` and `zookeeper` are adapters. They know the trait and the words, never each other and never `guard`.
//! - [`open()`] turns a url into a store; the one file that names every adapter.

mod backend;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod codec;
mod contract;
mod doctor;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod handover;
#[cfg_attr(
    not(any(feature = "redis", feature = "postgres", feature = "etcd", feature = "zookeeper")),
    allow(dead_code, reason = "what no server tells of is told to this process alone")
)]
mod hints;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod keyed;
pub mod layer;
pub mod memory;
mod open;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis-redlock")]
pub mod redlock;
mod registry;
mod ruled;
mod rules;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod sql;
mod state;
mod url;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use crate::error::{Applied, ErrorKind, Op, StoreError};
pub use crate::reply::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal, Settlement};
pub use crate::wake::{Wake, WakeKind, WakeParseError};
#[cfg(feature = "fuzzing")]
pub use codec::fuzzing::document_texts;
pub use contract::{Capability, LATEST_KEPT, Reach, Store, StoreClock, StoreOptions, Wakeups};
pub use doctor::Station;
pub use doctor::Trial;
pub use doctor::{Finding, Severity};
pub use open::{capability, check_url, examine, forget, migrate, open, stations, where_kept};
pub use registry::{HEARTBEAT, HeartbeatReply, JobEntry, JobOrigin, NodeEntry, NodeReport, Pause, SILENCE};
pub use url::{
    Advice, EMBEDDED, Migration, OpenError, SCHEMES, UrlFault, redact, secret_ranges, secrets, shown_scheme,
};
