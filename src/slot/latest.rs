//! What a job has come to lately: kept with the job and not with its slots, so that it outlasts what is kept of them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::slot::{Outcome, SlotKey, Verdict};

/// What a job has come to lately. Each part is absent until there is something to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLatest {
    /// The newest slot that is done, by a run or by an operator's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<LastSuccess>,
    /// The last end of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<LastEnd>,
    /// The slots that ended without success since the newest one that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// The newest slot that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSuccess {
    /// Its key.
    pub slot: SlotKey,
    /// When it was done, by the store's clock.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
}

/// The last end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnd {
    /// Its slot.
    pub slot: SlotKey,
    /// When it was recorded, by the store's clock.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// What came of it.
    pub outcome: Outcome,
}

/// Slots that ended without success, and no newer one is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The oldest of them.
    pub since: SlotKey,
    /// The newest of them.
    pub last: SlotKey,
    /// Its verdict: failed or missed.
    pub verdict: Verdict,
    /// How many they are, each counted when it was newer than those before it.
    pub slots: u32,
}

impl JobLatest {
    /// The slot is done.
    pub(crate) fn done(&mut self, slot: SlotKey, at: DateTime<Utc>) {
        if self.success.is_none_or(|newest| newest.slot < slot) {
            self.success = Some(LastSuccess { slot, at });
        }
        self.failing = match self.failing {
            Some(failing) if failing.last > slot => {
                // What was between the two is not kept: the newest is known to have failed.
                let newest = Failing { since: failing.last, slots: 1, ..failing };
                Some(if failing.since <= slot { newest } else { failing })
            }
            _ => None,
        };
    }

    /// A run of the slot has ended.
    pub(crate) fn ended(&mut self, slot: SlotKey, at: DateTime<Utc>, outcome: Outcome) {
        if self.end.is_none_or(|last| last.at <= at) {
            self.end = Some(LastEnd { slot, at, outcome });
        }
    }

    /// The slot has got its verdict.
    pub(crate) fn closed(&mut self, slot: SlotKey, verdict: Verdict) {
        if !verdict.is_failure() || self.success.is_some_and(|newest| newest.slot >= slot) {
            return;
        }
        self.failing = Some(match self.failing {
            None => Failing { since: slot, last: slot, verdict, slots: 1 },
            Some(failing) if failing.last < slot => {
                Failing { last: slot, verdict, slots: failing.slots.saturating_add(1), ..failing }
            }
            Some(failing) => Failing { since: failing.since.min(slot), ..failing },
        });
    }

    /// An operator opened the slot again, which had ended without success.
    pub(crate) fn reopened(&mut self, slot: SlotKey) {
        let Some(failing) = self.failing.filter(|failing| (failing.since..=failing.last).contains(&slot)) else { return };
        let left = failing.slots.saturating_sub(1);
        let last = if failing.last == slot { failing.since } else { failing.last };
        self.failing = (left > 0).then_some(Failing { last, slots: left, ..failing });
    }
}
