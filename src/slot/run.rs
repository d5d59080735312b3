//! One run of a command: what it is told, how it ended, and what is recorded of the attempt. Words only: `exec` makes the end of
//! the beginning, stores write the record, and nobody else decides its meaning.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::Mono;
use crate::job::NodeName;
use crate::resource::{LockHold, OwnerId};
use crate::slot::{Attempt, Fence, Lease, OutputLoss, OutputTail, Slot, Token, Trigger};

/// What a command is told of its run, as `CRONWARD_*` variables and placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunContext {
    /// `CRONWARD_JOB`, `_SLOT`, `_SLOT_START`, `_SLOT_END`.
    pub slot: Slot,
    /// `CRONWARD_SCHEDULED_AT`: the tick, or when the run was asked for.
    pub scheduled_at: DateTime<Utc>,
    /// `CRONWARD_ATTEMPT`; 0 for a run without a guard.
    pub attempt: Attempt,
    /// `CRONWARD_MAX_ATTEMPTS`.
    pub max_attempts: u32,
    /// `CRONWARD_FENCE`.
    pub fence: Fence,
    /// `CRONWARD_FENCE_REVISION`: [`crate::slot::Lease::revision`]; only where the store has one.
    pub fence_revision: Option<u64>,
    /// `CRONWARD_RUN_ID`: unique for each start; not the lease's token.
    pub run_id: String,
    /// `CRONWARD_NODE`.
    pub node: NodeName,
    /// `CRONWARD_TRIGGER`.
    pub trigger: Trigger,
    /// `CRONWARD_DEADLINE`: when `timeout` stops it; none when it may run for ever.
    pub deadline: Option<DateTime<Utc>>,
    /// `CRONWARD_LEASE_TOKEN`: by it a nested `cronward exec` of the same slot knows that it runs under this lease; none for a
    /// run without a guard.
    pub token: Option<Token>,
    /// `CRONWARD_LEASE_HELD`: false for a run without a guard (`on_store_error = "run"`).
    pub lease_held: bool,
    /// What it holds besides its slot; none for nothing.
    pub locks: Option<RunLocks>,
}

/// What a command is told of the locks that it runs under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLocks {
    /// `CRONWARD_LOCKS`: their names, with spaces between.
    pub names: String,
    /// `CRONWARD_LOCK_FENCE`: one number for all of them.
    pub fence: Fence,
    /// `CRONWARD_LOCK_OWNER`: by it what runs within takes them again.
    pub owner: OwnerId,
}

impl RunLocks {
    /// Of what is held.
    pub fn of(hold: &LockHold) -> Self {
        let names: Vec<String> = hold.demands.names().iter().map(ToString::to_string).collect();
        Self { names: names.join(" "), fence: hold.fence, owner: hold.owner }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its status.
    pub status: ExitStatus,
    /// The end of its output.
    pub output: OutputTail,
    /// What else is worth telling, such as processes that it left behind and that were killed.
    pub note: Option<String>,
    /// When the command itself ended, by the node's monotonic clock: its keeper saw it, and whoever is told of it may have
    /// stood still since. None where nobody knows better than whoever is told.
    pub ended: Option<Mono>,
    /// Its keeper stood still and found it ended afterwards: what is known instead of the instant.
    pub standstill: Option<Standstill>,
    /// When its keeper began to stop it, because the lease was not renewed by [`LeaseDeadline::stop_at`].
    pub lapsed: Option<Mono>,
}

/// What is known of a command whose keeper stood still while it ended: it ended after `seen`, and before [`Exit::ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// The last instant at which its keeper saw it run, by the node's monotonic clock.
    pub seen: Mono,
    /// The processor time that it used, with that of the processes that it waited for.
    pub cpu: Duration,
}

/// By when a command has to be over whose lease is not renewed, by the node's monotonic clock. Its keeper goes by it, also
/// while nobody else on the node does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseDeadline {
    /// TERM is sent.
    pub stop_at: Mono,
    /// KILL is sent: from here on another node may soon hold the lease.
    pub kill_at: Mono,
}

impl Exit {
    /// This status and nothing else.
    pub fn of(status: ExitStatus) -> Self {
        Self { status, output: OutputTail::default(), note: None, ended: None, standstill: None, lapsed: None }
    }
}

/// The exit code of a run whose output was lost, where the command itself had succeeded: `EX_IOERR`.
pub const OUTPUT_LOST: u8 = 74;

