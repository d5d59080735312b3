//! One hour of one job, as the grid shows it. Nothing is read here.

use serde::Serialize;

use crate::admin::IdleReason;
use crate::slot::SlotState;

/// What an hour of a job has come to. The order is that of what needs a person: of a job with several slots in an hour the first of
/// these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// The attempts are used up and none succeeded.
    Failed,
    /// It is over and was not done.
    Missed,
    /// An attempt did not succeed and there are attempts left.
    Retrying,
    /// A node holds its lease.
    Running,
    /// It is due, and nobody has begun.
    Pending,
    /// Nobody has looked yet.
    NotRead,
    /// The job was paused.
    Skipped,
    /// A run succeeded.
    Done,
    /// The job is disabled in the file, and nobody ran the slot.
    Disabled,
    /// It is older than what is kept, or than the job, or nobody was to run it.
    Unknown,
    /// There is no tick in this hour, or none yet.
    NotDue,
}

impl From<SlotState> for CellState {
    fn from(state: SlotState) -> Self {
        match state {
            SlotState::Pending => Self::Pending,
            SlotState::Running => Self::Running,
            SlotState::Retrying => Self::Retrying,
            SlotState::Done => Self::Done,
            SlotState::Failed => Self::Failed,
            SlotState::Missed => Self::Missed,
            SlotState::Skipped => Self::Skipped,
        }
    }
}

impl CellState {
    /// Of a slot; where it is neither due nor missed, for that reason.
    pub(crate) fn of(state: SlotState, idle: Option<IdleReason>) -> Self {
        match idle {
            Some(IdleReason::NoTick | IdleReason::NotDue(_)) => Self::NotDue,
            Some(IdleReason::NotOwed(_) | IdleReason::NotKnown | IdleReason::Forgotten) => Self::Unknown,
            Some(IdleReason::Disabled) => Self::Disabled,
            None => Self::from(state),
        }
    }

    /// The word used on screens and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Retrying => "retrying",
            Self::Running => "running",
            Self::Pending => "pending",
            Self::NotRead => "not_read",
            Self::Skipped => "skipped",
            Self::Done => "done",
            Self::Disabled => "disabled",
            Self::Unknown => "unknown",
            Self::NotDue => "not_due",
        }
    }

    /// Whether it may become another without anybody saying so.
    pub(super) const fn may_change(self) -> bool {
        !matches!(self, Self::Disabled | Self::Unknown | Self::NotRead | Self::NotDue)
    }

    /// Whether the slot was to be done by now, as far as is known: of one that nobody has read, nothing is.
    const fn is_due(self) -> bool {
        !matches!(self, Self::NotDue | Self::Unknown | Self::Disabled | Self::NotRead)
    }
}

/// One hour of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HourCell {
    /// The worst of its slots.
    pub state: CellState,
    /// Attempts that count, of the slot that the state is of.
    pub attempts: u16,
    /// Slots that are done.
    pub done: u16,
    /// Slots that are due, or were, of those that were read.
    pub due: u16,
    /// Slots that were not read yet: of those nothing is known.
    pub unread: u16,
}

impl Default for HourCell {
    /// An hour without a tick.
    fn default() -> Self {
        Self { state: CellState::NotDue, attempts: 0, done: 0, due: 0, unread: 0 }
    }
}

impl HourCell {
    /// With one slot more.
    pub(super) fn add(&mut self, state: CellState, attempts: u16) {
        if (state, self.attempts) < (self.state, attempts) {
            (self.state, self.attempts) = (state, attempts);
        }
        self.done = self.done.saturating_add(u16::from(state == CellState::Done));
        self.due = self.due.saturating_add(u16::from(state.is_due()));
        self.unread = self.unread.saturating_add(u16::from(state == CellState::NotRead));
    }

    /// With all the slots of another.
    pub(super) fn join(&mut self, other: &Self) {
        if other.state < self.state {
            (self.state, self.attempts) = (other.state, other.attempts);
        }
        self.done = self.done.saturating_add(other.done);
        self.due = self.due.saturating_add(other.due);
        self.unread = self.unread.saturating_add(other.unread);
    }

    /// Whether it is told by counts: it has more than one slot, of which at least one was read.
    pub(crate) const fn counts(&self) -> bool {
        self.due > 1 || (self.due == 1 && self.unread > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_nobody_has_read_counts_neither_as_done_nor_as_due() {
        let mut hour = HourCell::default();
        hour.add(CellState::Done, 1);
        hour.add(CellState::Done, 1);
        (0..52).for_each(|_| hour.add(CellState::NotRead, 0));
        assert_eq!(hour, HourCell { state: CellState::NotRead, attempts: 0, done: 2, due: 2, unread: 52 });
        hour.add(CellState::Missed, 0);
        assert_eq!((hour.state, hour.done, hour.due, hour.unread), (CellState::Missed, 2, 3, 52));
        hour.join(&HourCell { unread: 3, ..HourCell::default() });
        assert_eq!((hour.due, hour.unread, hour.counts()), (3, 55, true));
        let one = |due, unread| HourCell { due, unread, ..HourCell::default() }.counts();
        assert_eq!([one(0, 0), one(0, 9), one(1, 0), one(1, 1), one(2, 0)], [false, false, false, true, true]);
    }
}
