//! The guard for a Rust service: of all the processes that call [`Guard::run`] for a slot, one does the work.
//!
//! It is the daemon's own machine and ledger: slots, attempts, fences and records are shared with `cronward run`, `cronward
//! exec` and every listing. The service keeps its own scheduler and calls [`Guard::run_current`] at each of its ticks, or
//! [`Guard::run`] with the slot of the instant that it is told. [`Guard::connect`] has defaults for all but the store and the job;
//! [`Guard::builder`] takes the rest.
//!
//! ```text
//!  Guard::run ── starts ──▶ a task of its own: drives the slot, renews the lease
//!      ▲                                │ started, asked to end, killed
//!      └──── the work, in the caller's task ◀┘
//! ```
//!
//! - **The work runs in the caller's task**, so it may borrow and need not be `Send`. The lease is renewed in a task of its
//!   own: on a runtime with more than one thread a work that computes for long starves no renewal.
//! - **A lease that is lost.** [`Hold::standing`] reports the loss, whatever the policy. With [`OnLost::Continue`] (the default: a
//!   repeated run is better than none) nothing else happens. With [`OnLost::Kill`] the work is asked to end
//!   ([`Hold::cancelled`]) in time, and its future is dropped when the lease can no longer be trusted. Neither stops a work whose
//!   process or runtime stands still: afterwards the work goes on until its next `await`, perhaps beside another process. Such a
//!   work asks [`Hold::standing`] before each step, and the resource checks [`Hold::fence`].
//! - **A future that is dropped** stops at its next `await`, and what it has spawned goes on: tie that to [`Hold::token`].
//! - **Dropping the future of [`Guard::run`]** drops the work; a task of the runtime releases the lease and refunds the attempt.
//! - **Before the process ends** [`Guard::shutdown`] asks the works to end, and waits until the store knows what became of them.
//! - **A panic of the work** is a failed attempt, is recorded as one, and goes on in the caller.
//!
//! Nothing here plans, starts a process or reads a file.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use cronward::testing::{ManualClock, MemoryStore};
//! use cronward::{Guard, RunOutcome, Skipped, StoreOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A service uses `cronward::open("redis://…", …)` and leaves the clock alone.
//! let clock = ManualClock::at("2026-11-21T14:10:00Z".parse()?);
//! let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
//! let guard = |node| {
//!     Guard::builder(store.clone(), "hourly-push", node).max_attempts(3).clock(Arc::new(clock.clone())).build()
//! };
//! let (a, b) = (guard("a")?, guard("b")?);
//!
//! let done = a.run_current(|hold| async move {
//!     // A resource that remembers the largest fence refuses an older run.
//!     Ok::<_, std::io::Error>(hold.fence().0)
//! });
//! let RunOutcome::Done { value, run } = done.await? else { panic!("it was free") };
//! assert_eq!((value, run.attempt, run.recorded), (1_795_269_600_001, 1, true));
//!
//! // Another process, in the same hour: the work is done.
//! let again = b.run_current(|_| async { Ok::<_, std::io::Error>(()) }).await?;
//! assert!(matches!(again, RunOutcome::Skipped(Skipped::Done { .. })));
//!
//! // The next hour is another slot.
//! clock.advance(Duration::from_secs(3_600));
//! let next = b.run_current(|_| async { Ok::<_, std::io::Error>(()) }).await?;
//! assert!(next.is_done());
//! # Ok(())
//! # }
//! ```

mod builder;
mod guard;
mod hold;
mod leaving;
mod look_back;
#[cfg(test)]
mod look_back_tests;
mod outcome;
pub(crate) mod shutdown;
#[cfg(test)]
mod shutdown_tests;
#[cfg(test)]
mod standing_tests;
#[cfg(test)]
mod tests;

#[doc(inline)]
pub use crate::job::OnLost;
#[doc(inline)]
pub use crate::observe::{FanOut, LogObserver, Observer};
#[doc(inline)]
pub use crate::schedule::ScheduleError;
pub use builder::{BuildError, GuardBuilder};
pub use guard::Guard;
pub use hold::{Hold, Standing};
pub use outcome::{GuardError, Run, RunOutcome, Skipped, Stopped};
pub use shutdown::ShutdownError;
