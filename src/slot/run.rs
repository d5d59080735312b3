//! One run of a command: what it is told, and how it ended. Words only; `exec` makes the one of the other.

use chrono::{DateTime, Utc};

use crate::clock::Mono;
use crate::job::NodeName;
use crate::slot::{Attempt, Fence, OutputTail, Slot, Token, Trigger};

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
    /// When its keeper began to stop it, because the lease was not renewed by [`LeaseDeadline::stop_at`].
    pub lapsed: Option<Mono>,
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
        Self { status, output: OutputTail::default(), note: None, ended: None, lapsed: None }
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
}
