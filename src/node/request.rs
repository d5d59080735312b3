//! What an operator asks this node to run now, and why the node does not. Pure: the store's answer to the claim comes later, and to the
//! slot's own machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::job::JobSpec;
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

    /// The job as the node's file has it, if a node with these jobs and labels may run the slot now; `past` asks also for one that has
    /// ended. A job that is disabled runs nothing by itself, and may be asked for.
    pub(crate) fn judge(
        slot: &Slot,
        past: bool,
        (jobs, labels): (&[Arc<JobSpec>], &BTreeMap<String, String>),
        now: DateTime<Utc>,
    ) -> Result<Arc<JobSpec>, Self> {
        let spec = jobs.iter().find(|spec| spec.name == *slot.job()).ok_or(Self::NotInFile)?;
        if !spec.fits(labels) {
            return Err(Self::OtherNodes);
        }
        let timetable = Timetable::of(spec).ok();
        if timetable.and_then(|timetable| timetable.slot_with_key(slot.key())).as_ref() != Some(slot) {
            return Err(Self::NoSuchSlot);
        }
        if now < slot.start() {
            return Err(Self::Early);
        }
        if now >= slot.end() && !past {
            return Err(Self::Over);
        }
        Ok(Arc::clone(spec))
    }
}
