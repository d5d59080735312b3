//! The takeover from earlier nodes: a node that starts reads the registry before its heartbeats replace the reports there.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Mono;
use crate::job::JobName;
use crate::slot::SlotKey;
use crate::store::handover;

/// How far the node has come in taking over from those before it.
#[derive(Debug)]
pub(super) enum FirstContact {
    /// The registry of nodes is not read yet; the instant is when to ask (again).
    Unread(Option<Mono>),
    /// It is being read.
    Asked,
    /// It was read. The registry of jobs comes next.
    Read {
        /// Which of each job's slots are closed.
        closed: BTreeMap<JobName, handover::Closed>,
        /// The slots that dead nodes ran when they were last alive.
        left: BTreeSet<(JobName, SlotKey)>,
    },
    /// The closer knows where to begin; heartbeats may take the place of the earlier ones.
    Over,
}
