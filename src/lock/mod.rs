//! Locks that jobs and programs share across a cluster: exclusive, shared, counted, several at once, re-entrant, in turn. As
//! `tokio::sync` has them, over a store.
//!
//! - **In turn.** Each lock is one queue, and who asked first holds first: nobody is overtaken, no writer starves.
//! - **All or nothing.** [`Locks::request`] takes several locks in one step. Whoever waits, waits only for those who asked before: requests
//!   whose owners hold nothing never wait for each other in a circle.
//! - **A lease, renewed.** A held lock is renewed by a task until [`Held`] is dropped; a process that dies loses it after the TTL.
//!   [`Held::standing`] and [`Held::lost`] tell when it could not be renewed, and [`Held::fence`] is the number by which a resource refuses
//!   whoever stalled past its lease. No lock can stop a paused process: where two at once would do harm, check the fence there.
//! - **Cancel-safe.** Dropping any future of this module leaves the queue; nothing stays held. Dropping a [`Held`] releases it, from a task of
//!   the runtime: before a program ends it calls [`Held::release`] or [`Locks::shutdown`], or others wait out the TTL. All of it needs a tokio runtime with timers,
//!   and panics outside of one.
//!
//! What is promised, what not, and why: `docs/locks.md`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cronward::StoreOptions;
//! use cronward::lock::{Locks, TryLockError};
//! use cronward::testing::{MemoryStore, SystemClock};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A service uses `cronward::open_locks("sqlite:…", …)`.
//! let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)));
//! let locks = Locks::builder(store, "node-a").build()?;
//!
//! let ledger = locks.mutex("ledger")?;
//! let held = ledger.lock().await?;
//! // A resource that keeps the largest fence that it has seen refuses a smaller one.
//! let first = held.fence();
//! let Err(TryLockError::Busy { by, .. }) = ledger.try_lock().await else { panic!("it is held") };
//! assert_eq!(by.node.as_str(), "node-a");
//! held.release().await?;
//! assert!(ledger.lock().await?.fence() > first);
//!
//! // Work that ends where the lock is lost, and leaves it when it is done.
//! let held = ledger.lock().await?;
//! tokio::select! {
//!     standing = held.lost() => eprintln!("the work is dropped: {standing:?}"),
//!     () = async { /* the work */ } => { held.release().await?; }
//! }
//!
//! // Several at once: a report shares the schema, and takes one of four slots.
//! let both = locks.request().shared("schema")?.permits("reports", 1, 4)?.lock().await?;
//! drop(both);
//! # Ok(())
//! # }
//! ```

mod client;
mod driver;
mod error;
mod held;
mod primitives;
mod report;
#[cfg(test)]
mod report_tests;
mod request;
#[cfg(test)]
mod tests;

#[doc(inline)]
pub use crate::resource::{DemandError, LockEntry, LockHolder, LockName, LockRecord, LockRelease, OwnerId};
pub use crate::service::{BuildError, ShutdownError, Standing};
pub use crate::slot::Fence;
pub use client::{Locks, LocksBuilder, Owner};
pub use error::{LockError, RequestError, TryLockError};
pub use held::Held;
pub use primitives::{Mutex, RwLock, Semaphore};
pub use request::LockRequest;
