//! The verdicts of ended slots: asked for when they are due, told when this node was the one to record them. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Now, earlier, later};
use crate::job::JobName;
use crate::machine::End;
use crate::node::action::{Action, Outbox, Question};
use crate::node::plan::Entry;
use crate::node::request::TriggerRequest;
use crate::schedule::Closer;
use crate::slot::{Slot, SlotKey, SlotRecord};
use crate::store::handover::Closed;
use crate::store::{Closing, StoreError};
use crate::wake::{Wake, WakeKind};

/// Questions for a verdict on their way at once: after an outage they are many, and no tick may wait for them.
const AT_ONCE: usize = 64;

/// The same while slots wait for room to be run.
const AT_ONCE_WHEN_BUSY: usize = 4;

/// Until the verdict of a past slot is asked for again.
const AGAIN: Duration = Duration::from_secs(1);

/// Which verdicts are owed, and which are being asked for.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) closer: Closer,
    /// Slots that are driven here because a person asked for them although they were over.
    past: BTreeSet<Slot>,
    /// Those of them that were driven without success, that nobody will close, and that may have no verdict any more, and slots of jobs
    /// that are disabled, with when to ask for it; none while the question is on its way. As many as persons asked for; no other node is told of them.
    again: BTreeMap<Slot, Option<DateTime<Utc>>>,
    /// Slots that dead nodes named as run by them, and that were asked about here. As many as such nodes name.
    left: BTreeSet<Slot>,
    /// Questions that are on their way.
    on_their_way: usize,
    /// Slots wait for room to be run: a verdict can wait, and they cannot.
    pub(super) busy: bool,
    /// The node leaves: what is on its way is waited for, and no more is asked.
    pub(super) leaving: bool,
}

impl Verdicts {
    #[cfg(feature = "daemon")]
    pub(super) const fn is_asking(&self) -> bool {
        self.on_their_way > 0
    }

    /// Forgets what was known of slots, and begins with those of that instant.
    pub(super) fn begin_anew(&mut self, entries: &BTreeMap<JobName, Entry>, at: Now) {
        self.closer = Closer::default();
        self.again.clear();
        self.set(entries, at);
    }

    /// Time has jumped: no wait that was measured by the old time is kept.
    pub(super) fn hurry(&mut self) {
        self.closer.hurry();
        // None is one that is on its way.
        self.again.values_mut().for_each(|at| *at = at.map(|_| DateTime::<Utc>::MIN_UTC));
    }

    /// The wall clock was put right by the store's.
    pub(super) fn clock_put_right(&mut self, now: Now) {
        self.hurry();
        self.closer.clock_put_right(now);
    }

    /// Takes the jobs of a plan.
    pub(super) fn set(&mut self, entries: &BTreeMap<JobName, Entry>, now: Now) {
        self.closer.set(entries.values().map(|entry| entry.timetable.clone()).collect(), now);
    }

    /// Goes on from where those before this node had got to. A job's slots from before it was first seen are nobody's.
    pub(super) fn take_over(
        &mut self,
        closed: &BTreeMap<JobName, Closed>,
        first_seen: &BTreeMap<JobName, DateTime<Utc>>,
        silence: Duration,
        entries: &BTreeMap<JobName, Entry>,
    ) {
        for job in entries.keys() {
            let seen = first_seen.get(job).copied();
            if let Some(closed) = closed.get(job) {
                // Those alive then may have died before they could close what ended just before.
                let from = earlier(closed.until, silence);
                self.closer.look_back(job, seen.map_or(from, |seen| from.max(seen)), closed.since);
            } else {
                self.closer.begin(job, seen);
            }
        }
    }

    /// A person asked for a run of a slot.
    pub(super) fn asked_for(&mut self, request: &TriggerRequest, now: DateTime<Utc>) {
        if request.slot.end() <= now {
            self.past.insert(request.slot.clone());
        } else if !self.closer.owe(&request.slot) {
            self.again.insert(request.slot.clone(), Some(later(request.slot.end(), AGAIN)));
        }
    }

    /// An operator opened a slot again that was done here. Where that was before the slot's end, its verdict is asked for once more;
    /// later it is open for a run of the past.
    pub(super) fn opened(&mut self, slot: &Slot, record: &SlotRecord, now: DateTime<Utc>) {
        self.closer.reopened(slot.job(), slot.start());
        if slot.end() <= now && record.was_reset_before(slot.end()) {
            self.closer.owe(slot);
        }
    }

    /// A drive of the slot has ended here. Where a person asked for a slot that was over, its verdict may have been taken back for that.
    /// Answers how it ended, as it was told.
    pub(super) fn ended(&mut self, slot: &Slot, end: Option<End>, out: &mut Outbox) -> Option<End> {
        let was_past = self.past.remove(slot);
        if end == Some(End::Done) {
            self.closer.settled(slot);
            self.again.remove(slot);
        } else if was_past && !self.closer.will_close(slot) {
            // Also while the node leaves: what it has run it tells.
            self.ask_again(slot, out);
        } else if end == Some(End::Unrecorded) {
            self.closer.doubt(slot);
        }
        end
    }

