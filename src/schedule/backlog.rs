//! The ended slots of one job that need a verdict: one position in the timetable, and what is known of the slots around it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Now, later};
use crate::schedule::Timetable;
use crate::slot::Slot;

/// After a slot's end, time for the last answers and wake-ups to arrive: who knows that it is done need not ask.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// How far ahead the next slot is looked for: the longest gap between two ticks of a cron expression without years, a
/// 29th of February on one day of the week.
const HORIZON: Duration = Duration::from_secs(41 * 366 * 86_400);

/// What one job still owes: where its closer stands in the timetable.
#[derive(Debug)]
pub(super) struct Backlog {
    pub(super) timetable: Timetable,
    /// When the job was taken, until it has moved on from the slot with which it began.
    pub(super) known: Option<Now>,
    /// The start of the slot from which on the slots are closed, here or by those before; none: from the first on.
    pub(super) since: Option<DateTime<Utc>>,
    /// When the cluster first knew the job; none until the registry has said so.
    pub(super) first_seen: Option<DateTime<Utc>>,
    /// From when on slots are to be closed, where some of them were skipped as older than the job.
    pub(super) wanted: Option<DateTime<Utc>>,
    /// The oldest slot that is not known to have a verdict; none when the timetable has no more.
    pub(super) head: Option<Slot>,
    pub(super) state: QuestionState,
    /// Starts of slots from `head` on that are known to be done.
    pub(super) done: BTreeSet<DateTime<Utc>>,
    /// Slots before `head` that were still running when asked.
    pub(super) running: BTreeMap<DateTime<Utc>, (Slot, QuestionState)>,
}

/// Where the question for a slot's verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionState {
    Idle,
    /// It is on its way. Never asked twice at a time: of two answers the first may be lost and have been `First`, and the
    /// second says `Already`, as if somebody else had told it.
    Asked,
    NotBefore(DateTime<Utc>),
}

impl QuestionState {
    pub(super) fn is_ready(self, now: DateTime<Utc>) -> bool {
        match self {
            Self::Idle => true,
            Self::Asked => false,
            Self::NotBefore(at) => at <= now,
        }
    }

    /// No wait that was measured by another time is kept.
    pub(super) fn hurry(&mut self) {
        if matches!(self, Self::NotBefore(_)) {
            *self = Self::Idle;
        }
    }
}

impl Backlog {
    pub(super) fn new(
        timetable: Timetable,
        (from, first_seen): (DateTime<Utc>, Option<DateTime<Utc>>),
        known: Option<Now>,
    ) -> Self {
        let head = first_owed(&timetable, from, first_seen);
        let (done, running) = (BTreeSet::new(), BTreeMap::new());
        Self {
            timetable,
            known,
            since: None,
            first_seen,
            wanted: None,
            head,
            state: QuestionState::Idle,
            done,
            running,
        }
    }

    pub(super) fn look_back(&mut self, from: DateTime<Utc>) {
        let start = current_or(&self.timetable, from);
        if self.first_seen.is_some_and(|seen| start < seen) {
            self.wanted = Some(self.wanted.map_or(start, |wanted| wanted.min(start)));
        }
        if self.head.as_ref().is_none_or(|head| start < head.start()) {
            self.head = first_owed(&self.timetable, start, self.first_seen);
            self.state = QuestionState::Idle;
        }
    }

    pub(super) fn skip_what_is_not_owed(&mut self) {
        if let Some(head) = &self.head {
            self.head = first_owed(&self.timetable, head.start(), self.first_seen);
        }
    }

    /// The job turned out to be older: what was skipped for that is closed, too.
    pub(super) fn is_older(&mut self, before: DateTime<Utc>) {
        let from = self.wanted.take().map_or(before, |wanted| wanted.min(before));
        self.look_back(from);
    }

    /// Whether the slot is still to be closed in its turn.
    pub(super) fn comes_to(&self, slot: &Slot) -> bool {
        let is_ahead = self.head.as_ref().is_some_and(|head| head.start() <= slot.start());
        is_ahead && first_owed(&self.timetable, slot.start(), self.first_seen).is_some_and(|owed| owed == *slot)
    }

    pub(super) fn is_head(&self, slot: &Slot) -> bool {
        self.head.as_ref().is_some_and(|head| head.start() == slot.start())
    }

    pub(super) fn due(&mut self, now: DateTime<Utc>) -> Vec<Slot> {
        let mut due = Vec::new();
        for (slot, state) in self.running.values_mut().filter(|(_, state)| state.is_ready(now)) {
            due.push(slot.clone());
            *state = QuestionState::Asked;
        }
        while self.head_is_over(now) && (self.head_is_done() || self.head_is_asked_for()) {
            self.advance();
        }
        if self.first_seen.is_some() && self.state.is_ready(now) && self.head_is_over(now) {
            self.state = QuestionState::Asked;
            due.extend(self.head.clone());
        }
        due
    }

    fn head_is_over(&self, now: DateTime<Utc>) -> bool {
        self.head.as_ref().is_some_and(|head| later(head.end(), GRACE) <= now)
    }

    /// It has a question of its own.
    fn head_is_asked_for(&self) -> bool {
        self.head.as_ref().is_some_and(|head| self.running.contains_key(&head.start()))
    }

    fn head_is_done(&mut self) -> bool {
        self.head.as_ref().is_some_and(|head| self.done.remove(&head.start()))
    }

    /// The oldest slot from `head` on that is not known to be done.
    pub(super) fn undone(&self) -> Option<Slot> {
        let mut slot = self.head.clone()?;
        while self.done.contains(&slot.start()) {
            slot = first_slot(&self.timetable, slot.end())?;
        }
        Some(slot)
    }

    pub(super) fn advance(&mut self) {
        self.state = QuestionState::Idle;
        self.known = None;
        let Some(head) = self.head.take() else { return };
        self.head = first_slot(&self.timetable, head.end());
        self.done = self.done.split_off(&head.end());
    }
}

/// The start of the slot that goes on at `at`; `at` itself between two slots.
pub(super) fn current_or(timetable: &Timetable, at: DateTime<Utc>) -> DateTime<Utc> {
    timetable.slot_at(at).map_or(at, |slot| slot.start())
}

fn first_slot(timetable: &Timetable, from: DateTime<Utc>) -> Option<Slot> {
    timetable.slots(from, later(from, HORIZON)).next().map(|(slot, _)| slot)
}

/// The first slot from then on with a tick that is owed: one since the cluster first knew the job.
fn first_owed(timetable: &Timetable, from: DateTime<Utc>, first_seen: Option<DateTime<Utc>>) -> Option<Slot> {
    let Some(seen) = first_seen else { return first_slot(timetable, from) };
    let slot = first_slot(timetable, from.max(current_or(timetable, seen)))?;
    if timetable.last_tick(&slot).is_some_and(|tick| tick >= seen) {
        return Some(slot);
    }
    first_slot(timetable, slot.end())
}
