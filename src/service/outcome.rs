//! What came of a call of [`crate::service::Guard::run`].

use std::time::Duration;

use crate::drive::{Account, RunAccount};
use crate::error::ErrorKind;
use crate::job::{JobName, NodeName};
use crate::reply::ClaimAnswer;
use crate::slot::{Attempt, Fence, Slot};

/// What came of it. That somebody else does the work is no error.
#[derive(Debug)]
#[must_use = "the work may have been skipped, or have failed"]
#[non_exhaustive]
pub enum RunOutcome<T, E> {
    /// The work ran here and succeeded.
    Done {
        /// What it made.
        value: T,
        /// Its run.
        run: Run,
    },
    /// The work ran here and failed, the last time if it was tried more than once.
    Failed {
        /// Its error.
        error: E,
        /// Its last run.
        run: Run,
        /// What the store said of the slot afterwards, if it was asked again: another process may have done it meanwhile.
        then: Option<Skipped>,
    },
    /// The work was stopped before it had ended; its future was dropped, or it ended when it was asked to.
    Stopped {
        /// Why.
        why: Stopped,
        /// Its run.
        run: Run,
    },
    /// The work was not started here.
    Skipped(Skipped),
}

/// One run of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Which attempt of the slot.
    pub attempt: Attempt,
    /// Its fence.
    pub fence: Fence,
    /// How long it took.
    pub duration: Option<Duration>,
    /// Its lease was lost or in doubt while it ran, or another attempt was granted meanwhile: two runs may have overlapped.
    pub overlapped: bool,
    /// The store knows how it ended. If not, the slot may be run again.
    pub recorded: bool,
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// Its timeout passed.
    Timeout,
    /// Its lease was lost or in doubt, and the policy is to stop.
    LeaseLost,
    /// Nothing could be started any more once the store had granted it; the attempt was given back.
    TooLate,
    /// The guard was shut down ([`Guard::shutdown`](crate::service::Guard::shutdown)); the attempt was given back.
    ShutDown,
}

/// Why the work was not started here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skipped {
    /// Another process holds the slot.
    Held {
        /// Its node.
        by: Option<NodeName>,
    },
    /// The slot is done.
    Done {
        /// The node that did it, or the operator who said so.
        by: Option<NodeName>,
    },
    /// The attempts are used up.
    Exhausted,
    /// An attempt failed and the wait after it is not over.
    Backoff,
    /// An operator paused the job.
    Paused,
    /// Another slot of the job still runs.
    Blocked {
        /// The node that runs it.
        by: Option<NodeName>,
    },
    /// The slot has not begun, by the store's clock.
    Early,
    /// The slot is over, by the store's clock.
    Closed,
    /// The store granted it so late that nothing could be started any more, and the attempt was given back: the slot had ended
    /// meanwhile, for example.
    TooLate,
}

/// Why nothing is known of the slot. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The store could not be asked, or refuses.
    #[error("{slot} was not started: {message}")]
    Store {
        /// The slot.
        slot: Slot,
        /// Which kind; [`ErrorKind`] tells whether to try again.
        kind: ErrorKind,
        /// The store's error, in one line.
        message: String,
    },
    /// The slot is another job's.
    #[error("{slot} is no slot of job {job}")]
    Foreign {
        /// The slot.
        slot: Slot,
        /// The guard's job.
        job: JobName,
    },
    /// No slot of the job is current: its first tick has not come.
    #[error("job {job} has no slot now")]
    NoSlot {
        /// The guard's job.
        job: JobName,
    },
    /// The guard was shut down, or is shutting down ([`Guard::shutdown`](crate::service::Guard::shutdown)).
    #[error("{slot} was not started: the guard is shut down")]
    ShutDown {
        /// The slot.
        slot: Slot,
    },
    /// The runtime shut down under the guard. The lease lapses by itself.
    #[error("{slot}: the runtime shut down before the slot was settled")]
    Abandoned {
        /// The slot.
        slot: Slot,
    },
}

impl<T, E> RunOutcome<T, E> {
    /// Whether the work ran here and succeeded.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// What the work made, if it ran here and succeeded.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Done { value, .. } => Some(value),
            Self::Failed { .. } | Self::Stopped { .. } | Self::Skipped(_) => None,
        }
    }

    /// The run that was made here, if one was.
    pub const fn last_run(&self) -> Option<&Run> {
        match self {
            Self::Done { run, .. } | Self::Failed { run, .. } | Self::Stopped { run, .. } => Some(run),
            Self::Skipped(_) => None,
        }
    }
}

impl From<&RunAccount> for Run {
    fn from(run: &RunAccount) -> Self {
        Self {
            attempt: run.attempt,
            fence: run.fence,
            duration: run.duration,
            overlapped: !run.lost.is_empty(),
            recorded: run.settled,
        }
    }
}

impl Skipped {
    /// From the last answer to a claim; none where that was a grant, or there was no answer.
    pub(super) fn of(account: &Account) -> Option<Self> {
        let by = account.by.clone();
        Some(match account.answer? {
            ClaimAnswer::Held => Self::Held { by },
            ClaimAnswer::Done => Self::Done { by },
            ClaimAnswer::Exhausted => Self::Exhausted,
            ClaimAnswer::Backoff => Self::Backoff,
            ClaimAnswer::Paused => Self::Paused,
            ClaimAnswer::Blocked => Self::Blocked { by },
            ClaimAnswer::Early => Self::Early,
            ClaimAnswer::Closed => Self::Closed,
            ClaimAnswer::Claimed | ClaimAnswer::Unknown => return None,
        })
    }
}
