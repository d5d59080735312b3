//! The operators' verbs. Each that changes something is recorded with who, when (by the store's clock) and why.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::{JobName, NodeName};
use crate::slot::{Audit, DoneMark, Holder, Outcome, Slot};
use crate::store::memory::ledger::{Ledger, Placed, Standing};
use crate::store::{Intervention, Pause, WakeKind};

impl Ledger {
    /// Forgives all attempts so far and opens the slot again ([`crate::store::Store::reset`]).
    pub fn reset(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        if let Some(held) = self.held(slot, now) {
            return held;
        }
        self.lift(slot);
        let log = self.log_mut(slot, now);
        log.forgiven = log.known();
        log.verdict = None;
        log.audit.push(stamped(audit, now));
        self.tell(slot, WakeKind::Released);
        Intervention::Applied
    }

    /// Takes the lease from its holder ([`crate::store::Store::unlock`]).
    pub fn unlock(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        let lease = self.mark(slot, now).and_then(Placed::lease).map(|(by, token)| (by.attempt, token));
        let Some((attempt, token)) = lease else { return Intervention::Unchanged };
        self.lift(slot);
        let log = self.log_mut(slot, now);
        log.end(attempt, token, Outcome::LostLease);
        log.audit.push(stamped(audit, now));
        self.tell(slot, WakeKind::Released);
        Intervention::Applied
    }

    /// Marks the slot done without a run ([`crate::store::Store::mark_done`]).
    pub fn mark_done(&mut self, slot: &Slot, audit: &Audit, done_ttl: Duration, now: DateTime<Utc>) -> Intervention {
        if let Some(held) = self.held(slot, now) {
            return held;
        }
        if let Some(Placed { standing: Standing::Done { .. }, .. }) = self.mark(slot, now) {
            return Intervention::Unchanged;
        }
        let by = Holder { node: NodeName::nearest(&audit.who), attempt: 0 };
        let log = self.log_mut(slot, now);
        log.done(&by, now);
        log.audit.push(stamped(audit, now));
        let mark = DoneMark { by, at: now };
        self.place(slot, Standing::Done { mark, token: None }, later(now, done_ttl));
        self.tell(slot, WakeKind::Done);
        Intervention::Applied
    }

    /// Grants no slot of the job for a while ([`crate::store::Store::pause`]).
    pub fn pause(
        &mut self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
        now: DateTime<Utc>,
    ) -> Intervention {
        self.pauses.insert(job.clone(), Pause { since: now, until, audit: stamped(audit, now), ended: None });
        self.tell_job(job);
        Intervention::Applied
    }

    /// Ends the pause now ([`crate::store::Store::resume`]). Its record then names who ended it, too.
    pub fn resume(&mut self, job: &JobName, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        let Some(pause) = self.pauses.get_mut(job).filter(|pause| pause.remaining(now).is_some()) else {
            return Intervention::Unchanged;
        };
        pause.until = Some(now);
        pause.ended = Some(stamped(audit, now));
        self.tell_job(job);
        Intervention::Applied
    }

    /// Every job's last pause, by name ([`crate::store::Store::pauses`]).
    pub fn pauses(&self) -> Vec<(JobName, Pause)> {
        self.pauses.iter().map(|(job, pause)| (job.clone(), pause.clone())).collect()
    }

    fn held(&self, slot: &Slot, now: DateTime<Utc>) -> Option<Intervention> {
        let placed = self.mark(slot, now)?;
        let (by, _) = placed.lease()?;
        Some(Intervention::Held { by: by.clone(), remaining: placed.remaining(now) })
    }
}

/// At the store's time.
pub(super) fn stamped(audit: &Audit, now: DateTime<Utc>) -> Audit {
    Audit { at: now, ..audit.clone() }
}
