//! One job's place among its slots: the oldest one that is not known to have a verdict, and those before it that were still
//! running when asked. Pure. Which answer of the store means what is the closer's to say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::schedule::Timetable;
use crate::slot::Slot;

/// After a slot's end, time for the last answers and wake-ups to arrive: who knows that it is done need not ask.
const GRACE: Duration = Duration::from_secs(1);

/// How far ahead the next slot is looked for: the longest gap between two ticks of a cron expression without years, a
/// 29th of February on one day of the week.
const HORIZON: Duration = Duration::from_secs(41 * 366 * 86_400);

#[derive(Debug)]
pub(super) struct Place {
    pub(super) timetable: Timetable,
    /// The oldest slot that is not known to have a verdict; none when the timetable has no more.
    pub(super) head: Option<Slot>,
    pub(super) state: State,
    /// Starts of slots from `head` on that are known to be done.
    pub(super) done: BTreeSet<DateTime<Utc>>,
    /// Slots before `head` that were still running when asked.
    pub(super) running: BTreeMap<DateTime<Utc>, (Slot, State)>,
}

/// Where the question for a slot's verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    /// It is on its way. Never asked twice at a time: of two answers the first may be lost and have been `First`, and the
    /// second says `Already`, as if somebody else had told it.
    Asked,
    NotBefore(DateTime<Utc>),
}

impl State {
    fn is_ready(self, now: DateTime<Utc>) -> bool {
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

impl Place {
    pub(super) fn new(timetable: Timetable, from: DateTime<Utc>) -> Self {
        let head = first_slot(&timetable, from);
        Self { timetable, head, state: State::Idle, done: BTreeSet::new(), running: BTreeMap::new() }
    }

    pub(super) fn is_head(&self, slot: &Slot) -> bool {
        self.head.as_ref().is_some_and(|head| head.start() == slot.start())
    }

    pub(super) fn due(&mut self, now: DateTime<Utc>) -> Vec<Slot> {
        let mut due = Vec::new();
        for (slot, state) in self.running.values_mut().filter(|(_, state)| state.is_ready(now)) {
            due.push(slot.clone());
            *state = State::Asked;
        }
        while self.head_is_over(now) && self.head_is_done() {
            self.advance();
        }
        if self.state.is_ready(now) && self.head_is_over(now) {
            self.state = State::Asked;
            due.extend(self.head.clone());
        }
        due
    }

    fn head_is_over(&self, now: DateTime<Utc>) -> bool {
        self.head.as_ref().is_some_and(|head| later(head.end(), GRACE) <= now)
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
        self.state = State::Idle;
        let Some(head) = self.head.take() else { return };
        self.head = first_slot(&self.timetable, head.end());
        self.done = self.done.split_off(&head.end());
    }
}

pub(super) fn first_slot(timetable: &Timetable, from: DateTime<Utc>) -> Option<Slot> {
    timetable.slots(from, later(from, HORIZON)).next().map(|(slot, _)| slot)
}
