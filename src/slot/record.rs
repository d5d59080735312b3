//! What is recorded of a slot, and the state that people see. Stores write these; nobody else decides their meaning.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Attempt, Outcome, RunRecord, Slot, Token};

/// Who holds, or held, a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The node.
    pub node: NodeName,
    /// Its attempt.
    pub attempt: Attempt,
}

/// The done marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneMark {
    /// Whose run succeeded.
    pub by: Holder,
    /// When it was written, by the store's clock.
    pub at: DateTime<Utc>,
    /// The token of that run; none where an operator marked the slot done, or only the verdict is left.
    pub token: Option<Token>,
}

/// What stands at the slot's key now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing.
    Free,
    /// A lease.
    Leased {
        /// Who holds it.
        by: Holder,
        /// Under which token.
        token: Token,
        /// How long it lasts unless renewed, by the store's clock.
        remaining: Duration,
    },
    /// A failed attempt's wait.
    Backoff {
        /// Whose attempt failed.
        by: Holder,
        /// Until somebody may claim.
        remaining: Duration,
    },
    /// Done.
    Done(DoneMark),
}

/// How a slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A run succeeded.
    Done,
    /// The attempts were used up and none succeeded.
    Failed,
    /// It ended and was not done, with attempts left.
    Missed,
    /// The job was paused during it and nothing ran.
    Skipped,
}

impl Verdict {
    /// Whether the slot ended without success although its job was to run.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Missed)
    }

    /// The word used in keys, JSON and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Skipped => "skipped",
        }
    }
}

/// A recorded verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// How it ended.
    pub verdict: Verdict,
    /// The node that recorded it.
    pub by: NodeName,
    /// When, by the store's clock.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// The attempt that succeeded; 0 when an operator said that it is done, and for every other verdict.
    #[serde(default)]
    pub attempt: Attempt,
}

impl VerdictRecord {
    /// The done marker that says the same, if it says `done`: what stands for a marker that the store has lost.
    pub fn done(&self) -> Option<DoneMark> {
        let by = Holder { node: self.by.clone(), attempt: self.attempt };
        (self.verdict == Verdict::Done).then_some(DoneMark { by, at: self.at, token: None })
    }
}

/// An operator's verb, with who, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// `reset`, `unlock`, `mark_done`, `pause`, `resume`, `trigger`.
    pub verb: String,
    /// The person, as the machine knows them.
    pub who: String,
    /// The host they were on.
    pub host: String,
    /// Why, in their words; may be empty.
    pub why: String,
    /// When, by the store's clock (a store overwrites it).
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
}

/// All that a store knows of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRecord {
    /// The slot.
    pub slot: Slot,
    /// The attempt counter: claims granted so far.
    pub attempts: u32,
    /// Attempts that do not count against `max_attempts`: given back, or forgiven by a reset.
    pub forgiven: u32,
    /// What stands at the slot's key.
    pub mark: Mark,
    /// How it ended, once recorded.
    pub verdict: Option<VerdictRecord>,
    /// Each attempt, in order.
    pub runs: Vec<RunRecord>,
    /// Operators' verbs, in order.
    pub audit: Vec<Audit>,
}

/// A slot's state, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// Nothing has happened yet.
    Pending,
    /// A node holds its lease.
    Running,
    /// An attempt did not succeed and there are attempts left.
    Retrying,
    /// A run succeeded.
    Done,
    /// The attempts are used up and none succeeded.
    Failed,
    /// It is over and was not done.
    Missed,
    /// The job was paused.
    Skipped,
}

impl SlotState {
    /// The word used on screens and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Skipped => "skipped",
        }
    }
}

impl SlotRecord {
    /// Whether anything ever happened in the slot.
    pub fn is_touched(&self) -> bool {
        self.attempts > 0 || self.mark != Mark::Free || self.verdict.is_some() || !self.audit.is_empty()
    }

    /// A slot that no one has touched.
    pub const fn untouched(slot: Slot) -> Self {
        Self { slot, attempts: 0, forgiven: 0, mark: Mark::Free, verdict: None, runs: Vec::new(), audit: Vec::new() }
    }

