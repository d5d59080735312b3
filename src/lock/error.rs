//! Why a lock is not held. That others hold it is no error of whoever waits, and is not one with a store that is away.

use std::time::Duration;

use crate::job::NameError;
use crate::resource::{DemandError, LockHolder, LockRefusal};
use crate::store::StoreError;

/// Why a request for locks failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The store could not be asked, or did not answer for as long as [`crate::lock::LocksBuilder::store_wait`] allows. Nothing is held.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The owner holds one of the locks already, and could have the rest only once others leave: they may be waiting for that owner.
    #[error("the owner holds a lock of the request already, and would wait for itself")]
    WouldWaitForItself,
    /// Too many stand in the queue.
    #[error("the queue is full")]
    Full,
    /// An operator took the request out of the queue.
    #[error("the request was taken out of the queue")]
    Evicted,
    /// It can never be granted.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// What was held is not held any more ([`Held::downgrade`](crate::lock::Held::downgrade)).
    #[error("the lock was lost")]
    Lost,
    /// The client was shut down, or is shutting down ([`Locks::shutdown`](crate::lock::Locks::shutdown)). Nothing is held.
    #[error("the client for locks is shut down")]
    ShutDown,
    /// The runtime ended before the store had answered.
    #[error("the runtime is shutting down")]
    Abandoned,
}

/// Why a lock is not held at once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryLockError {
    /// Others hold it, or asked before. Nothing was written.
    #[error("held by {}", by.node)]
    Busy {
        /// Who holds.
        by: LockHolder,
        /// Until the soonest of those in front lapses, unless it is renewed.
        remaining: Duration,
    },
    /// It could not be found out.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// A name or a demand that no lock has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It can never be granted.
    #[error(transparent)]
    Demand(#[from] DemandError),
}

impl From<LockRefusal> for LockError {
    fn from(refusal: LockRefusal) -> Self {
        match refusal {
            LockRefusal::WaitsForItself => Self::WouldWaitForItself,
            LockRefusal::Full => Self::Full,
            LockRefusal::Spent => Self::Evicted,
        }
    }
}

impl From<TryLockError> for LockError {
    /// Whoever waits is never told that others hold; no rule comes here with that.
    fn from(error: TryLockError) -> Self {
        match error {
            TryLockError::Lock(error) => error,
            TryLockError::Busy { .. } => Self::Abandoned,
        }
    }
}
