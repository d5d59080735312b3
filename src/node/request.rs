//! What an operator asks this node to run now, and why the node does not. Pure: the store's answer to the claim comes later, and to the
//! slot's own machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::job::JobSpec;
use crate::node::plan::Plan;
use crate::schedule::Timetable;
use crate::slot::{Audit, Slot};

/// A slot that is to run here, now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerRequest {
    /// The slot.
    pub slot: Slot,
    /// Also where it has ended.
    pub past: bool,
    /// Who asks, from where and why: the store records it with the grant.
    pub audit: Audit,
}

/// Why the node does not run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerRefusal {
    /// Nothing begins here any more.
    #[error("this node is shutting down")]
    Leaving,
    /// The file of this node lacks the job, so there is no command to run.
    #[error("the file of this node does not have the job")]
    NotInFile,
    /// The job is for nodes with other labels.
    #[error("the job does not run on this node: its only_on names other labels")]
    OtherNodes,
    /// By the file of this node the job has no such slot.
    #[error("the job has no such slot by the file of this node")]
    NoSuchSlot,
    /// It has not begun.
    #[error("the slot has not begun")]
    Early,
    /// It has ended, and that was not asked for.
    #[error("the slot has ended")]
    Over,
    /// This node runs it already, or waits to run it.
    #[error("this node is already running the slot, or waiting to run it")]
    Driven,
}

impl TriggerRefusal {
    /// Whether another node may take it.
    pub const fn is_of_this_node(self) -> bool {
        matches!(self, Self::Leaving | Self::NotInFile | Self::OtherNodes | Self::NoSuchSlot)
    }
}

impl TriggerRequest {
    /// The job as the plan has it, if a node with these labels may run the slot now. A job that is disabled runs nothing by itself, and
    /// may be asked for.
    pub(super) fn judge(
        &self,
        plan: &Plan,
        labels: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> Result<Arc<JobSpec>, TriggerRefusal> {
        let spec = plan.jobs.iter().find(|spec| spec.name == *self.slot.job()).ok_or(TriggerRefusal::NotInFile)?;
        if !spec.only_on.iter().all(|(label, value)| labels.get(label) == Some(value)) {
            return Err(TriggerRefusal::OtherNodes);
        }
        let timetable = Timetable::of(spec).ok();
        if timetable.and_then(|timetable| timetable.slot_with_key(self.slot.key())).as_ref() != Some(&self.slot) {
            return Err(TriggerRefusal::NoSuchSlot);
        }
        if now < self.slot.start() {
            return Err(TriggerRefusal::Early);
        }
        if now >= self.slot.end() && !self.past {
            return Err(TriggerRefusal::Over);
        }
        Ok(Arc::clone(spec))
    }
}
