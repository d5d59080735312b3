//! What happens to many slots at once is told in sums, so that an outage or an overload is some lines and not one for each slot:
//!
//! - slots that the node had no room for, and errors of the store at slots: one line as soon as there are any, then one in a
//!   minute, and for the store one when it is over;
//! - slots that nobody ran: one line for each job, with as many as were closed one after the other. Those that this node
//!   had no room for are told above.
//!
//! The journal has each of them. Decides nothing else, and reads no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Mono;
use crate::drive::Occupancy;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::job::JobName;
use crate::observe::Observer;
use crate::slot::{Slot, SlotKey, Verdict};

/// Between two lines of a kind.
const PAUSE: Duration = Duration::from_secs(60);
/// After the last error of the store at a slot, until that is over.
const QUIET: Duration = Duration::from_secs(5);
/// Beats in a row at which the node was full and somebody waited: fewer are a burst.
const FULL_BEATS: u32 = 10;

/// Counts, and tells when it is time.
#[derive(Debug, Default)]
pub(super) struct Digest {
    state: Mutex<DigestState>,
}

#[derive(Debug, Default)]
struct DigestState {
    shed: Shed,
    failing: Failing,
    /// No job is here for longer than until its next slot is closed a minute after it was told of.
    missed: BTreeMap<JobName, Missed>,
}

#[derive(Debug, Default)]
struct Shed {
    slots: u64,
    jobs: BTreeSet<JobName>,
    full_beats: u32,
    told: Option<Mono>,
    /// Of each job the first and the last one that has no verdict yet.
    unclosed: BTreeMap<JobName, (SlotKey, SlotKey)>,
}

#[derive(Debug, Default)]
struct Failing {
    /// Since the last line.
    slots: u64,
    last: Option<String>,
    /// Since the first error.
    in_all: u64,
    heard: bool,
    /// What is wrong at the store does not pass by itself, and each slot tells it once: that none tells it again is no end.
    stays: bool,
    quiet_since: Option<Mono>,
    told: Option<Mono>,
}

#[derive(Debug)]
struct Missed {
    slots: u64,
    first: SlotKey,
    last: SlotKey,
    /// Since when it is waited for more.
    since: Option<Mono>,
    told: Option<Mono>,
}

impl Observer for Digest {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let Some(slot) = slot else { return };
        match event {
            Event::Shed => self.with(|state| state.shed.add(slot)),
            // The store works, and claims with it.
            Event::StoreFailed { kind: ErrorKind::Content, .. } => {}
            Event::StoreFailed { kind, error, .. } => {
                self.with(|state| state.failing.add(error, *kind == ErrorKind::Corrupt));
            }
            Event::Closed { verdict } => self.with(|state| {
                let shed = state.shed.close(slot);
                if *verdict == Verdict::Missed && !shed {
                    state.miss(slot);
                }
            }),
            _ => {}
        }
    }
}