    /// Whether an operator reset it after that instant, by the store's clock.
    pub fn was_reset_after(&self, instant: DateTime<Utc>) -> bool {
        self.audit.iter().any(|audit| audit.verb == "reset" && audit.at > instant)
    }

    /// Whether an operator reset it before that instant, by the store's clock.
    pub fn was_reset_before(&self, instant: DateTime<Utc>) -> bool {
        self.audit.iter().any(|audit| audit.verb == "reset" && audit.at < instant)
    }

    /// Attempts that count against `max_attempts`.
    pub const fn used(&self) -> u32 {
        self.attempts.saturating_sub(self.forgiven)
    }

    /// The state at `now` (the store's time, or the reader's where that is not at hand). The marker is asked first, then
    /// the recorded verdict, so that a slot stays readable after its marker has expired.
    pub fn state(&self, now: DateTime<Utc>, max_attempts: u32) -> SlotState {
        let over = now >= self.slot.end();
        let recorded = self.verdict.as_ref().map(|record| record.verdict);
        match (&self.mark, recorded) {
            (Mark::Done(_), _) | (_, Some(Verdict::Done)) => SlotState::Done,
            (Mark::Leased { .. }, _) => SlotState::Running,
            (_, Some(Verdict::Failed)) => SlotState::Failed,
            (_, Some(Verdict::Missed)) => SlotState::Missed,
            (_, Some(Verdict::Skipped)) => SlotState::Skipped,
            (_, None) if self.used() >= max_attempts => SlotState::Failed,
            (_, None) if over => SlotState::Missed,
            (_, None) if self.attempts == 0 => SlotState::Pending,
            (_, None) => SlotState::Retrying,
        }
    }

    /// How an attempt ended, as it can be told now: one that has no end and is not the current lease has crashed.
    pub fn outcome_of(&self, run: &RunRecord) -> Option<Outcome> {
        let current = matches!(&self.mark, Mark::Leased { token, .. } if *token == run.token);
        run.outcome.or(if current { None } else { Some(Outcome::Crashed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Trigger;

    fn record() -> SlotRecord {
        SlotRecord::untouched(Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap())
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn holder() -> Holder {
        Holder { node: NodeName::new("n").unwrap(), attempt: 1 }
    }

    #[test]
    fn an_untouched_slot_is_pending_and_then_missed() {
        assert_eq!(record().state(at("2026-11-21T14:59:59Z"), 3), SlotState::Pending);
        assert_eq!(record().state(at("2026-11-21T15:00:00Z"), 3), SlotState::Missed);
    }

    #[test]
    fn a_slot_with_attempts_left_is_retrying_and_without_failed() {
        let retrying = SlotRecord { attempts: 1, ..record() };
        assert_eq!(retrying.state(at("2026-11-21T14:30:00Z"), 3), SlotState::Retrying);
        let failed = SlotRecord { attempts: 3, ..record() };
        assert_eq!(failed.state(at("2026-11-21T14:30:00Z"), 3), SlotState::Failed);
    }

    #[test]
    fn a_refunded_attempt_does_not_count() {
        let given_back = SlotRecord { attempts: 3, forgiven: 1, ..record() };
        assert_eq!(given_back.state(at("2026-11-21T14:30:00Z"), 3), SlotState::Retrying);
    }

    #[test]
    fn done_outlives_its_marker_by_the_recorded_verdict() {
        let verdict =
            VerdictRecord { verdict: Verdict::Done, by: holder().node, at: at("2026-11-21T14:01:00Z"), attempt: 0 };
        let expired = SlotRecord { attempts: 1, verdict: Some(verdict), ..record() };
        assert_eq!(expired.state(at("2026-11-21T20:00:00Z"), 3), SlotState::Done);
    }

    #[test]
    fn an_attempt_without_an_end_has_crashed_once_its_lease_is_gone() {
        let token = Token::from_bits(7);
        let run = RunRecord {
            attempt: 1,
            token,
            node: holder().node,
            trigger: Trigger::Schedule,
            claimed_at: at("2026-11-21T14:00:00Z"),
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
        };
        let held = Mark::Leased { by: holder(), token, remaining: Duration::from_secs(1) };
        assert_eq!(SlotRecord { mark: held, ..record() }.outcome_of(&run), None);
        assert_eq!(record().outcome_of(&run), Some(Outcome::Crashed));
    }
}
