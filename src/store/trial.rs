//! What is to be taken out of a store again: what was written only to see whether it may be, under names that nobody else has,
//! or a job or a node that is gone. Words only.

use crate::job::{JobName, NodeName};
use crate::slot::Slot;

/// A job, a node and slots: of a trial of the store, or entries of the registry that nobody needs any more. [`super::forget`]
/// removes what is kept of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The job, in the registry and with a pause.
    pub job: Option<JobName>,
    /// The node that was told of.
    pub node: Option<NodeName>,
    /// Slots of the job; where there are none, the records of all its slots stay.
    pub slots: Vec<Slot>,
}
