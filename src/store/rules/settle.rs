//! How a run ends: `complete`, `fail`, `give_back`. The run's own record is written in any case; the mark is changed by
//! `complete` always, and by the others only where it is their own lease (I4).

use std::time::Duration;

use crate::clock::later;
use crate::slot::{Lease, RunRecord};
use crate::store::image::{Image, Standing, holder};
use crate::store::{Release, Settlement, WakeKind};

impl Image {
    /// Records success ([`crate::store::Store::complete`]).
    pub(in crate::store) fn complete(&mut self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Settlement {
        self.record_own(lease, run);
        self.row.counter = self.row.counter.max(lease.attempt);
        self.record_done(&holder(lease));
        let mark = self.mark().cloned();
        let answer = match &mark {
            Some(other) if !is_of(other.standing, lease) => Settlement::Overtaken { by: other.by.clone() },
            _ => self
                .overtaker(lease.attempt, lease.claimed_at)
                .map_or(Settlement::Recorded, |by| Settlement::Overtaken { by }),
        };
        // Done is absorbing: a marker that stands is left as it is, whose ever it is (I3).
        if !mark.is_some_and(|mark| matches!(mark.standing, Standing::Done(_))) {
            let until = later(self.now, done_ttl);
            self.place(Standing::Done(Some(lease.token)), holder(lease), self.now, until);
            self.effects.wake = Some(WakeKind::Done);
        }
        answer
    }

    /// Records a failed run and releases its lease ([`crate::store::Store::fail`]).
    pub(in crate::store) fn fail(&mut self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Release {
        let answer = self.release(lease);
        if self.holds(lease) {
            self.row.mark = None;
            if !retry_after.is_zero() {
                let until = later(self.now, retry_after);
                self.place(Standing::Wait(lease.token), holder(lease), self.now, until);
            }
            self.effects.wake = Some(WakeKind::Released);
        }
        self.record_own(lease, run);
        answer
    }

    /// Releases the lease of a run that never began or was drained, and refunds its attempt
    /// ([`crate::store::Store::give_back`]). The counter stays, so that attempt numbers never fall (I2).
    pub(in crate::store) fn give_back(&mut self, lease: &Lease, run: &RunRecord) -> Release {
        if self.holds(lease) {
            self.row.forgiven = self.row.forgiven.saturating_add(1);
        }
        self.fail(lease, run, Duration::ZERO)
    }

    /// What a release is answered. A repetition finds its own wait, or nothing and its own run ended.
    fn release(&self, lease: &Lease) -> Release {
        let ended = self.runs.own.as_ref().is_some_and(|run| run.outcome.is_some());
        match self.mark() {
            Some(mark) if matches!(mark.standing, Standing::Done(_)) || !is_of(mark.standing, lease) => {
                Release::Overtaken { by: mark.by.clone() }
            }
            Some(_) => Release::Released,
            None => match self.overtaker(lease.attempt, lease.claimed_at) {
                Some(by) => Release::Overtaken { by },
                None if ended => Release::Released,
                None => Release::Expired,
            },
        }
    }

    /// The lease says whose record it is, whatever the record itself says.
    fn record_own(&mut self, lease: &Lease, run: &RunRecord) {
        self.record(RunRecord { attempt: lease.attempt, token: lease.token, ..run.clone() });
    }
}

fn is_of(standing: Standing, lease: &Lease) -> bool {
    match standing {
        Standing::Lease(token) | Standing::Wait(token) | Standing::Done(Some(token)) => token == lease.token,
        Standing::Done(None) => false,
    }
}
