//! How a slot ends.
//!
//! - `complete`, `fail`, `give_back`: the run's own record is written in any case; the mark is changed by `complete` always, and by
//!   the others only where it is their own lease (I4).
//! - `close`: the verdict of a slot that is over, once (L2).
//! - `reset`, `unlock`, `mark_done`: the operators' verbs. Each that changes something is recorded.

use std::time::Duration;

use super::SlotStep;
use super::holder;
use crate::clock::{between, later};
use crate::job::NodeName;
use crate::slot::{Audit, Holder, Lease, Outcome, RunRecord, Verdict, VerdictRecord};
use crate::store::state::{MarkKind, SlotState, StoredMark};
use crate::store::{Closing, Intervention, Release, Settlement, WakeKind};

impl SlotStep {
    /// Records success ([`crate::store::Store::complete`]).
    pub(in crate::store) fn complete(&mut self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Settlement {
        let opened = self.is_opened_since(lease);
        if !opened {
            self.record_own(lease, run);
            self.state.counter = self.state.counter.max(lease.attempt);
            self.state.record_done(&holder(lease), self.now);
            self.latest.done(self.slot.key(), self.now);
        }
        let mark = self.mark().cloned();
        let answer = match &mark {
            Some(other) if !is_of(other.kind, lease) => Settlement::Overtaken { by: other.by.clone() },
            _ => self.state.overtaker(lease).map_or(Settlement::Recorded, |by| Settlement::Overtaken { by }),
        };
        // Done is absorbing: a marker that stands is left as it is, whose ever it is (I3).
        if !opened && !mark.is_some_and(|mark| mark.is_done()) {
            let until = later(self.now, done_ttl);
            self.place(MarkKind::Done(Some(lease.token)), holder(lease), self.now, until);
            self.wake = Some(WakeKind::Done);
        }
        answer
    }

    /// Whether this success is recorded, and the slot is no longer done: an operator has opened it since, and a repetition may not
    /// undo that.
    fn is_opened_since(&self, lease: &Lease) -> bool {
        let known = self.state.run(lease.attempt, lease.token).and_then(|run| run.outcome);
        known == Some(Outcome::Success) && self.done_mark().is_none()
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
            Some(_) if self.is_granted_anew(lease) => {
                self.state.overtaker(lease).map_or(Release::Released, |by| Release::Overtaken { by })
            }
            Some(_) => Release::Released,
            None => match self.state.overtaker(lease) {
                Some(by) => Release::Overtaken { by },
                None if self.state.has_ended(lease) => Release::Released,
                None => Release::Expired,
            },
        }
    }

    /// Whether its token holds the slot, or waits, by another attempt than this one, and somebody else was granted it since: a copy of
    /// the claim that came late hides that.
    pub(super) fn is_granted_anew(&self, lease: &Lease) -> bool {
        let anew = |mark: &StoredMark| is_of(mark.kind, lease) && mark.by.attempt != lease.attempt;
        self.mark().is_some_and(anew) && self.state.overtaker(lease).is_some()
    }

    /// The lease says whose record it is, whatever the record itself says.
    fn record_own(&mut self, lease: &Lease, run: &RunRecord) {
        let run = RunRecord { attempt: lease.attempt, token: lease.token, ..run.clone() };
        let (attempt, token) = (run.attempt, run.token);
        let outcome = |state: &SlotState| state.run(attempt, token).and_then(|run| run.outcome);
        let before = outcome(&self.state);
        self.state.write_run(run);
        // Only what was recorded: a repetition changes nothing, and success stays (I7).
        if let Some(after) = outcome(&self.state).filter(|after| before != Some(*after)) {
            self.latest.ended(self.slot.key(), self.now, after);
        }
    }
}

fn is_of(kind: MarkKind, lease: &Lease) -> bool {
    match kind {
        MarkKind::Lease(token) | MarkKind::Wait(token) | MarkKind::Done(Some(token)) => token == lease.token,
        MarkKind::Done(None) => false,
    }
}

