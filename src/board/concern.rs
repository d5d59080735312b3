//! What needs a person, and since when. Nothing is decided here of what to do about it.

use std::cmp::Reverse;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::job::{JobName, NodeName};
use crate::slot::{Outcome, SlotKey, Verdict};

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Concern {
    /// Since when, by the store's clock.
    pub since: DateTime<Utc>,
    /// What.
    #[serde(flatten)]
    pub what: ConcernKind,
}

/// What needs a person. In JSON its word stands in `concern`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "concern", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConcernKind {
    /// The store does not answer this node.
    StoreAway {
        /// In one line, without secrets.
        error: String,
    },
    /// The store refuses this node, and waiting is no cure.
    StoreRefuses {
        /// In one line, without secrets.
        error: String,
    },
    /// The store answers those who look, and this node cannot use it: a full store reads and does not write.
    StoreUnusable {
        /// In one line, without secrets.
        error: String,
    },
    /// The store holds what cannot be read. Everything else is shown without it.
    Unreadable {
        /// The job that it is about; null where it is about the cluster.
        job: Option<JobName>,
        /// The newest slot of these; null where it is none of a slot.
        slot: Option<SlotKey>,
        /// How many records they are.
        records: u32,
        /// Where and why, in one line, without secrets.
        error: String,
    },
    /// Slots of a job ended without success and no newer one is done, or the attempts of one are used up.
    Failing {
        /// The job.
        job: JobName,
        /// The newest of these slots.
        slot: SlotKey,
        /// Its verdict: failed or missed.
        verdict: Verdict,
        /// How many slots they are.
        slots: u32,
        /// How the newest ended, where that was read.
        fault: Option<Fault>,
        /// A later slot is being run or tried: perhaps it mends itself.
        trying: bool,
        /// The newest is not over, and no node starts it again: its start deadline has passed.
        too_late: bool,
    },
    /// The last success of a job is older than its `alert_after`.
    Late {
        /// The job.
        job: JobName,
        /// When it was done last; null where it never was.
        last_success: Option<DateTime<Utc>>,
        /// How old that may be.
        #[serde(rename = "alert_after_s", serialize_with = "seconds")]
        alert_after: Duration,
    },
    /// A node is not heard of any more, and was not stopped.
    NodeLost {
        /// The node.
        node: NodeName,
        /// What it ran, as `job@slot`.
        running: Vec<String>,
    },
    /// A message was not delivered.
    Undelivered {
        /// The job that it is about; null where it is about the cluster.
        job: Option<JobName>,
        /// To whom.
        sink: String,
        /// Why not, as far as is known.
        error: String,
        /// How many were not, for the same reason.
        messages: u32,
    },
    /// A node's clock and the store's differ by more than two seconds.
    ClockOff {
        /// The node.
        node: NodeName,
        /// The node's minus the store's.
        offset_s: f64,
    },
    /// A node runs another file than most do.
    FilesDiffer {
        /// The node.
        node: NodeName,
        /// The jobs that it has in another form, or does not have, or alone has.
        jobs: Vec<JobName>,
    },
    /// A node has an older time zone database than another.
    ZonesOld {
        /// The node.
        node: NodeName,
        /// The release that it has.
        zones: String,
    },
    /// Nodes run different versions.
    VersionsDiffer {
        /// Each version that is run.
        versions: Vec<String>,
    },
}

/// How the newest attempt of a slot ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Attempts that counted.
    pub attempts: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// The node of the last; null where there was none.
    pub node: Option<NodeName>,
    /// How the last ended.
    pub outcome: Option<Outcome>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
    /// The last line of its output, made fit to be shown; null where none was read.
    pub last_line: Option<String>,
}

impl Concern {
    /// The order in which they are shown: what nobody but a person mends comes first, and of the same kind the newest.
    pub(super) fn rank(&self) -> (u8, Reverse<DateTime<Utc>>) {
        let rank = match &self.what {
            ConcernKind::StoreAway { .. } | ConcernKind::StoreRefuses { .. } | ConcernKind::StoreUnusable { .. } => 0,
            ConcernKind::Unreadable { .. } => 1,
            ConcernKind::Failing { trying: false, .. } => 2,
            ConcernKind::Failing { trying: true, .. } => 3,
            ConcernKind::Late { .. } => 4,
            ConcernKind::NodeLost { .. } => 5,
            ConcernKind::Undelivered { .. } => 6,
            ConcernKind::ClockOff { .. } => 7,
            ConcernKind::FilesDiffer { .. } => 8,
            ConcernKind::ZonesOld { .. } => 9,
            ConcernKind::VersionsDiffer { .. } => 10,
        };
        (rank, Reverse(self.since))
    }

    /// How many messages were not delivered, where the other is about one that was not either: to the same sink, for the same reason.
    pub(super) fn messages_of_the_same(&mut self, other: &Self) -> Option<&mut u32> {
        let ConcernKind::Undelivered { sink, error, .. } = &other.what else { return None };
        match &mut self.what {
            ConcernKind::Undelivered { sink: to, error: why, messages, .. } if to == sink && why == error => {
                Some(messages)
            }
            _ => None,
        }
    }

    /// The job that it is about; none where it is the cluster.
    pub fn job(&self) -> Option<&JobName> {
        match &self.what {
            ConcernKind::Failing { job, .. } | ConcernKind::Late { job, .. } => Some(job),
            ConcernKind::Undelivered { job, .. } | ConcernKind::Unreadable { job, .. } => job.as_ref(),
            _ => None,
        }
    }
}

fn seconds<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64())
}
