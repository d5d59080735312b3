//! What a node's machine wants done, and what it is told of it: plain data.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chrono::{DateTime, Utc};

use crate::clock::Now;
use crate::drive::Message;
use crate::event::Event;
use crate::job::{JobName, JobSpec};
use crate::slot::{Audit, Decision, Slot, SlotKey, SlotRecord, Trigger, Verdict};
use crate::store::{Closing, HeartbeatReply, JobEntry, NodeEntry, NodeReport, StoreError};

/// Names the drive of a slot: a slot may be driven again after an operator opened it.
pub type DriveId = u64;

/// What is wanted, in order.
pub(super) type Outbox = VecDeque<Action>;

/// Room that an empty outbox keeps: what thousands of jobs filled at once is given back.
const KEPT: usize = 64;

/// What is to be done next.
pub(super) fn next(out: &mut Outbox) -> Option<Action> {
    let next = out.pop_front();
    if next.is_none() {
        out.shrink_to(KEPT);
    }
    next
}

/// What a node's machine wants done.
#[derive(Debug)]
pub enum Action {
    /// Ask the store. Its answer is a [`Report`].
    Ask(Question),
    /// Begin to drive a slot.
    Start(Start),
    /// Tell the drive of a slot.
    Tell(DriveId, Message),
    /// Tell every drive.
    TellAll(Message),
    /// Something happened to the node.
    Emit(Event),
    /// This node recorded the verdict of a slot, or may have.
    Announce(Slot, Verdict),
    /// Note a decision, for `cronward why`.
    Note(Slot, Decision),
    /// The wall clock runs ahead of the store's by so many milliseconds: from now on the node's clock is without them. Every
    /// drive is told that it was put right.
    CorrectClock { ahead_ms: i64 },
    /// Another plan is in force.
    PlanTaken,
    /// Hints were lost: tell the store again what was done here and it has forgotten.
    AssertAgain,
}

/// A slot to be driven.
#[derive(Debug)]
pub struct Start {
    pub id: DriveId,
    pub spec: Arc<JobSpec>,
    pub slot: Slot,
    pub scheduled_at: DateTime<Utc>,
    pub trigger: Trigger,
    /// It was asked for by name although it has ended.
    pub past: bool,
    /// Who asked for it; nobody where a schedule did.
    pub audit: Option<Audit>,
    /// Where the drive shows whether it may be running its command.
    pub holding: Arc<AtomicBool>,
}

/// A question to the store that is no slot's.
#[derive(Debug)]
pub enum Question {
    /// The registry of nodes.
    Nodes,
    /// A sign of life. `looks`: whether another node of this name is looked for first.
    Heartbeat { report: Box<NodeReport>, looks: bool },
    /// The registration of the plan with this number.
    Register { plan: u64, jobs: Vec<JobEntry> },
    /// The verdict of a slot that has ended.
    Close { slot: Slot, max_attempts: u32 },
    /// What is known of slots that have ended here.
    Look(Vec<Slot>),
    /// Take away old records. Nobody waits for the answer.
    Purge,
    /// Hand over what was noted. Nobody waits for the answer.
    Note,
}

/// What came of a question.
#[derive(Debug)]
pub enum Report {
    /// The registry of nodes, with the machine's own clocks before and after.
    Nodes { sent: Now, received: Now, reply: Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> },
    /// A heartbeat, with the machine's own clocks before and after; and what was found where it looked at the other nodes.
    Heartbeat { sent: Now, received: Now, reply: Result<HeartbeatReply, StoreError>, looked: Option<Looked> },
    /// The registration of the plan with this number.
    Registered { plan: u64, reply: Result<Vec<JobEntry>, StoreError> },
    /// A verdict.
    Closed { slot: Slot, reply: Result<Closing, StoreError> },
    /// What is known of slots.
    Looked(Result<Vec<SlotRecord>, StoreError>),
}

/// What a look at the registry of nodes has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The report of another live node of the same name.
    pub namesake: Option<Box<NodeReport>>,
    /// What dead nodes ran when they were heard of last.
    pub left: BTreeSet<(JobName, SlotKey)>,
}

impl Report {
    /// Whether the store answered.
    #[cfg(feature = "daemon")]
    pub(super) const fn is_answer(&self) -> bool {
        match self {
            Self::Nodes { reply, .. } => reply.is_ok(),
            Self::Heartbeat { reply, .. } => reply.is_ok(),
            Self::Registered { reply, .. } => reply.is_ok(),
            Self::Closed { reply, .. } => reply.is_ok(),
            Self::Looked(reply) => reply.is_ok(),
        }
    }
}
