//! What an event is about: the node or a slot, which attempt, which job.

use crate::event::{Event, LockGrant, LockLeave, LockLoss, LockWait, Plan};
use crate::job::JobName;
use crate::slot::Attempt;

impl Event {
    /// Whether it happened at a slot; otherwise to the node.
    pub const fn is_of_slot(&self) -> bool {
        match self {
            Self::Started { .. }
            | Self::Planned(_)
            | Self::Reloaded { .. }
            | Self::ReloadRefused { .. }
            | Self::StoreReached { .. }
            | Self::StoreLost { .. }
            | Self::RegistrationRefused { .. }
            | Self::ClockOff { .. }
            | Self::Namesake { .. }
            | Self::ClusterWasDown { .. }
            | Self::StoreForgot { .. }
            | Self::DoneAgain { .. }
            | Self::Overloaded { .. }
            | Self::StartsPaused { .. }
            | Self::StartsResumed
            | Self::StoreFailing { .. }
            | Self::StoreFailingOver { .. }
            | Self::SlotsMissed { .. }
            | Self::Gap { .. }
            | Self::Draining { .. }
            | Self::Stopped
            | Self::Fault { .. }
            | Self::Dropped { .. }
            | Self::Unknown => false,
            Self::ClaimAnswered { .. }
            | Self::Granted { .. }
            | Self::RunStarted { .. }
            | Self::Unstarted { .. }
            | Self::RunEnded { .. }
            | Self::RunTimedOut { .. }
            | Self::RenewalAnswered { .. }
            | Self::LeaseInDoubt { .. }
            | Self::LeaseLost { .. }
            | Self::LeaseRestored { .. }
            | Self::Settled { .. }
            | Self::Overtaken { .. }
            | Self::AttemptsUsedUp { .. }
            | Self::SettlementGivenUp { .. }
            | Self::StartDeadlinePassed
            | Self::Shed
            | Self::StoreFailed { .. }
            | Self::LockWaiting(_)
            | Self::LockHeld(_)
            | Self::LockLost(_)
            | Self::LockLeft(_)
            | Self::Closed { .. } => true,
        }
    }

    /// The attempt at a slot that it is about, where it is about one; 0 without a guard.
    pub const fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Granted { attempt, .. }
            | Self::RunStarted { attempt, .. }
            | Self::Unstarted { attempt, .. }
            | Self::RunEnded { attempt, .. }
            | Self::RunTimedOut { attempt }
            | Self::LeaseInDoubt { attempt, .. }
            | Self::LeaseLost { attempt, .. }
            | Self::LeaseRestored { attempt }
            | Self::Settled { attempt, .. }
            | Self::Overtaken { attempt, .. }
            | Self::SettlementGivenUp { attempt, .. }
            | Self::LockWaiting(LockWait { attempt, .. })
            | Self::LockHeld(LockGrant { attempt, .. })
            | Self::LockLost(LockLoss { attempt, .. })
            | Self::LockLeft(LockLeave { attempt, .. }) => Some(*attempt),
            _ => None,
        }
    }

    /// The job that it is about, where it is about one and about no slot of it.
    pub const fn job(&self) -> Option<&JobName> {
        match self {
            Self::Planned(Plan { job, .. }) | Self::SlotsMissed { job, .. } => job.as_ref(),
            _ => None,
        }
    }
}
