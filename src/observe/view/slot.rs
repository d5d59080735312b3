//! One slot, and why it ran or did not, as a program reads it. Meaning is not decided here but in [`SlotRecord`].

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::job::{JobName, NodeName};
use crate::observe::view::LatestView;
use crate::slot::{
    Attempt, Audit, Fence, Mark, Outcome, OutputLoss, RunRecord, SlotRecord, SlotState, Token, Trigger, Verdict,
};

/// One slot: `show --json`, and each element of `attempts --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotView {
    /// The job's name.
    pub job: JobName,
    /// The slot's key.
    pub slot: String,
    /// Its start, inclusive.
    pub start: DateTime<Utc>,
    /// Its end, exclusive.
    pub end: DateTime<Utc>,
    /// Its state at the time of reading, by the store's clock.
    pub state: SlotState,
    /// Attempts that count against `max_attempts`.
    pub attempts: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Attempts that do not count: given back, or forgiven by a reset. The counter in the store is `attempts + forgiven`.
    pub forgiven: u32,
    /// Who holds it; null when nobody does.
    pub lease: Option<LeaseView>,
    /// Until a failed slot may be tried again; null when no wait stands.
    pub retry_in_s: Option<f64>,
    /// The done marker; null when there is none (any more).
    pub done: Option<DoneView>,
    /// The recorded verdict; null until it is recorded.
    pub verdict: Option<VerdictView>,
    /// Each attempt, in order.
    pub runs: Vec<RunView>,
    /// Operators' verbs, in order.
    pub audit: Vec<AuditView>,
    /// What its job has come to lately; null but in `show`.
    pub latest: Option<LatestView>,
}

/// Who holds a slot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaseView {
    /// The node.
    pub node: NodeName,
    /// Its attempt.
    pub attempt: Attempt,
    /// The token of its claim.
    pub token: Token,
    /// How long the lease lasts unless renewed, by the store's clock.
    pub remaining_s: f64,
}

/// The done marker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DoneView {
    /// Whose run succeeded, or who marked it done.
    pub node: NodeName,
    /// Its attempt; 0 when an operator marked it.
    pub attempt: Attempt,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
}

/// How a slot ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictView {
    /// `done`, `failed`, `missed` or `skipped`.
    pub verdict: Verdict,
    /// The node that recorded it.
    pub by: NodeName,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunView {
    /// Which claim of the slot.
    pub attempt: Attempt,
    /// The node that ran it.
    pub node: NodeName,
    /// Its fence number.
    pub fence: Fence,
    /// `schedule`, `retry`, `manual` or `exec`.
    pub trigger: Trigger,
    /// When the command was started, by the node's clock; until that is known, when its claim was granted, by the
    /// store's.
    pub started: DateTime<Utc>,
    /// When it ended, by the node's clock; null while it runs, or when its node died. The latest instant, where `ended_after` is there.
    pub ended: Option<DateTime<Utc>>,
    /// The earliest instant at which it can have ended: its node stood still from then until `ended`. Null where the end was seen.
    pub ended_after: Option<DateTime<Utc>>,
    /// `success`, `failure`, `timeout`, `killed`, `lost_lease`, `crashed` or `given_back`; null while it runs.
    pub outcome: Option<Outcome>,
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long the command ran; null where `ended_after` is there.
    pub duration_s: Option<f64>,
    /// The processor time that it used; only where `ended_after` is there.
    pub cpu_s: Option<f64>,
    /// What went wrong, in words, where an exit code does not say it.
    pub message: Option<String>,
    /// The end of its output, stdout and stderr as they came.
    pub output_tail: Option<String>,
    /// Bytes of output that came before `output_tail` and were not kept.
    pub output_dropped_bytes: u64,
    /// Why the store has less of the output than `output_limit` allows: `store_full too_large refused unanswered`; null where it has not
    /// less.
    pub output_loss: Option<OutputLoss>,
}

/// An operator's verb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditView {
    /// `reset`, `unlock`, `mark_done`, `pause`, `resume`.
    pub verb: String,
    /// The person, as the machine knows them.
    pub who: String,
    /// The host they were on.
    pub host: String,
    /// Why, in their words; may be empty.
    pub why: String,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
}

