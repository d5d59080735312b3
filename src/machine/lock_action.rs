//! What the machine of a request for locks asks its driver to do, what it tells, and how it ends.

use std::time::Duration;

use crate::error::StoreError;
use crate::resource::{AcquireRequest, LockExit, LockHold, LockHolder, LockRefusal, LockRelease};

/// An order to the driver. Each is answered by the `handle_*` of its name, exactly once; at most one of a kind is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum LockAction {
    /// Ask the store; answer with [`crate::machine::LockMachine::handle_acquired`].
    Acquire(AcquireRequest),
    /// Renew; answer with [`crate::machine::LockMachine::handle_renewal`].
    Renew(LockHold),
    /// Leave; answer with [`crate::machine::LockMachine::handle_released`].
    Release(LockExit),
}

/// Something worth telling.
#[derive(Debug)]
pub enum LockNews {
    /// It stands in the queues.
    Waiting {
        /// Entries in front of it.
        ahead: u32,
        /// Who holds.
        by: LockHolder,
    },
    /// It holds. Told once.
    Held(LockHold),
    /// It could not be renewed in time: another may hold by now.
    InDoubt,
    /// It is held after all: renewed after a doubt, or set again after its entries were lost.
    Kept,
    /// It is another's, or an operator took it.
    Lost {
        /// Whose, where that is known.
        to: Option<LockHolder>,
    },
    /// It does not wait, and others hold.
    Busy {
        /// Who.
        by: LockHolder,
        /// Until the soonest of them lapses, unless renewed.
        remaining: Duration,
    },
    /// It stands in no queue.
    Refused(LockRefusal),
    /// The store could not be asked for as long as the caller is patient, or never will be.
    Failed(StoreError),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEnd {
    /// The store was told, and answered so.
    Left(LockRelease),
    /// Nothing of it was ever written.
    Untouched,
    /// The store did not answer until everything of it had lapsed.
    Silent,
}
