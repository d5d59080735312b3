//! Slots that an operator opened again while no hint of it came: a hint may be lost, and a store without hints between processes has
//! none. What has ended here is looked at, a batch at a time: all of it once after hints were lost, and again and again where there
//! are none. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{CLOCK_OFF, Mono, earlier};
use crate::job::JobName;
use crate::slot::{Mark, Slot, SlotKey, SlotRecord, Verdict};
use crate::store::HEARTBEAT;

/// Slots that are looked at in one call.
const AT_ONCE: usize = 100;

/// Between the end of one round over all slots and the next, where the store tells of no reset, or did not answer all of the last one.
const PAUSE: Duration = HEARTBEAT;

/// Where the looking is.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// Set while a round goes on: the slots that are still to be looked at, or none before its first call.
    round: Option<Round>,
    /// A question is on its way.
    asked: bool,
    /// When the next round begins by itself.
    next: Option<Mono>,
    /// What was asked in the last round and not answered is asked again in the next.
    again: bool,
}

#[derive(Debug, Default)]
struct Round {
    /// The last slot that was looked at.
    after: Option<(JobName, SlotKey)>,
}

impl Resets {
    /// Hints were lost: everything is looked at, from the first slot on.
    pub(super) fn doubt_all(&mut self) {
        self.round = Some(Round::default());
    }

    /// What to look at now, of the slots that have ended here and last, by job and key. `hints`: whether the store tells of a reset.
    pub(super) fn due<'a>(
        &mut self,
        now: Mono,
        hints: bool,
        ended: impl FnOnce(Option<&(JobName, SlotKey)>, usize) -> Vec<&'a Slot>,
    ) -> Vec<Slot> {
        if self.asked {
            return Vec::new();
        }
        if self.round.is_none() && (!hints || self.again) && self.next.is_none_or(|next| next <= now) {
            self.again = false;
            self.doubt_all();
        }
        let Some(round) = &mut self.round else { return Vec::new() };
        let slots: Vec<Slot> = ended(round.after.as_ref(), AT_ONCE).into_iter().cloned().collect();
        match slots.last() {
            Some(last) => {
                round.after = Some((last.job().clone(), last.key()));
                self.asked = true;
            }
            None => {
                self.round = None;
                self.next = Some(now + PAUSE);
            }
        }
        slots
    }

    /// The store has answered, or not: what it did not answer is looked at in the next round. The slots after it are not kept waiting.
    pub(super) const fn answered(&mut self, is_answer: bool) {
        self.asked = false;
        self.again |= !is_answer;
    }
}

/// Whether an operator opened the slot after a drive of it had ended at `ended`, by the store's clock as the node knows it. A slot
/// that a store has merely forgotten is told of again by who did it.
pub(super) fn is_reset(record: &SlotRecord, ended: DateTime<Utc>) -> bool {
    let done = matches!(record.mark, Mark::Done(_))
        || record.verdict.as_ref().is_some_and(|record| record.verdict == Verdict::Done);
    !done && record.was_reset_after(earlier(ended, CLOCK_OFF))
}