/// The status of an ended command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It exited as one that succeeds, and its output could not be written: a failure with [`OUTPUT_LOST`], whichever exit codes
    /// mean success.
    OutputLost,
    /// It was never started.
    NotStarted {
        /// 127 when it was not found, otherwise 126.
        code: i32,
        /// Why, naming the program.
        message: String,
    },
    /// It was never started, because this machine lacked a resource for any command: a process, a descriptor, memory.
    NoResources {
        /// Why, naming what could not be started.
        message: String,
    },
}

/// The exit code of a command that was not started, where no other is known: as shells have it.
pub const NOT_STARTED: i32 = 126;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The command exited with one of its success codes.
    Success,
    /// It exited otherwise, or could not be started.
    Failure,
    /// It ran out of `timeout` and was stopped.
    Timeout,
    /// A signal that cronward did not send ended it.
    Killed,
    /// It was stopped because its lease or a lock was lost, or an operator unlocked it.
    LostLease,
    /// Nothing was heard of it any more: its node died. Never written; derived when a record is read.
    Crashed,
    /// It never began, could not be started for want of a resource, or was drained at shutdown: the attempt was refunded.
    GivenBack,
}

impl Outcome {
    /// The word used in keys, JSON and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
            Self::Killed => "killed",
            Self::LostLease => "lost_lease",
            Self::Crashed => "crashed",
            Self::GivenBack => "given_back",
        }
    }
}

/// What stands in place of a message that the store refused.
const REFUSED_MESSAGE: &str = "the store refused the message of this run";

/// One attempt, as it is stored (JSON; one per attempt). What is not known yet is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which claim of the slot.
    pub attempt: Attempt,
    /// Whose token it ran under.
    pub token: Token,
    /// The node that ran it.
    pub node: NodeName,
    /// Why it was made.
    pub trigger: Trigger,
    /// When the claim was granted, by the store's clock.
    #[serde(rename = "claimed_ms", with = "chrono::serde::ts_milliseconds")]
    pub claimed_at: DateTime<Utc>,
    /// When the command was started, by the node's clock.
    #[serde(
        default,
        rename = "started_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended, by the node's clock; the latest instant at which it can have, where `ended_after` is there.
    #[serde(
        default,
        rename = "ended_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// The earliest instant at which it can have ended, by the node's clock: its node stood still from then until `ended_at`. Absent
    /// where the end was seen.
    #[serde(
        default,
        rename = "ended_after_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_after: Option<DateTime<Utc>>,
    /// The processor time that it used, in milliseconds; only where `ended_after` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// How long the command ran, by the node's monotonic clock, in milliseconds; absent where `ended_after` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How it ended; absent while it runs, or when its node died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The command's exit code; 126 and 127 when it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What went wrong, in words, where an exit code does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The end of its output. A record that was read from a store has none here, unless nothing of the output was kept: see
    /// [`crate::store::Store::output`]. What is dropped of it for the store's sake is counted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputTail>,
}

impl RunRecord {
    /// The record of a claim at the moment of its grant: how its run began and ended is not known yet.
    pub fn begun(lease: &Lease) -> Self {
        Self {
            attempt: lease.attempt,
            token: lease.token,
            node: lease.node.clone(),
            trigger: lease.trigger,
            claimed_at: lease.claimed_at,
            started_at: None,
            ended_at: None,
            ended_after: None,
            cpu_ms: None,
            duration_ms: None,
            outcome: None,
            exit_code: None,
            signal: None,
            message: None,
            output: None,
        }
    }

    /// Between which instants it ended, where its node stood still meanwhile.
    pub fn ended_between(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        self.ended_after.zip(self.ended_at)
    }

    /// The same with the end of its output whose JSON has at most so many bytes.
    pub fn bounded(&self, most: usize) -> Self {
        let output = self.output.as_ref().map(|output| output.bounded(most));
        Self { output, ..self.clone() }
    }

    /// Leaves out what a store may refuse of it: the output first, then the message. False where nothing was left to leave out.
    pub(crate) fn lighten(&mut self, loss: OutputLoss) -> bool {
        if self.drop_output(loss) {
            return true;
        }
        let message = self.message.replace(REFUSED_MESSAGE.to_owned());
        if message.is_none() {
            self.message = None;
        }
        message.is_some_and(|message| message != REFUSED_MESSAGE)
    }

    /// Drops its output. False where there was none.
    pub(crate) fn drop_output(&mut self, loss: OutputLoss) -> bool {
        self.output.as_mut().is_some_and(|output| output.drop_text(loss))
    }

    /// What of its output stands in the record itself: only that nothing of it was kept.
    pub(crate) fn lost_output(&self) -> Option<OutputTail> {
        self.output.clone().filter(OutputTail::is_lost)
    }

    /// The record of a claim whose run has ended in this way, and of which no more is told.
    pub fn ended(lease: &Lease, outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::begun(lease) }
    }
}
