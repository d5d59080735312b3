//! What happens to a store behind cronward's back: keys that run out, are evicted or wiped. For tests and the simulator;
//! nothing of the protocol is decided here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, Slot};
use crate::store::memory::ledger::{Kept, Ledger, id};

impl Ledger {
    /// What stands at the slot's key runs out now. False when nothing stood there.
    pub fn expire_mark(&mut self, slot: &Slot, now: DateTime<Utc>) -> bool {
        self.mark_ttl(slot, now).is_some() && self.set_mark_ttl(slot, Duration::ZERO, now)
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
        self.disturb(slot, |kept| kept.state.counter = counter);
    }

    /// Attempts that do not count become this many.
    pub fn set_forgiven(&mut self, slot: &Slot, forgiven: u32) {
        self.disturb(slot, |kept| kept.state.forgiven = forgiven);
    }

    /// What stood at the slot's key lasts for `ttl` from now on, also when it had run out. False when nothing ever stood
    /// there.
    pub fn set_mark_ttl(&mut self, slot: &Slot, ttl: Duration, now: DateTime<Utc>) -> bool {
        let mark = self.slots.get_mut(&id(slot)).and_then(|kept| kept.state.mark.as_mut());
        mark.is_some_and(|mark| {
            mark.until = later(now, ttl);
            true
        })
    }

    /// The slot's verdict is lost while the rest is kept.
    pub fn forget_verdict(&mut self, slot: &Slot) {
        self.disturb(slot, |kept| kept.state.verdict = None);
    }

    /// All that is known of the slot besides its mark is gone.
    pub fn forget_log(&mut self, slot: &Slot) {
        self.disturb(slot, Kept::forget);
    }

    /// What the job has come to lately becomes this.
    pub fn set_latest(&mut self, job: &JobName, latest: JobLatest, now: DateTime<Utc>) {
        self.latest.insert(job.clone(), (latest, now));
    }

    /// Records an operator's verb that did nothing.
    pub fn add_audit(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) {
        let kept = self.slots.entry(id(slot)).or_default();
        kept.state.audit.push(Audit { at: now, ..audit.clone() });
        kept.state.touched = Some(now.max(slot.end()));
    }

    /// The counter as it is stored; none when there is none.
    pub fn counter(&self, slot: &Slot) -> Option<Attempt> {
        self.slots.get(&id(slot)).map(|kept| kept.state.counter).filter(|counter| *counter > 0)
    }

    /// How long what stands at the slot's key lasts; none when nothing does.
    pub fn mark_ttl(&self, slot: &Slot, now: DateTime<Utc>) -> Option<Duration> {
        let mark = self.slots.get(&id(slot))?.state.mark(now)?;
        Some(mark.remaining(now))
    }

    fn disturb(&mut self, slot: &Slot, work: impl FnOnce(&mut Kept)) {
        if let Some(kept) = self.slots.get_mut(&id(slot)) {
            work(kept);
        }
    }
}
