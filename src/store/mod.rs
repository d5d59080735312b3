//! The stores: the contract that each one keeps, and the adapters that keep it.
//!
//! - [`Store`] is the contract, one atomic step per operation, and [`Claim`] and the like are what it answers.
//! - `rules` decide about a slot, on its `state`: the executable specification, run by every store but Redis.
//! - `each` reads many at once where some cannot be read; it decides nothing about those.
//! - [`LockStore`] is the contract of those that keep locks besides.
//! - `memory` keeps slots in this process; `conformance` is the suite that every store must pass.
//! - `tls` reads the files that a url names for TLS, and says what to do about each failure.
//! - `layer` decorates any store: a time limit, chaos, a password that changes.
//! - `redis`, `sql`, `etcd` and `zookeeper` are adapters. They know the trait and the words, never each other and never `machine`.
//! - [`open()`] turns a url into a store; the one file that names every adapter.
//!
//! What is shown here is for those who open a store, or write one: the trait, its words, and the suite. Adapters are opened by their urls.

mod backend;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod codec;
mod contract;
mod doctor;
#[cfg(feature = "daemon")]
mod each;
#[doc(hidden)]
#[cfg(feature = "etcd")]
pub mod etcd;
#[doc(hidden)]
pub mod handover;
#[cfg_attr(
    not(any(feature = "redis", feature = "postgres", feature = "etcd", feature = "zookeeper")),
    allow(dead_code, reason = "what no server tells of is told to this process alone")
)]
mod hints;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod keyed;
#[doc(hidden)]
pub mod layer;
mod locks;
#[doc(hidden)]
pub mod memory;
mod messages;
mod open;
mod options;
mod planned;
#[doc(hidden)]
#[cfg(feature = "redis")]
pub mod redis;
#[doc(hidden)]
#[cfg(feature = "redis-redlock")]
pub mod redlock;
mod registry;
mod ruled;
mod rules;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "etcd", feature = "zookeeper"))]
mod shelf;
#[doc(hidden)]
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod sql;
mod state;
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql", feature = "etcd"))]
mod tls;
mod url;
#[doc(hidden)]
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

#[doc(inline)]
pub use crate::error::{Applied, ErrorKind, Op, StoreError};
#[doc(inline)]
pub use crate::message::{
    Delivery, DeliveryReply, MessageKey, MessageKeyError, Telling, Topic, UntoldMessage, UntoldStage,
};
#[doc(inline)]
pub use crate::reply::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal, Settlement};
#[doc(inline)]
pub use crate::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockEntry, LockExit, LockHint, LockHold, LockHolder, LockRecord,
    LockRefusal, LockRelease, LockRenewal, OwnerId,
};
#[doc(inline)]
pub use crate::wake::{ChangeHint, Wake, WakeKind, WakeParseError};
#[doc(hidden)]
pub use backend::KeptPart;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub use codec::fuzzing::document_texts;
pub use contract::{Capability, Changes, LATEST_KEPT, Reach, Store, StoreClock, Wakeups};
#[doc(hidden)]
pub use doctor::{Finding, Severity, Station, Trial};
#[cfg(feature = "http")]
pub(crate) use each::untold_each;
#[cfg(feature = "daemon")]
pub(crate) use each::{LocksEach, inspect_each, latest_each, locks_each};
pub use locks::{LockStore, LockWakeups};
#[doc(hidden)]
pub use open::{capability, check_url, client_command, examine, forget, stations, where_kept};
pub use open::{migrate, open, open_locks, open_locks_with_clock, open_with_clock};
pub use options::StoreOptions;
pub use planned::is_planned;
#[cfg(any(feature = "http", feature = "notify"))]
pub(crate) use registry::HEARD_AGAIN;
pub(crate) use registry::HEARTBEAT_DUE;
pub use registry::{
    CrontabCommand, HEARTBEAT, HeartbeatReply, JobEntry, JobOrigin, NodeEntry, NodeReport, Pause, SILENCE,
};
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub use rules::lock_document;
#[doc(hidden)]
pub use url::{Advice, EMBEDDED, SCHEMES, UrlFault, redact, secret_ranges, secrets, shown_scheme};
pub use url::{Migration, OpenError};
