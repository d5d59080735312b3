//! A guard for cron jobs on a cluster: of all the nodes that run the same schedule, one does each slot's work.
//!
//! ```
//! use cronward::{Fence, Guard, RunOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In every replica of a service, with the url of a store that they share: redis://…, postgres://…
//! let guard = Guard::connect("memory:", "hourly-push").await?;
//! match guard.run_current(|hold| push(hold.fence())).await? {
//!     RunOutcome::Done { value, .. } => println!("pushed {value} rows"),
//!     RunOutcome::Skipped(why) => println!("left to another: {why:?}"),
//!     other => println!("not done: {other:?}"),
//! }
//! # Ok(())
//! # }
//! # async fn push(_: Fence) -> Result<u32, std::io::Error> { Ok(42) }
//! ```
//!
//! For each slot of a job (the hour, by default) one node claims the slot in a shared store, runs the job, and marks the
//! slot done. If the run fails or its node dies, another node that waits in [`Guard::run_current`] tries again within the same slot,
//! at most `max_attempts` times in all. A repeat, an overlap or a miss is never silent.
//!
//! **What it is not.** Not exactly-once: a lease cannot stop a paused process, so two runs can overlap; the fence number
//! lets the resource refuse the older one. Not a workflow engine: no dependencies between jobs, no queues.
//!
//! - [`Guard`] is for a service that runs a future once in each slot; [`service`] says what becomes of that future. [`testing`] has
//!   a store in memory and a clock that stands still.
//! - [`lock`] has the locks that several jobs or services share: a mutex, a read-write lock, a semaphore, several at once.
//! - [`store::Store`] is the contract of a store, and [`protocol`] the same in words; `store::conformance` is the suite that every
//!   store must pass (feature `conformance`). [`slot`], [`job`] and [`event`] have the words.
//!
//! **What is promised.** Versions follow Semantic Versioning for what these pages show: the names of this page, and the modules
//! [`service`], [`lock`], [`store`], [`slot`], [`job`], [`event`] and [`testing`]. The other modules are public for the binary, its tools and
//! its tests; they are in no documentation, and change in any release.
//!
//! **Features.** The default ones are those of the `cronward` tool. A service takes `default-features = false` and the stores that it
//! uses: `redis` (and `redis-sentinel`, `redis-cluster`, `redis-redlock`), `sqlite`, `postgres`, `mysql`, `etcd`, `zookeeper`. Without
//! them there is no store client, no file format and no command line in its tree, and the store is `memory:`.

#[cfg(feature = "daemon")]
mod admin;
#[doc(hidden)]
#[cfg(feature = "http")]
pub mod board;
#[doc(hidden)]
#[cfg(feature = "daemon")]
pub mod cli;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
#[cfg(feature = "daemon")]
pub mod config;
#[doc(hidden)]
pub mod drive;
#[doc(hidden)]
pub mod error;
pub mod event;
#[doc(hidden)]
#[cfg(feature = "daemon")]
pub mod exec;
mod file;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod job;
pub mod lock;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
#[cfg(feature = "http")]
pub mod metrics;
#[doc(hidden)]
pub mod node;
#[doc(hidden)]
#[cfg(feature = "notify")]
pub mod notify;
#[doc(hidden)]
pub mod observe;
#[doc(hidden)]
pub mod reply;
#[doc(hidden)]
pub mod resource;
#[doc(hidden)]
pub mod schedule;
pub mod service;
pub mod slot;
pub mod store;
mod text;
#[doc(hidden)]
pub mod verify;
#[doc(hidden)]
pub mod wake;
#[doc(hidden)]
#[cfg(feature = "http")]
pub mod web;
#[doc(hidden)]
pub mod zone;

#[doc = include_str!("../docs/PROTOCOL.md")]
pub mod protocol {}

/// What a service's tests need: a store in memory, and a clock that the test moves. Both go into [`Guard::builder`].
/// Waits (`wait`, `timeout`, retries) are tokio's: a test that lets them pass moves tokio's time as well (`tokio::time::pause`).
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use cronward::testing::{ManualClock, MemoryStore};
/// use cronward::{Guard, StoreOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::at("2026-11-21T14:10:00Z".parse()?);
/// let store = MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone()));
/// let guard = Guard::builder(Arc::new(store), "hourly-push", "a").clock(Arc::new(clock.clone())).build()?;
/// let push = async || guard.run_current(|_| async { Ok::<_, std::io::Error>(()) }).await;
///
/// assert!(push().await?.is_done());
/// assert!(!push().await?.is_done(), "once in each hour");
/// clock.advance(Duration::from_secs(3_600));
/// assert!(push().await?.is_done());
/// # Ok(())
/// # }
/// ```
pub mod testing {
    #[doc(inline)]
    pub use crate::clock::{Clock, ManualClock, Mono, Now, SystemClock};
    #[doc(inline)]
    pub use crate::store::memory::MemoryStore;
}

#[doc(inline)]
pub use job::{Concurrency, JobName, NameError, Namespace, NodeName, OnLost};
#[doc(inline)]
pub use lock::{Held, LockError, Locks, TryLockError};
#[doc(inline)]
pub use service::{
    BuildError, Guard, GuardBuilder, GuardError, Hold, Run, RunOutcome, ShutdownError, Skipped, Standing, Stopped,
};
#[doc(inline)]
pub use slot::{Attempt, Fence, Period, Slot};
#[doc(inline)]
pub use store::{ErrorKind, LockStore, OpenError, Store, StoreError, StoreOptions, open, open_locks};
#[doc(inline)]
pub use zone::{Zone, ZoneError};
