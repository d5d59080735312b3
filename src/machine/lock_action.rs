//! What the machine of a request for locks asks its driver to do, what it tells, and how it ends.

use std::time::Duration;

use crate::error::StoreError;
use crate::resource::{
    AcquireRequest, Acquired, LockExit, LockHold, LockHolder, LockRefusal, LockRelease, LockRenewal,
};
use crate::slot::Token;

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

impl LockAction {
    /// Of which request it is.
    pub const fn token(&self) -> Token {
        match self {
            Self::Acquire(request) => request.token,
            Self::Renew(hold) => hold.token,
            Self::Release(exit) => exit.token,
        }
    }
}

/// What came of a [`LockAction`].
#[derive(Debug)]
pub enum LockReply {
    /// Of [`LockAction::Acquire`].
    Acquired(Result<Acquired, StoreError>),
    /// Of [`LockAction::Renew`].
    Renewed(Result<LockRenewal, StoreError>),
    /// Of [`LockAction::Release`].
    Released(Result<LockRelease, StoreError>),
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

/// By hand, because an error cannot be copied with what caused it.
impl Clone for LockNews {
    fn clone(&self) -> Self {
        match self {
            Self::Waiting { ahead, by } => Self::Waiting { ahead: *ahead, by: by.clone() },
            Self::Held(hold) => Self::Held(hold.clone()),
            Self::InDoubt => Self::InDoubt,
            Self::Kept => Self::Kept,
            Self::Lost { to } => Self::Lost { to: to.clone() },
            Self::Busy { by, remaining } => Self::Busy { by: by.clone(), remaining: *remaining },
            Self::Refused(why) => Self::Refused(*why),
            Self::Failed(error) => Self::Failed(error.without_source()),
        }
    }
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
