//! What happens to a store behind cronward's back: keys that run out, are evicted or wiped. For tests and the simulator;
//! nothing of the protocol is decided here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::JobName;
use crate::slot::{Attempt, Audit, Slot};
use crate::store::memory::ledger::{Ledger, id};
use crate::store::memory::operator::stamped;

impl Ledger {
    /// Forgets everything, as a server that restarts without its data.
    pub fn wipe(&mut self) {
        *self = Self::new(self.retention);
    }

    /// What stands at the slot's key runs out now. False when nothing stood there.
    pub fn expire_mark(&mut self, slot: &Slot, now: DateTime<Utc>) -> bool {
        match self.marks.get_mut(&id(slot)).filter(|placed| placed.until > now) {
            Some(placed) => {
                placed.until = now;
                true
            }
            None => false,
        }
    }

    /// A job's entry is removed by hand.
    pub fn forget_job(&mut self, job: &JobName) {
        self.jobs.remove(job);
    }

    /// The counter is lost while the rest is kept, as by an eviction.
    pub fn forget_counter(&mut self, slot: &Slot) {
        self.set_counter(slot, 0);
    }

    /// The counter becomes this number while the rest is kept.
    pub fn set_counter(&mut self, slot: &Slot, counter: Attempt) {
        if let Some(log) = self.logs.get_mut(&id(slot)) {
            log.counter = counter;
        }
    }

    /// Attempts that do not count become this many.
    pub fn set_forgiven(&mut self, slot: &Slot, forgiven: u32) {
        if let Some(log) = self.logs.get_mut(&id(slot)) {
            log.forgiven = forgiven;
        }
    }

    /// What stood at the slot's key lasts for `ttl` from now on, also when it had run out. False when nothing ever stood
    /// there.
    pub fn set_mark_ttl(&mut self, slot: &Slot, ttl: Duration, now: DateTime<Utc>) -> bool {
        self.marks.get_mut(&id(slot)).is_some_and(|placed| {
            placed.until = later(now, ttl);
            true
        })
    }

    /// The slot's verdict is lost while the rest is kept.
    pub fn forget_verdict(&mut self, slot: &Slot) {
        if let Some(log) = self.logs.get_mut(&id(slot)) {
            log.verdict = None;
        }
    }

    /// All that is known of the slot besides its mark is gone.
    pub fn forget_log(&mut self, slot: &Slot) {
        self.logs.remove(&id(slot));
    }

    /// Records an operator's verb that did nothing.
    pub fn add_audit(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) {
        self.log_mut(slot, now).audit.push(stamped(audit, now));
    }

    /// The counter as it is stored; none when there is none.
    pub fn counter(&self, slot: &Slot) -> Option<Attempt> {
        self.logs.get(&id(slot)).map(|log| log.counter).filter(|counter| *counter > 0)
    }

    /// How long what stands at the slot's key lasts; none when nothing does.
    pub fn mark_ttl(&self, slot: &Slot, now: DateTime<Utc>) -> Option<Duration> {
        self.mark(slot, now).map(|placed| placed.remaining(now))
    }
}
