//! A change that may be agreed to, with the one step of the store that it takes.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::actions::Change;
use crate::job::JobName;
use crate::slot::{Audit, Slot};
use crate::store::{Intervention, Store, StoreError};

/// What somebody may agree to.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    /// It, in words.
    pub(crate) change: Change,
    /// The command that does the same: a page shows it.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the port alone shows it"))]
    pub(crate) command: String,
    /// None where there is nothing to change: the store is not asked, because nobody agreed to change what is there a moment later.
    pub(super) step: Option<StoreStep>,
}

/// A step of the store.
#[derive(Clone, Debug)]
pub(super) enum StoreStep {
    Reset(Slot),
    Unlock(Slot),
    MarkDone(Slot, Duration),
    Pause(JobName, Option<DateTime<Utc>>),
    Resume(JobName),
}

impl Proposal {
    /// Whether there is nothing to change, so that nobody need be asked.
    pub(crate) const fn is_needless(&self) -> bool {
        self.step.is_none()
    }

    /// The verb as the audit has it, which is as old as the first store.
    pub(crate) fn audited(&self) -> &'static str {
        if matches!(self.step, Some(StoreStep::MarkDone(..))) { "mark_done" } else { self.change.verb }
    }

    /// Changes it.
    pub(crate) async fn carry_out(&self, store: &dyn Store, audit: &Audit) -> Result<Intervention, StoreError> {
        match &self.step {
            None => Ok(Intervention::Unchanged),
            Some(StoreStep::Reset(slot)) => store.reset(slot, audit).await,
            Some(StoreStep::Unlock(slot)) => store.unlock(slot, audit).await,
            Some(StoreStep::MarkDone(slot, done_ttl)) => store.mark_done(slot, audit, *done_ttl).await,
            Some(StoreStep::Pause(job, until)) => store.pause(job, *until, audit).await,
            Some(StoreStep::Resume(job)) => store.resume(job, audit).await,
        }
    }
}