impl SlotView {
    /// The view of a record at `now`, the store's clock at the time of reading.
    pub fn of(record: &SlotRecord, now: DateTime<Utc>, max_attempts: u32) -> Self {
        let slot = &record.slot;
        Self {
            job: slot.job().clone(),
            slot: slot.key().to_string(),
            start: slot.start(),
            end: slot.end(),
            state: record.state(now, max_attempts),
            attempts: record.used(),
            max_attempts,
            forgiven: record.forgiven,
            lease: lease(&record.mark),
            retry_in_s: match &record.mark {
                Mark::Backoff { remaining, .. } => Some(seconds(*remaining)),
                _ => None,
            },
            done: done(&record.mark),
            verdict: record.verdict.as_ref().map(|told| VerdictView {
                verdict: told.verdict,
                by: told.by.clone(),
                at: told.at,
            }),
            runs: record.runs.iter().map(|run| RunView::of(record, run)).collect(),
            audit: record.audit.iter().map(AuditView::of).collect(),
            latest: None,
        }
    }
}

fn lease(mark: &Mark) -> Option<LeaseView> {
    let Mark::Leased { by, token, remaining } = mark else { return None };
    Some(LeaseView { node: by.node.clone(), attempt: by.attempt, token: *token, remaining_s: seconds(*remaining) })
}

fn done(mark: &Mark) -> Option<DoneView> {
    let Mark::Done(done) = mark else { return None };
    Some(DoneView { node: done.by.node.clone(), attempt: done.by.attempt, at: done.at })
}

/// Seconds with milliseconds, no finer: a store's TTL is not known better.
pub(super) fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}

impl RunView {
    /// The view of one attempt of a record.
    pub fn of(record: &SlotRecord, run: &RunRecord) -> Self {
        Self {
            attempt: run.attempt,
            node: run.node.clone(),
            fence: record.slot.fence(run.attempt),
            trigger: run.trigger,
            started: run.started_at.unwrap_or(run.claimed_at),
            ended: run.ended_at,
            ended_after: run.ended_after,
            cpu_s: run.cpu_ms.map(|millis| seconds(Duration::from_millis(millis))),
            outcome: record.outcome_of(run),
            exit_code: run.exit_code,
            signal: run.signal,
            duration_s: run.duration_ms.map(|millis| seconds(Duration::from_millis(millis))),
            message: run.message.clone(),
            output_tail: run.output.as_ref().map(|output| output.text.clone()),
            output_dropped_bytes: run.output.as_ref().map_or(0, |output| output.dropped_bytes),
            output_loss: run.output.as_ref().and_then(|output| output.loss),
        }
    }
}

impl AuditView {
    /// The view of one verb.
    pub fn of(audit: &Audit) -> Self {
        let Audit { verb, who, host, why, at } = audit.clone();
        Self { verb, who, host, why, at }
    }
}

/// Everything that is known to have been decided on one slot: `why --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyView {
    /// The job's name.
    pub job: JobName,
    /// The slot's key.
    pub slot: String,
    /// Its start, inclusive.
    pub start: DateTime<Utc>,
    /// Its end, exclusive.
    pub end: DateTime<Utc>,
    /// Its state.
    pub state: SlotState,
    /// What was decided, oldest first.
    pub decisions: Vec<DecisionView>,
    /// Decisions that were made and are not kept.
    pub dropped: u32,
    /// Why the decision log cannot be read, where the store holds what cronward did not write; else null.
    pub unreadable: Option<String>,
    /// The one sentence that says it all.
    pub sentence: String,
    /// The command that fixes it, or what to do where there is none; null where there is nothing to fix.
    pub fix: Option<String>,
}

