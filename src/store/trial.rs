//! What was written only to see whether it may be: names that nobody else has, so that all of it can be taken away again.
//! Words only.

use crate::job::{JobName, NodeName};
use crate::slot::Slot;

/// A job, a node and slots that exist for a trial of the store. [`super::forget`] removes what is kept of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The job, in the registry and with a pause.
    pub job: JobName,
    /// The node that was told of.
    pub node: NodeName,
    /// Slots of the job.
    pub slots: Vec<Slot>,
}
