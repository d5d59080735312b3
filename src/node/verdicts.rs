//! The verdicts of ended slots: asked for when they are due, told when this node was the one to record them. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Now, earlier};
use crate::job::JobName;
use crate::node::action::{Action, Outbox, Question};
use crate::node::plan::Entry;
use crate::schedule::Closer;
use crate::slot::Slot;
use crate::store::handover::Closed;
use crate::store::{Closing, StoreError};

/// Questions for a verdict on their way at once: after an outage they are many, and no tick may wait for them.
const AT_ONCE: usize = 64;

/// The same while slots wait for room to be run.
const AT_ONCE_WHEN_BUSY: usize = 4;

/// Which verdicts are owed, and which are being asked for.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) closer: Closer,
    /// Slots that were run once more after they were closed, and have no verdict yet: as many as operators asked for.
    again: BTreeSet<Slot>,
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

    /// A run of the slot has ended here without success.
    pub(super) fn ran_without_success(&mut self, slot: &Slot) {
        if self.closer.ran_without_success(slot) {
            self.again.insert(slot.clone());
        }
    }

    /// Asks for the verdicts that are due.
    pub(super) fn ask(&mut self, now: Now, entries: &BTreeMap<JobName, Entry>, out: &mut Outbox) {
        if self.leaving {
            return;
        }
        let most = if self.busy { AT_ONCE_WHEN_BUSY } else { AT_ONCE };
        let room = most.saturating_sub(self.on_their_way);
        let due = if room > 0 { self.closer.due(now.wall, room) } else { Vec::new() };
        for slot in due {
            let Some(entry) = entries.get(slot.job()) else { continue };
            // What is left of the attempts of a past slot nobody makes by itself: one that failed is its failure.
            let max_attempts = if self.again.contains(&slot) { 1 } else { entry.spec.policy.max_attempts };
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
        if matches!(reply, Ok(Closing::First(_) | Closing::Already(_))) {
            self.again.remove(slot);
        }
        let answered = self.closer.answered(slot, now.wall, reply.map_err(|error| error.applied));
        out.extend(answered.tell.map(|verdict| Action::Announce(slot.clone(), verdict)));
        // After an outage the next one is due as well, and need not wait for a beat.
        if answered.moved_on {
            self.ask(now, entries, out);
        }
    }
}