impl SlotStep {
    /// Records the verdict ([`crate::store::Store::close`]): refused while the slot is open, then if it was recorded
    /// before, then while a run goes on.
    pub(in crate::store) fn close(&mut self, max_attempts: u32, by: &NodeName) -> Closing {
        if self.now < self.slot.end() {
            return Closing::Open { remaining: between(self.now, self.slot.end()) };
        }
        if let Some(record) = &self.state.verdict {
            return Closing::Already(record.verdict);
        }
        if let Some(lease) = self.held() {
            return Closing::Running { by: lease.by.clone(), remaining: lease.remaining(self.now) };
        }
        let verdict = self.verdict(max_attempts);
        self.state.verdict = Some(VerdictRecord { verdict, by: by.clone(), at: self.now, attempt: 0 });
        self.latest.closed(self.slot.key(), verdict);
        Closing::First(verdict)
    }

    fn verdict(&self, max_attempts: u32) -> Verdict {
        let paused = || self.pause.as_ref().is_some_and(|pause| pause.touches(self.slot.start(), self.slot.end()));
        if self.is_marked_done() {
            Verdict::Done
        } else if self.state.used() >= max_attempts {
            Verdict::Failed
        } else if self.state.known() == 0 && paused() {
            Verdict::Skipped
        } else {
            Verdict::Missed
        }
    }
}

impl SlotStep {
    /// Forgives all attempts so far and opens the slot again ([`crate::store::Store::reset`]).
    pub(in crate::store) fn reset(&mut self, audit: &Audit) -> Intervention {
        if let Some(held) = self.refused() {
            return held;
        }
        self.state.forgiven = self.state.known();
        self.state.mark = None;
        if self.state.verdict.take().is_some_and(|record| record.verdict.is_failure()) {
            self.latest.reopened(self.slot.key());
        }
        self.record_audit(audit);
        self.wake = Some(WakeKind::Released);
        Intervention::Applied
    }

    /// Takes the lease from its holder ([`crate::store::Store::unlock`]).
    pub(in crate::store) fn unlock(&mut self, audit: &Audit) -> Intervention {
        let Some((by, kind)) = self.held().map(|lease| (lease.by.clone(), lease.kind)) else {
            return Intervention::Unchanged;
        };
        self.state.mark = None;
        let is_own = |attempt, token| by.attempt == attempt && kind == MarkKind::Lease(token);
        let run = self.state.runs.iter_mut().find(|run| is_own(run.attempt, run.token));
        if let Some(run) = run.filter(|run| run.outcome.is_none()) {
            run.outcome = Some(Outcome::LostLease);
        }
        self.record_audit(audit);
        self.wake = Some(WakeKind::Released);
        Intervention::Applied
    }

    /// Marks the slot done without a run ([`crate::store::Store::mark_done`]).
    pub(in crate::store) fn mark_done(&mut self, audit: &Audit, done_ttl: Duration) -> Intervention {
        if let Some(held) = self.refused() {
            return held;
        }
        if self.is_marked_done() {
            return Intervention::Unchanged;
        }
        let by = Holder { node: NodeName::nearest(&audit.who), attempt: 0 };
        self.state.record_done(&by, self.now);
        // A slot that is skipped in advance says nothing about how the job fares: what fails until it begins has to be seen.
        if self.slot.start() <= self.now {
            self.latest.done(self.slot.key(), self.now);
        }
        self.record_audit(audit);
        let until = later(self.now, done_ttl);
        self.place(MarkKind::Done(None), by, self.now, until);
        self.wake = Some(WakeKind::Done);
        Intervention::Applied
    }

    fn refused(&self) -> Option<Intervention> {
        self.held().map(|lease| Intervention::Held { by: lease.by.clone(), remaining: lease.remaining(self.now) })
    }
}
