//! What is recorded of one attempt. Stores write it; nobody else decides its meaning.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Attempt, Lease, Token, Trigger};

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
    /// It was stopped because its lease was lost, or an operator unlocked it.
    LostLease,
    /// Nothing was heard of it any more: its node died. Never written; derived when a record is read.
    Crashed,
    /// It never began, or was drained at shutdown: the attempt was refunded.
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

/// The end of a command's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTail {
    /// The last bytes, stdout and stderr as they came; what is not UTF-8 is replaced.
    pub text: String,
    /// Bytes that came before and were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
}

impl OutputTail {
    /// Whether there was output and nothing of it was kept.
    pub const fn is_lost(&self) -> bool {
        self.text.is_empty() && self.dropped_bytes > 0
    }

    /// The same in words.
    pub fn lost(&self) -> String {
        format!("not kept: {} bytes (the store was nearly full, or output_limit is 0)", self.dropped_bytes)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
    /// When it ended, by the node's clock.
    #[serde(
        default,
        rename = "ended_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// How long the command ran, by the node's monotonic clock, in milliseconds.
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
    /// [`crate::store::Store::output`]. Stands last: stores look for it there.
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
            duration_ms: None,
            outcome: None,
            exit_code: None,
            signal: None,
            message: None,
            output: None,
        }
    }

    /// The record of a claim whose run has ended in this way, and of which no more is told.
    pub fn ended(lease: &Lease, outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::begun(lease) }
    }
}
