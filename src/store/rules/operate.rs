//! The operators' verbs at a slot: `reset`, `unlock`, `mark_done`. Each that changes something is recorded.

use std::time::Duration;

use crate::clock::later;
use crate::job::NodeName;
use crate::slot::{Audit, Holder, Outcome, RunRecord};
use crate::store::image::{Image, Standing};
use crate::store::{Intervention, WakeKind};

impl Image {
    /// Forgives all attempts so far and opens the slot again ([`crate::store::Store::reset`]).
    pub(in crate::store) fn reset(&mut self, audit: &Audit) -> Intervention {
        if let Some(held) = self.refused() {
            return held;
        }
        self.row.forgiven = self.known();
        self.row.mark = None;
        self.row.verdict = None;
        self.record_audit(audit);
        self.effects.wake = Some(WakeKind::Released);
        Intervention::Applied
    }

    /// Takes the lease from its holder ([`crate::store::Store::unlock`]).
    pub(in crate::store) fn unlock(&mut self, audit: &Audit) -> Intervention {
        if self.held().is_none() {
            return Intervention::Unchanged;
        }
        self.row.mark = None;
        if let Some(run) = self.runs.own.clone() {
            let outcome = run.outcome.or(Some(Outcome::LostLease));
            self.record(RunRecord { outcome, ..run });
        }
        self.record_audit(audit);
        self.effects.wake = Some(WakeKind::Released);
        Intervention::Applied
    }

    /// Marks the slot done without a run ([`crate::store::Store::mark_done`]).
    pub(in crate::store) fn mark_done(&mut self, audit: &Audit, done_ttl: Duration) -> Intervention {
        if let Some(held) = self.refused() {
            return held;
        }
        if self.mark().is_some_and(|mark| matches!(mark.standing, Standing::Done(_))) {
            return Intervention::Unchanged;
        }
        let by = Holder { node: NodeName::nearest(&audit.who), attempt: 0 };
        self.record_done(&by);
        self.record_audit(audit);
        let until = later(self.now, done_ttl);
        self.place(Standing::Done(None), by, self.now, until);
        self.effects.wake = Some(WakeKind::Done);
        Intervention::Applied
    }

    fn refused(&self) -> Option<Intervention> {
        self.held().map(|lease| Intervention::Held { by: lease.by.clone(), remaining: lease.remaining(self.now) })
    }
}
