//! What becomes of locks: of those that a slot's runs hold, and of those that a service holds, as attempt 0 of no slot.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::json::{is_false, seconds};
use crate::job::NodeName;
use crate::resource::{Demand, LockHolder, LockRelease};
use crate::slot::{Attempt, Fence};

/// An attempt stands in the queues: others hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockWait {
    /// Which attempt.
    pub attempt: Attempt,
    /// What it asked for.
    pub locks: Vec<Demand>,
    /// Entries in front of it.
    pub ahead: u32,
    /// On which node somebody holds.
    pub by: NodeName,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by_label: String,
    /// Since when, by the store's clock; absent where that one was not told yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

/// An attempt holds its locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockGrant {
    /// Which attempt.
    pub attempt: Attempt,
    /// What it holds.
    pub locks: Vec<Demand>,
    /// Their one number.
    pub fence: Fence,
    /// How long they were waited for.
    #[serde(rename = "waited_s", with = "seconds")]
    pub waited: Duration,
    /// It held them before, and was in doubt, or the store had forgotten them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

/// Locks of an attempt are another's, or may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockLoss {
    /// Which attempt.
    pub attempt: Attempt,
    /// The node of whoever holds now, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<NodeName>,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to_label: String,
    /// They could not be renewed in time, and nobody said that they are another's.
    pub in_doubt: bool,
    /// Whether the command is being killed.
    pub killing: bool,
    /// The command was not started yet: nothing overlaps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unstarted: bool,
    /// What was asked for; empty for an attempt at a slot, whose grant names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Demand>,
}

/// An attempt has left its locks: they are free, or it waits for them no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockLeave {
    /// Which attempt.
    pub attempt: Attempt,
    /// What the store answered.
    pub answer: LeaveAnswer,
    /// The node of whoever held them meanwhile, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<NodeName>,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by_label: String,
    /// Why its command was not started; absent where its run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was asked for; empty for an attempt at a slot, whose grant names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Demand>,
}

/// What leaving came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeaveAnswer {
    /// It was there until then.
    Released,
    /// It had lapsed, and nobody whom it excludes was granted since.
    Expired,
    /// It had lapsed, and somebody was granted since: two may have worked at once.
    Overtaken,
    /// The store did not answer until everything had lapsed.
    Untold,
    /// A word of a later version, in a journal.
    #[serde(other)]
    Unknown,
}

impl LockWait {
    /// Behind `ahead` entries, while somebody holds.
    pub fn behind(attempt: Attempt, locks: Vec<Demand>, ahead: u32, by: LockHolder) -> Self {
        let since = by.fence.and_then(Fence::instant);
        Self { attempt, locks, ahead, by: by.node, by_label: by.label, since }
    }
}

impl LockGrant {
    /// After having waited so long.
    pub const fn after(attempt: Attempt, locks: Vec<Demand>, fence: Fence, waited: Duration, again: bool) -> Self {
        Self { attempt, locks, fence, waited, again }
    }
}

impl LockLoss {
    /// To whoever holds them now.
    pub fn to(attempt: Attempt, to: Option<LockHolder>, killing: bool) -> Self {
        let (to, to_label) = to.map(|to| (to.node, to.label)).unzip();
        let (to_label, locks) = (to_label.unwrap_or_default(), Vec::new());
        Self { attempt, to, to_label, in_doubt: false, killing, unstarted: false, locks }
    }

    /// Without an answer.
    pub const fn in_doubt(attempt: Attempt, killing: bool) -> Self {
        let to_label = String::new();
        Self { attempt, to: None, to_label, in_doubt: true, killing, unstarted: false, locks: Vec::new() }
    }

    /// Of these locks, which no attempt names.
    #[must_use]
    pub fn of(self, locks: Vec<Demand>) -> Self {
        Self { locks, ..self }
    }

    /// Of an attempt whose command was not started yet.
    #[must_use]
    pub fn before_the_start(self, unstarted: bool) -> Self {
        Self { unstarted, ..self }
    }
}

impl LockLeave {
    /// With this answer; none where there was none.
    pub fn answered(attempt: Attempt, answer: Option<LockRelease>, why: Option<String>) -> Self {
        let (answer, by) = match answer {
            Some(LockRelease::Released) => (LeaveAnswer::Released, None),
            Some(LockRelease::Expired) => (LeaveAnswer::Expired, None),
            Some(LockRelease::Overtaken { by }) => (LeaveAnswer::Overtaken, by),
            None => (LeaveAnswer::Untold, None),
        };
        let (by, by_label) = by.map(|by| (by.node, by.label)).unzip();
        Self { attempt, answer, by, by_label: by_label.unwrap_or_default(), why, locks: Vec::new() }
    }

    /// Of these locks, which no attempt names.
    #[must_use]
    pub fn of(self, locks: Vec<Demand>) -> Self {
        Self { locks, ..self }
    }
}

impl LeaveAnswer {
    /// The word used in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Overtaken => "overtaken",
            Self::Untold => "untold",
            Self::Unknown => "unknown",
        }
    }
}

/// What an event names, as people write it.
pub(crate) fn lock_names(locks: &[Demand]) -> String {
    locks.iter().map(Demand::to_string).collect::<Vec<_>>().join(", ")
}
