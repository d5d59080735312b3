//! What truly happened: every slot, every run of a command, and what was told of it. Only the judge reads it.

use chrono::{DateTime, Utc};

use crate::guard::Event as Told;
use crate::reply::ClaimAnswer;
use crate::sim::message::Process;
use crate::sim::time::Time;
use crate::slot::{Attempt, Outcome, Slot, Token, Verdict};

/// One slot.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) slot: Slot,
    /// Its first tick, delayed as the job says.
    pub(super) tick: DateTime<Utc>,
    /// Runs, in the order of their starts.
    pub(super) runs: Vec<usize>,
    /// Runs of which their node told of a doubt, a loss, a restored lease or another one in their place, or that they have no
    /// guard.
    pub(super) alarms: Vec<(Process, Attempt)>,
    /// The nodes that had the job when its tick came.
    pub(super) attended: Vec<Process>,
    /// The nodes that were told that their success is recorded, and are to tell a store again that forgets it.
    pub(super) keepers: Vec<Process>,
    /// A success was recorded, whatever became of the record.
    pub(super) was_done: bool,
    /// How often the store lost the slot's lease or its done marker.
    pub(super) losses: u32,
    /// Successes that were recorded under a lease that stood.
    pub(super) secured: u32,
    /// Successes that were told.
    pub(super) told_successes: usize,
    /// The first verdict that was recorded.
    pub(super) verdict: Option<Verdict>,
    /// Who recorded a verdict, in order.
    pub(super) recorders: Vec<Process>,
    /// The verdict was told so often.
    pub(super) announced: u32,
    /// The store lost a lease, a wait or the count of the slot.
    pub(super) lost: bool,
    /// The store lost its done marker.
    pub(super) done_lost: bool,
    /// A node ended its look at the slot for want of attempts.
    pub(super) given_up: bool,
    /// Every grant of the slot.
    pub(super) grants: u32,
    /// When a command of it could last not be started.
    pub(super) not_started: Option<Time>,
}

/// One run of a command.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) by: Process,
    pub(super) task: u64,
    pub(super) attempt: Attempt,
    pub(super) token: Token,
    pub(super) guarded: bool,
    pub(super) started: Time,
    pub(super) ended: Option<Time>,
    pub(super) code: Option<i32>,
    /// It was told to stop.
    pub(super) stopped: bool,
    /// It ended because its node died.
    pub(super) orphaned: bool,
    /// Its node was stopped while it ran.
    pub(super) paused: bool,
    /// The node heard that its end was recorded.
    pub(super) settled: bool,
    /// Later runs of the slot whose records the store lost before the end of this one was settled: no answer of the store
    /// could name them any more.
    pub(super) unnameable: Vec<Token>,
    /// It does not heed TERM.
    pub(super) stubborn: bool,
    /// Which of its ends is planned.
    pub(super) plan: u32,
}

impl Run {
    /// It did its work.
    pub(super) fn succeeded(&self) -> bool {
        self.code == Some(0) && !self.stopped && !self.orphaned
    }

    /// Both were running at some moment.
    pub(super) fn overlaps(&self, later: &Self) -> bool {
        self.ended.is_none_or(|ended| ended > later.started)
    }
}

impl Story {
    pub(super) const fn new(slot: Slot, tick: DateTime<Utc>) -> Self {
        Self {
            slot,
            tick,
            runs: Vec::new(),
            alarms: Vec::new(),
            attended: Vec::new(),
            keepers: Vec::new(),
            was_done: false,
            losses: 0,
            secured: 0,
            told_successes: 0,
            verdict: None,
            recorders: Vec::new(),
            announced: 0,
            lost: false,
            done_lost: false,
            given_up: false,
            grants: 0,
            not_started: None,
        }
    }

    /// A node told something of the slot.
    pub(super) fn hear(&mut self, by: Process, told: &Told) {
        match told {
            Told::RunEnded { outcome: Outcome::Success, .. } => self.told_successes += 1,
            Told::LeaseInDoubt { attempt, .. }
            | Told::LeaseLost { attempt, .. }
            | Told::LeaseRestored { attempt }
            | Told::Overtaken { attempt, .. }
            | Told::SettlementGivenUp { attempt, .. }
            | Told::RunEnded { outcome: Outcome::LostLease, attempt, .. }
            | Told::RunStarted { guarded: false, attempt, .. } => self.alarms.push((by, *attempt)),
            Told::AttemptsUsedUp { .. } => self.given_up = true,
            Told::ClaimAnswered { answer: ClaimAnswer::Exhausted, .. } => self.given_up = true,
            _ => {}
        }
    }
}
