//! What a job has come to lately, as a program reads it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::slot::{JobLatest, Outcome, Verdict};

/// What a job has come to lately: part of `jobs --json` and `show --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatestView {
    /// The newest slot that is done; null until there is one.
    pub success: Option<SuccessView>,
    /// The last end of a run; null until there is one.
    pub end: Option<EndView>,
    /// The slots that ended without success since the newest one that is done; null when there are none.
    pub failing: Option<FailingView>,
}

/// The newest slot that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuccessView {
    /// Its key.
    pub slot: String,
    /// When it was done, by the store's clock.
    pub at: DateTime<Utc>,
}

/// The last end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndView {
    /// The key of its slot.
    pub slot: String,
    /// When it was recorded, by the store's clock.
    pub at: DateTime<Utc>,
    /// `success`, `failure`, `timeout`, `killed`, `lost_lease`, `crashed` or `given_back`.
    pub outcome: Outcome,
}

/// Slots that ended without success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailingView {
    /// The key of the oldest of them.
    pub since: String,
    /// The key of the newest of them.
    pub last: String,
    /// Its verdict: `failed` or `missed`.
    pub verdict: Verdict,
    /// How many they are.
    pub slots: u32,
}

impl LatestView {
    /// The view of what a store keeps.
    pub fn of(latest: &JobLatest) -> Self {
        Self {
            success: latest.success.map(|done| SuccessView { slot: done.slot.to_string(), at: done.at }),
            end: latest.end.map(|end| EndView { slot: end.slot.to_string(), at: end.at, outcome: end.outcome }),
            failing: latest.failing.map(|failing| FailingView {
                since: failing.since.to_string(),
                last: failing.last.to_string(),
                verdict: failing.verdict,
                slots: failing.slots,
            }),
        }
    }
}