impl Digest {
    /// What is to be told now. Asked at each beat; `is_closing`: verdicts are being asked for, and more may follow; `store_up`: by the
    /// node's heartbeat. That no slot fails any more does not show it: a node that leaves claims nothing.
    pub(super) fn due(&self, now: Mono, occupancy: Occupancy, is_closing: bool, store_up: bool) -> Vec<Event> {
        self.with(|state| {
            let mut events = Vec::new();
            events.extend(state.shed.due(now, occupancy));
            events.extend(state.failing.due(now, store_up));
            events.extend(state.missed_due(now, is_closing));
            events
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut DigestState) -> T) -> T {
        what(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn may_tell(told: Option<Mono>, now: Mono) -> bool {
    told.is_none_or(|told| now.since(told) >= PAUSE)
}

impl Shed {
    fn add(&mut self, slot: &Slot) {
        self.slots += 1;
        if !self.jobs.contains(slot.job()) {
            self.jobs.insert(slot.job().clone());
        }
        match self.unclosed.get_mut(slot.job()) {
            Some((first, last)) => (*first, *last) = (slot.key().min(*first), slot.key().max(*last)),
            None => drop(self.unclosed.insert(slot.job().clone(), (slot.key(), slot.key()))),
        }
    }

    /// A slot has its verdict; whether it may be one of those. A job's slots are closed oldest first.
    fn close(&mut self, slot: &Slot) -> bool {
        let Some((first, last)) = self.unclosed.get(slot.job()).copied() else { return false };
        if slot.key() >= last {
            self.unclosed.remove(slot.job());
        }
        (first..=last).contains(&slot.key())
    }

    fn due(&mut self, now: Mono, occupancy: Occupancy) -> Option<Event> {
        let is_full = occupancy.is_full && occupancy.waiting > 0;
        self.full_beats = if is_full { self.full_beats.saturating_add(1) } else { 0 };
        let is_news = self.slots > 0 || self.full_beats >= FULL_BEATS;
        if !is_news || !may_tell(self.told, now) {
            return None;
        }
        self.told = Some(now);
        let jobs = std::mem::take(&mut self.jobs).len();
        let shed = std::mem::take(&mut self.slots);
        Some(Event::Overloaded { shed, jobs, waiting: occupancy.waiting, running: occupancy.running, full: is_full })
    }
}

impl Failing {
    fn add(&mut self, message: &str, stays: bool) {
        self.stays = stays;
        self.slots += 1;
        self.in_all += 1;
        self.heard = true;
        if self.last.as_deref() != Some(message) {
            self.last = Some(message.to_owned());
        }
    }

    fn due(&mut self, now: Mono, store_up: bool) -> Option<Event> {
        self.last.as_ref()?;
        if std::mem::take(&mut self.heard) {
            self.quiet_since = Some(now);
        }
        if self.slots > 0 && may_tell(self.told, now) {
            self.told = Some(now);
            let slots = std::mem::take(&mut self.slots);
            return Some(Event::StoreFailing { slots, error: self.last.clone().unwrap_or_default() });
        }
        let over = store_up && self.quiet_since.is_some_and(|since| now.since(since) >= QUIET);
        if !over || (self.stays && self.slots > 0) {
            return None;
        }
        let (in_all, told, stays) = (self.in_all, self.told, self.stays);
        // One that follows soon is told in the same minute's line.
        *self = Self { told, ..Self::default() };
        (!stays).then_some(Event::StoreFailingOver { slots: in_all })
    }
}

impl DigestState {
    fn miss(&mut self, slot: &Slot) {
        let key = slot.key();
        let none = Missed { slots: 0, first: key, last: key, since: None, told: None };
        let missed = self.missed.entry(slot.job().clone()).or_insert(none);
        if missed.slots == 0 {
            missed.first = key;
        }
        (missed.slots, missed.last) = (missed.slots + 1, key);
    }

    fn missed_due(&mut self, now: Mono, is_closing: bool) -> Vec<Event> {
        self.missed.retain(|_, missed| missed.slots > 0 || !may_tell(missed.told, now));
        let mut events = Vec::new();
        for (job, missed) in self.missed.iter_mut().filter(|(_, missed)| missed.slots > 0) {
            let since = *missed.since.get_or_insert(now);
            // While more follow, they are waited for.
            let is_complete = !is_closing && may_tell(missed.told, now);
            if is_complete || now.since(since) >= PAUSE {
                let (first, last) = (missed.first.to_string(), missed.last.to_string());
                events.push(Event::SlotsMissed { job: Some(job.clone()), slots: missed.slots, first, last });
                (missed.slots, missed.since, missed.told) = (0, None, Some(now));
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Op;

    const IDLE: Occupancy = Occupancy { waiting: 0, running: 0, is_full: false };

    fn slot(job: &str, second: i64) -> Slot {
        let start = chrono::DateTime::from_timestamp(1_795_269_600 + second, 0).unwrap();
        Slot::new(JobName::new(job).unwrap(), start, start + chrono::TimeDelta::seconds(1)).unwrap()
    }

    /// After so many seconds.
    fn at(second: u64) -> Mono {
        Mono::default() + Duration::from_secs(second)
    }

    fn failed() -> Event {
        Event::StoreFailed { op: Op::Claim, kind: ErrorKind::Timeout, error: "no answer".to_owned() }
    }

    fn missed(job: &str, slots: u64, first: i64, last: i64) -> Event {
        let key = |second| slot(job, second).key().to_string();
        Event::SlotsMissed { job: Some(JobName::new(job).unwrap()), slots, first: key(first), last: key(last) }
    }

    #[test]
    fn an_overload_is_told_at_once_and_then_once_a_minute() {
        let digest = Digest::default();
        let mut told = Vec::new();
        for second in 0..150 {
            for job in ["a", "b"] {
                digest.event(Some(&slot(job, second)), &Event::Shed);
            }
            told.extend(digest.due(at(u64::try_from(second).unwrap()), IDLE, true, true));
        }
        let line = |shed, jobs| Event::Overloaded { shed, jobs, waiting: 0, running: 0, full: false };
        assert_eq!(told, [line(2, 2), line(120, 2), line(120, 2)]);
    }

    #[test]
    fn what_the_store_holds_that_is_not_ours_is_told_without_an_end_that_nobody_saw() {
        let digest = Digest::default();
        let failed = |kind| Event::StoreFailed { op: Op::Claim, kind, error: "another type".to_owned() };
        for (kind, ends) in [(ErrorKind::Timeout, 1), (ErrorKind::Corrupt, 0)] {
            digest.event(Some(&slot("a", 0)), &failed(kind));
            let told: Vec<Event> = (0..120).flat_map(|second| digest.due(at(second), IDLE, false, true)).collect();
            let over = told.iter().filter(|event| matches!(event, Event::StoreFailingOver { .. })).count();
            assert_eq!((told.len() - over, over), (1, ends), "{told:?}");
        }
    }

    #[test]
    fn refused_content_is_no_store_that_fails() {
        let digest = Digest::default();
        let refused = Event::StoreFailed { op: Op::Complete, kind: ErrorKind::Content, error: "too large".to_owned() };
        digest.event(Some(&slot("a", 0)), &refused);
        assert_eq!(digest.due(at(1), IDLE, false, true), []);
    }

    #[test]
    fn a_slot_that_there_was_no_room_for_is_not_told_a_second_time_as_missed() {
        let digest = Digest::default();
        for second in [3, 5] {
            digest.event(Some(&slot("a", second)), &Event::Shed);
        }
        digest.due(at(0), IDLE, false, true);
        for second in [2, 3, 5, 6] {
            digest.event(Some(&slot("a", second)), &Event::Closed { verdict: Verdict::Missed });
        }
        assert_eq!(digest.due(at(1), IDLE, false, true), [missed("a", 2, 2, 6)]);
    }

    #[test]
    fn a_node_that_is_full_for_a_moment_says_nothing_and_one_that_stays_full_does() {
        let digest = Digest::default();
        let full = Occupancy { waiting: 9, running: 512, is_full: true };
        for second in 0..9 {
            assert_eq!(digest.due(at(second), full, false, true), []);
        }
        digest.due(at(9), IDLE, false, true);
        let told: Vec<u64> = (10..90).filter(|second| !digest.due(at(*second), full, false, true).is_empty()).collect();
        assert_eq!(told, [19, 79]);
    }

    #[test]
    fn after_an_outage_the_slots_of_a_job_that_nobody_ran_are_one_line() {
        let digest = Digest::default();
        for second in 0..3_000 {
            digest.event(Some(&slot("a", second)), &Event::Closed { verdict: Verdict::Missed });
            if second % 2 == 0 {
                digest.event(Some(&slot("b", second)), &Event::Closed { verdict: Verdict::Missed });
            }
            digest.event(Some(&slot("b", second + 10_000)), &Event::Closed { verdict: Verdict::Done });
            assert_eq!(digest.due(at(u64::try_from(second).unwrap() / 1_000), IDLE, true, true), []);
        }
        assert_eq!(digest.due(at(4), IDLE, false, true), [missed("a", 3_000, 0, 2_999), missed("b", 1_500, 0, 2_998)]);
        assert_eq!(digest.due(at(5), IDLE, false, true), []);
    }

    #[test]
    fn a_job_whose_every_slot_is_missed_is_one_line_a_minute_and_the_first_comes_at_once() {
        let digest = Digest::default();
        let mut told = Vec::new();
        for second in 0..130 {
            digest.event(Some(&slot("a", second)), &Event::Closed { verdict: Verdict::Missed });
            told.extend(digest.due(at(u64::try_from(second).unwrap()), IDLE, false, true));
        }
        assert_eq!(told, [missed("a", 1, 0, 0), missed("a", 60, 1, 60), missed("a", 60, 61, 120)]);
    }

    #[test]
    fn verdicts_that_never_end_are_told_after_a_minute_all_the_same() {
        let digest = Digest::default();
        digest.event(Some(&slot("a", 0)), &Event::Closed { verdict: Verdict::Missed });
        let told: Vec<u64> = (0..100).filter(|second| !digest.due(at(*second), IDLE, true, true).is_empty()).collect();
        assert_eq!(told, [60]);
    }

    #[test]
    fn errors_of_the_store_at_thousands_of_slots_are_a_line_a_minute_and_one_when_they_are_over() {
        let digest = Digest::default();
        let mut told = Vec::new();
        for second in 0..100 {
            if second < 70 {
                (0..200).for_each(|_| digest.event(Some(&slot("a", second)), &failed()));
            }
            told.extend(digest.due(at(u64::try_from(second).unwrap()), IDLE, false, true));
        }
        let failing = |slots| Event::StoreFailing { slots, error: "no answer".to_owned() };
        assert_eq!(told, [failing(200), failing(12_000), Event::StoreFailingOver { slots: 14_000 }]);
    }

    #[test]
    fn a_store_that_is_away_is_not_said_to_be_well_because_nobody_asks() {
        let digest = Digest::default();
        digest.event(Some(&slot("a", 0)), &failed());
        let due =
            |second| digest.due(at(second), IDLE, false, second >= 60).into_iter().map(move |event| (second, event));
        let told: Vec<(u64, Event)> = (0..100).flat_map(due).collect();
        let failing = Event::StoreFailing { slots: 1, error: "no answer".to_owned() };
        assert_eq!(told, [(0, failing), (60, Event::StoreFailingOver { slots: 1 })]);
    }
}
