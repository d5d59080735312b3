//! How a run ends: `complete`, `fail`, `give_back`. The run's own record is written in any case; the mark is changed by
//! `complete` always, and by the others only where it is their own lease (I4).

use std::time::Duration;

use super::SlotStep;
use super::step::holder;
use crate::clock::later;
use crate::slot::{Lease, RunRecord};
use crate::store::state::MarkKind;
use crate::store::{Release, Settlement, WakeKind};

impl SlotStep {
    /// Records success ([`crate::store::Store::complete`]).
    pub(in crate::store) fn complete(&mut self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Settlement {
        self.record_own(lease, run);
        self.state.counter = self.state.counter.max(lease.attempt);
        self.state.record_done(&holder(lease), self.now);
        let mark = self.mark().cloned();
        let answer = match &mark {
            Some(other) if !is_of(other.kind, lease) => Settlement::Overtaken { by: other.by.clone() },
            _ => self.state.overtaker(lease).map_or(Settlement::Recorded, |by| Settlement::Overtaken { by }),
        };
        // Done is absorbing: a marker that stands is left as it is, whose ever it is (I3).
        if !mark.is_some_and(|mark| mark.is_done()) {
            let until = later(self.now, done_ttl);
            self.place(MarkKind::Done(Some(lease.token)), holder(lease), self.now, until);
            self.wake = Some(WakeKind::Done);
        }
        answer
    }

    /// Records a failed run and releases its lease ([`crate::store::Store::fail`]).
    pub(in crate::store) fn fail(&mut self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Release {
        let answer = self.release(lease);
        if self.holds(lease) {
            self.state.mark = None;
            if !retry_after.is_zero() {
                let until = later(self.now, retry_after);
                self.place(MarkKind::Wait(lease.token), holder(lease), self.now, until);
            }
            self.wake = Some(WakeKind::Released);
        }
        self.record_own(lease, run);
        answer
    }

    /// Releases the lease of a run that never began or was drained, and refunds its attempt
    /// ([`crate::store::Store::give_back`]). The counter stays, so that attempt numbers never fall (I2).
    pub(in crate::store) fn give_back(&mut self, lease: &Lease, run: &RunRecord) -> Release {
        if self.holds(lease) {
            self.state.forgiven = self.state.forgiven.saturating_add(1);
        }
        self.fail(lease, run, Duration::ZERO)
    }

    /// What a release is answered. A repetition finds its own wait, or nothing and its own run ended.
    fn release(&self, lease: &Lease) -> Release {
        match self.mark() {
            Some(mark) if mark.is_done() || !is_of(mark.kind, lease) => Release::Overtaken { by: mark.by.clone() },
            Some(_) => Release::Released,
            None => match self.state.overtaker(lease) {
                Some(by) => Release::Overtaken { by },
                None if self.state.has_ended(lease) => Release::Released,
                None => Release::Expired,
            },
        }
    }

    /// The lease says whose record it is, whatever the record itself says.
    fn record_own(&mut self, lease: &Lease, run: &RunRecord) {
        self.state.write_run(RunRecord { attempt: lease.attempt, token: lease.token, ..run.clone() });
    }
}

fn is_of(kind: MarkKind, lease: &Lease) -> bool {
    match kind {
        MarkKind::Lease(token) | MarkKind::Wait(token) | MarkKind::Done(Some(token)) => token == lease.token,
        MarkKind::Done(None) => false,
    }
}
