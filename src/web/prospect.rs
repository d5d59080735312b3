//! One action that is wanted, and what would be done, as things stand: what a page asks about before, and what is judged.

use chrono::{DateTime, Utc};

use crate::admin::IdleReason;
use crate::admin::actions::{Proposal, Verb};
use crate::admin::lookup::SlotRef;
use crate::job::JobName;
use crate::observe::view::{NoStart, SlotView};
use crate::slot::SlotRecord;
use crate::web::problem::Problem;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedAction {
    pub(super) verb: Verb,
    pub(super) target: ActionTarget,
    /// Also a slot that has ended.
    pub(super) past: bool,
    /// The end of a pause, as it was written.
    pub(super) until: Option<String>,
}

/// Of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ActionTarget {
    Slot(SlotRef),
    Job(JobName),
}

/// What would be done, as things stand.
pub(super) struct Prospect {
    pub(super) job: JobName,
    /// Of a slot.
    pub(super) record: Option<SlotRecord>,
    pub(super) max_attempts: u32,
    /// Why the slot is neither due nor missed, where that is so.
    pub(super) idle: Option<IdleReason>,
    /// Why no node starts it by itself, though it lasts.
    pub(super) no_start: Option<NoStart>,
    /// The job of the slot is paused.
    pub(super) paused: bool,
    /// Why it would be refused, where that is known.
    pub(super) refused: Option<Problem>,
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    pub(super) proposal: Proposal,
    /// Whether it is done with a reason alone.
    pub(super) needs_reason: bool,
    pub(super) doer: Doer,
}

/// Who does it.
pub(super) enum Doer {
    /// The store, in a step.
    Store,
    /// This node, once the attempts do not count any more where they were used up.
    Node { past: bool, resets: Option<Box<Proposal>> },
}

impl Prospect {
    /// The slot for programs.
    pub(super) fn slot_view(&self) -> Option<SlotView> {
        self.record.as_ref().map(|record| SlotView::of(record, self.now, self.max_attempts))
    }

    /// The word of its state.
    pub(super) fn state(&self) -> Option<&'static str> {
        self.record.as_ref().map(|record| record.state(self.now, self.max_attempts).as_str())
    }
}
