//! The operators' verbs at a slot: `reset`, `unlock`, `mark_done`. Each that changes something is recorded.

use std::time::Duration;

use super::SlotStep;
use crate::clock::later;
use crate::job::NodeName;
use crate::slot::{Audit, Holder, Outcome};
use crate::store::state::MarkKind;
use crate::store::{Intervention, WakeKind};

impl SlotStep {
    /// Forgives all attempts so far and opens the slot again ([`crate::store::Store::reset`]).
    pub(in crate::store) fn reset(&mut self, audit: &Audit) -> Intervention {
        if let Some(held) = self.refused() {
            return held;
        }
        self.state.forgiven = self.state.known();
        self.state.mark = None;
        self.state.verdict = None;
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