/// One decision on a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionView {
    /// When, first.
    pub at: DateTime<Utc>,
    /// When last, where it was made several times in a row; else null.
    pub until: Option<DateTime<Utc>>,
    /// How often in a row.
    pub times: u32,
    /// The node; null where an operator decided.
    pub node: Option<String>,
    /// The attempt that it is about; null where it is about none.
    pub attempt: Option<Attempt>,
    /// A word for programs: `ticked asked not_selected claimed held done exhausted backoff paused blocked early closed too_late
    /// store_away started ended lease_in_doubt lease_lost lease_restored overtaken unsettled lock_waiting lock_held lock_lost
    /// lock_left config_differs verdict operator unknown`.
    pub what: &'static str,
    /// The same in words.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::{Value, json};

    use crate::slot::{Holder, OutputTail, Slot, VerdictRecord};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn node(name: &str) -> NodeName {
        NodeName::new(name).unwrap()
    }

    fn record() -> SlotRecord {
        SlotRecord::untouched(Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap())
    }

    fn run() -> RunRecord {
        RunRecord {
            attempt: 1,
            token: Token::from_bits(1),
            node: node("a"),
            trigger: Trigger::Schedule,
            claimed_at: at("2026-11-21T14:00:00Z"),
            started_at: Some(at("2026-11-21T14:00:00.020Z")),
            ended_at: Some(at("2026-11-21T14:00:00.420Z")),
            ended_after: None,
            cpu_ms: None,
            duration_ms: Some(400),
            outcome: Some(Outcome::Failure),
            exit_code: Some(1),
            signal: None,
            message: None,
            output: Some(OutputTail { text: "no route\n".to_owned(), dropped_bytes: 7, loss: None }),
        }
    }

    fn view(record: &SlotRecord) -> Value {
        serde_json::to_value(SlotView::of(record, at("2026-11-21T14:10:00Z"), 3)).unwrap()
    }

    #[test]
    fn the_json_of_a_slot_has_exactly_the_promised_fields() {
        let by = Holder { node: node("b"), attempt: 2 };
        let running = SlotRecord {
            attempts: 2,
            mark: Mark::Leased { by, token: Token::from_bits(0xff), remaining: Duration::from_micros(41_200_400) },
            runs: vec![run()],
            ..record()
        };
        assert_eq!(
            view(&running),
            json!({
                "job": "billing", "slot": "2026-11-21T14Z",
                "start": "2026-11-21T14:00:00Z", "end": "2026-11-21T15:00:00Z",
                "state": "running", "attempts": 2, "max_attempts": 3, "forgiven": 0,
                "lease": {
                    "node": "b", "attempt": 2, "token": "000000000000000000000000000000ff", "remaining_s": 41.2
                },
                "retry_in_s": null, "done": null, "verdict": null, "latest": null,
                "runs": [{
                    "attempt": 1, "node": "a", "fence": 1_795_269_600_001_u64, "trigger": "schedule",
                    "started": "2026-11-21T14:00:00.020Z", "ended": "2026-11-21T14:00:00.420Z",
                    "ended_after": null, "cpu_s": null,
                    "outcome": "failure", "exit_code": 1, "signal": null, "duration_s": 0.4, "message": null,
                    "output_tail": "no route\n", "output_dropped_bytes": 7, "output_loss": null
                }],
                "audit": []
            })
        );
    }

    #[test]
    fn a_field_that_has_nothing_to_say_is_null_and_still_there() {
        let untouched = view(&record());
        for field in ["lease", "retry_in_s", "done", "verdict"] {
            assert_eq!(untouched.get(field), Some(&Value::Null), "{field}");
        }
        let begun = RunRecord { started_at: None, ended_at: None, outcome: None, exit_code: None, ..run() };
        let crashed = view(&SlotRecord { attempts: 1, runs: vec![begun], ..record() });
        assert_eq!(crashed["runs"][0]["started"], json!("2026-11-21T14:00:00Z"), "the claim, until the start is known");
        assert_eq!(crashed["runs"][0]["ended"], Value::Null);
        assert_eq!(crashed["runs"][0]["outcome"], json!("crashed"));
    }

    #[test]
    fn attempts_are_those_that_count() {
        let reset = view(&SlotRecord { attempts: 3, forgiven: 3, ..record() });
        assert_eq!(
            (&reset["attempts"], &reset["forgiven"], &reset["state"]),
            (&json!(0), &json!(3), &json!("retrying"))
        );
    }

    #[test]
    fn a_verdict_names_who_recorded_it() {
        let verdict =
            VerdictRecord { verdict: Verdict::Missed, by: node("a"), at: at("2026-11-21T15:00:01Z"), attempt: 0 };
        let missed = view(&SlotRecord { verdict: Some(verdict), ..record() });
        assert_eq!(missed["verdict"], json!({"verdict": "missed", "by": "a", "at": "2026-11-21T15:00:01Z"}));
        assert_eq!(missed["state"], json!("missed"));
    }
}
