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
    /// The newest of them; the oldest, where the newest was opened again.
    pub last: SlotKey,
    /// The verdict of the newest that was counted: failed or missed.
    pub verdict: Verdict,
    /// How many they are. Where an older slot than the newest of them is done late, those between the two are not counted any more.
    pub slots: u32,
}

/// Each is written down with the step that it tells of, and only where that was taken: a repetition finds its record there.
impl JobLatest {
    /// The slot is done. It stays the newest that was, also where an operator opens it again.
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

    /// The slot has got its verdict. Verdicts come in any order: those of slots that were over long ago, at once.
    pub(crate) fn closed(&mut self, slot: SlotKey, verdict: Verdict) {
        if !verdict.is_failure() || self.success.is_some_and(|newest| newest.slot >= slot) {
            return;
        }
        self.failing = Some(match self.failing {
            None => Failing { since: slot, last: slot, verdict, slots: 1 },
            // What was kept of the slot is older than the retention, and it was closed once more.
            Some(failing) if failing.last == slot => Failing { verdict, ..failing },
            Some(failing) => {
                let slots = failing.slots.saturating_add(1);
                let newest = if failing.last < slot { Failing { last: slot, verdict, ..failing } } else { failing };
                Failing { since: failing.since.min(slot), slots, ..newest }
            }
        });
    }

    /// An operator opened the slot again, which had ended without success.
    pub(crate) fn reopened(&mut self, slot: SlotKey) {
        let Some(failing) = self.failing.filter(|failing| failing.since <= slot) else { return };
        let left = failing.slots.saturating_sub(1);
        let last = if failing.last == slot { failing.since } else { failing.last };
        self.failing = (left > 0).then_some(Failing { last, slots: left, ..failing });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(hour: u32) -> SlotKey {
        format!("2026-11-21T{hour:02}Z").parse().unwrap()
    }

    fn at(hour: u32) -> DateTime<Utc> {
        key(hour).start()
    }

    /// Slots of these hours that ended without success, in this order.
    fn failed(hours: &[u32]) -> JobLatest {
        let mut latest = JobLatest::default();
        hours.iter().for_each(|hour| latest.closed(key(*hour), Verdict::Failed));
        latest
    }

    fn failing(latest: &JobLatest) -> Option<(SlotKey, SlotKey, u32)> {
        latest.failing.map(|failing| (failing.since, failing.last, failing.slots))
    }

    #[test]
    fn what_failed_is_counted_once_each_in_whatever_order_it_is_told() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [1, 3, 2]] {
            assert_eq!(failing(&failed(&order)), Some((key(1), key(3), 3)), "{order:?}");
        }
        assert_eq!(failing(&failed(&[1, 2, 2])), Some((key(1), key(2), 2)), "told twice");
        let mut missed = failed(&[2]);
        missed.closed(key(3), Verdict::Missed);
        missed.closed(key(1), Verdict::Failed);
        assert_eq!(missed.failing.unwrap().verdict, Verdict::Missed, "of the newest");
    }

    #[test]
    fn what_is_skipped_or_done_is_no_failure() {
        let mut latest = JobLatest::default();
        latest.closed(key(1), Verdict::Skipped);
        latest.closed(key(2), Verdict::Done);
        assert_eq!(latest, JobLatest::default());
        let mut latest = failed(&[1]);
        latest.closed(key(2), Verdict::Skipped);
        assert_eq!(failing(&latest), Some((key(1), key(1), 1)), "nor does it end one");
    }

    #[test]
    fn the_newest_success_counts_and_ends_what_is_not_newer() {
        let mut latest = failed(&[1, 2]);
        latest.done(key(3), at(4));
        assert_eq!((latest.success, latest.failing), (Some(LastSuccess { slot: key(3), at: at(4) }), None));
        latest.done(key(3), at(5));
        latest.done(key(1), at(6));
        assert_eq!(
            latest.success,
            Some(LastSuccess { slot: key(3), at: at(4) }),
            "neither a repetition nor an older one"
        );
        latest.closed(key(2), Verdict::Missed);
        assert_eq!(latest.failing, None, "a verdict that comes late");
        latest.closed(key(4), Verdict::Failed);
        assert_eq!(failing(&latest), Some((key(4), key(4), 1)));
        latest.done(key(4), at(7));
        assert_eq!(latest.failing, None, "the last of them was done after all");
    }

    #[test]
    fn an_older_slot_that_is_done_late_leaves_the_newer_ones_failing() {
        let mut latest = failed(&[2, 3, 4]);
        latest.done(key(1), at(5));
        assert_eq!(failing(&latest), Some((key(2), key(4), 3)), "older than all of them");
        latest.done(key(3), at(5));
        assert_eq!(failing(&latest), Some((key(4), key(4), 1)));
        latest.done(key(3), at(5));
        assert_eq!(failing(&latest), Some((key(4), key(4), 1)), "a repetition");
    }

    #[test]
    fn a_reset_takes_back_one_and_the_next_verdict_counts_it_again() {
        for hour in 1..=3 {
            let mut latest = failed(&[1, 2, 3]);
            latest.reopened(key(hour));
            assert_eq!(latest.failing.unwrap().slots, 2, "{hour}");
            latest.closed(key(hour), Verdict::Failed);
            assert_eq!(failing(&latest), Some((key(1), key(3), 3)), "{hour}");
        }
        let mut latest = failed(&[1, 2, 3]);
        for (hour, left) in [(3, Some(2)), (2, Some(1)), (1, None)] {
            latest.reopened(key(hour));
            assert_eq!(latest.failing.map(|failing| failing.slots), left);
        }
        let mut latest = failed(&[2]);
        latest.reopened(key(1));
        assert_eq!(failing(&latest), Some((key(2), key(2), 1)), "it was not counted");
    }

    #[test]
    fn the_last_end_is_the_last_by_the_stores_clock() {
        let mut latest = JobLatest::default();
        latest.ended(key(2), at(3), Outcome::Failure);
        latest.ended(key(1), at(4), Outcome::Success);
        latest.ended(key(3), at(3), Outcome::Timeout);
        assert_eq!(latest.end, Some(LastEnd { slot: key(1), at: at(4), outcome: Outcome::Success }));
    }

    #[test]
    fn its_json_is_as_short_as_what_there_is_to_say() {
        let json = |latest: &JobLatest| serde_json::to_string(latest).unwrap();
        assert_eq!(json(&JobLatest::default()), "{}");
        let mut latest = failed(&[1, 2]);
        latest.ended(key(2), at(3), Outcome::LostLease);
        let text = json(&latest);
        assert_eq!(
            text,
            "{\"end\":{\"slot\":\"2026-11-21T02Z\",\"at_ms\":1795230000000,\"outcome\":\"lost_lease\"},\
             \"failing\":{\"since\":\"2026-11-21T01Z\",\"last\":\"2026-11-21T02Z\",\"verdict\":\"failed\",\"slots\":2}}"
        );
        assert_eq!(serde_json::from_str::<JobLatest>(&text).unwrap(), latest);
    }
}