    fn ask_again(&mut self, slot: &Slot, out: &mut Outbox) {
        self.again.insert(slot.clone(), None);
        self.on_their_way += 1;
        // What is left of its attempts nobody makes by itself: one that failed is its failure.
        out.push_back(Action::Ask(Question::Close { slot: slot.clone(), max_attempts: 1 }));
    }

    /// What the node tells of its runs: what runs, and what it is asked to run of the past. Another node closes it, should this one die.
    pub(super) fn running<'a>(&'a self, running: impl Iterator<Item = &'a Slot>) -> Vec<String> {
        let all: BTreeSet<&Slot> = running.chain(&self.past).collect();
        all.into_iter().map(ToString::to_string).collect()
    }

    /// Dead nodes have named these slots as run by them. One that no closer comes to may get no verdict: a person had asked for it.
    pub(super) fn left_behind(
        &mut self,
        left: &BTreeSet<(JobName, SlotKey)>,
        now: Now,
        entries: &BTreeMap<JobName, Entry>,
        out: &mut Outbox,
    ) {
        let slot = |(job, key): &(JobName, SlotKey)| entries.get(job)?.timetable.slot_with_key(*key);
        let is_open = |slot: &Slot| !self.closer.will_close(slot);
        let (open, lasting): (BTreeSet<Slot>, BTreeSet<Slot>) =
            left.iter().filter_map(slot).filter(is_open).partition(|slot| slot.end() <= now.wall);
        for slot in &lasting {
            self.closer.owe(slot);
        }
        let known = std::mem::replace(&mut self.left, open.clone());
        for slot in open.difference(&known).filter(|slot| !self.again.contains_key(*slot)).cloned().collect::<Vec<_>>()
        {
            self.ask_again(&slot, out);
        }
    }

    /// A hint from the store.
    pub(super) fn hear(&mut self, wake: &Wake, entries: &BTreeMap<JobName, Entry>) {
        match wake {
            Wake::Slot { job, key, what: WakeKind::Done } => {
                let slot = entries.get(job).and_then(|entry| entry.timetable.slot_with_key(*key));
                slot.into_iter().for_each(|slot| self.closer.settled(&slot));
            }
            Wake::Slot { job, key, what: WakeKind::Released } => self.closer.reopened(job, key.start()),
            Wake::Resync => self.closer.doubt_all(),
            Wake::Job(_) => {}
        }
    }

    /// Asks once more for what could not be answered.
    fn ask_for_past(&mut self, now: DateTime<Utc>, out: &mut Outbox) {
        let due: Vec<Slot> =
            self.again.iter().filter(|(_, at)| at.is_some_and(|at| at <= now)).map(|(slot, _)| slot.clone()).collect();
        due.iter().for_each(|slot| self.ask_again(slot, out));
    }

    /// Asks for the verdicts that are due.
    pub(super) fn ask(&mut self, now: Now, entries: &BTreeMap<JobName, Entry>, out: &mut Outbox) {
        if self.leaving {
            return;
        }
        self.ask_for_past(now.wall, out);
        let most = if self.busy { AT_ONCE_WHEN_BUSY } else { AT_ONCE };
        let room = most.saturating_sub(self.on_their_way);
        let due = if room > 0 { self.closer.due(now.wall, room) } else { Vec::new() };
        for slot in due {
            let Some(entry) = entries.get(slot.job()) else { continue };
            let max_attempts = entry.spec.policy.max_attempts;
            self.on_their_way += 1;
            out.push_back(Action::Ask(Question::Close { slot, max_attempts }));
        }
    }

    /// The store's answer, or why there is none.
    pub(super) fn answered(
        &mut self,
        now: Now,
        slot: &Slot,
        reply: Result<Closing, StoreError>,
        entries: &BTreeMap<JobName, Entry>,
        out: &mut Outbox,
    ) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        if let Some(at) = self.again.get_mut(slot) {
            match &reply {
                Ok(Closing::First(_) | Closing::Already(_)) => drop(self.again.remove(slot)),
                Ok(Closing::Running { remaining, .. } | Closing::Open { remaining }) => {
                    *at = Some(later(now.wall, (*remaining).max(AGAIN)));
                    if !self.closer.will_close(slot) {
                        return;
                    }
                }
                Err(_) => *at = Some(later(now.wall, AGAIN)),
            }
        }
        // A run of the past is asked about with a single attempt, and never by both at once.
        let is_again = self.again.contains_key(slot) && !self.closer.will_close(slot);
        let answered = self.closer.answered(slot, now.wall, reply.map_err(|error| error.applied));
        if is_again {
            self.closer.leave(slot);
        }
        out.extend(answered.tell.map(|verdict| Action::Announce(slot.clone(), verdict)));
        // After an outage the next one is due as well, and need not wait for a beat.
        if answered.moved_on {
            self.ask(now, entries, out);
        }
    }
}
