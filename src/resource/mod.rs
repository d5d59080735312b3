//! The words of resource locks: what is asked of them, who asks, what is held, and what a store answers. Words only; the rules are
//! in `store::rules::lock`, the promise in `docs/locks.md`.

mod answer;
mod deadlock;
mod demand;
mod hold;
mod record;

pub use crate::job::LockName;
pub use answer::{Acquired, LockHint, LockHintError, LockRefusal, LockRelease, LockRenewal};
pub use deadlock::{DeadlockStep, deadlocks};
pub use demand::{Demand, DemandError, DemandTextError, Demands, MOST_DEMANDS, MOST_PERMITS, UNLIMITED};
pub(crate) use hold::attempt_label;
pub use hold::{AcquireRequest, LONGEST_LABEL, LockExit, LockHold, LockPlace, OwnerId};
#[cfg(feature = "daemon")]
pub(crate) use record::weigh;
pub use record::{LockEntry, LockHolder, LockRecord, MOST_ENTRIES};
