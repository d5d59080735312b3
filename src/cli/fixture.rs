//! Records made by hand, for tests of what is shown.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};
use crate::slot::{
    Audit, DoneMark, Holder, Mark, Outcome, OutputTail, RunRecord, Slot, SlotRecord, Token, Trigger, Verdict,
    VerdictRecord,
};
use crate::store::{JobEntry, JobOrigin, NodeReport, Pause};

/// Twelve minutes into the slot of every record here.
pub(crate) const NOON: &str = "2026-11-21T12:12:00Z";

pub(crate) fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(crate) fn entry(name: &str) -> JobEntry {
    JobEntry {
        name: JobName::new(name).unwrap(),
        schedule: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        origin: JobOrigin::File,
        first_seen: at("2026-11-01T00:00:00Z"),
    }
}

/// What a node without jobs says of itself.
pub(crate) fn report(name: &str, started_at: DateTime<Utc>) -> NodeReport {
    NodeReport {
        version: "0.1.0".to_owned(),
        config_hash: "c0ffee".to_owned(),
        ..NodeReport::new(node(name), "i1", started_at)
    }
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn token(attempt: u32) -> Token {
    Token::from_bits(u128::from(attempt))
}

pub(crate) fn untouched() -> SlotRecord {
    SlotRecord::untouched(Slot::parse("billing", "2026-11-21T12Z", "2026-11-21T13Z").unwrap())
}

/// An attempt that was claimed and of which no more is known.
pub(crate) fn begun(attempt: u32, node_name: &str) -> RunRecord {
    RunRecord {
        attempt,
        token: token(attempt),
        node: node(node_name),
        trigger: if attempt == 1 { Trigger::Schedule } else { Trigger::Retry },
        claimed_at: at("2026-11-21T12:00:00Z") + chrono::TimeDelta::minutes(i64::from(attempt) - 1),
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

/// An attempt that ended after 1.5 s.
pub(crate) fn ended(attempt: u32, node_name: &str, outcome: Outcome, exit_code: i32) -> RunRecord {
    let run = begun(attempt, node_name);
    let started = run.claimed_at + chrono::TimeDelta::milliseconds(20);
    RunRecord {
        started_at: Some(started),
        ended_at: Some(started + chrono::TimeDelta::milliseconds(1_500)),
        duration_ms: Some(1_500),
        outcome: Some(outcome),
        exit_code: Some(exit_code),
        output: Some(OutputTail { text: format!("attempt {attempt}\nno \x1b[31mroute\n"), dropped_bytes: 0 }),
        ..run
    }
}

/// The second attempt runs on node b.
pub(crate) fn running() -> SlotRecord {
    let by = Holder { node: node("b"), attempt: 2 };
    SlotRecord {
        attempts: 2,
        mark: Mark::Leased { by, token: token(2), remaining: Duration::from_millis(41_200) },
        runs: vec![ended(1, "a", Outcome::Failure, 1), begun(2, "b")],
        ..untouched()
    }
}

/// One attempt failed; its wait stands.
pub(crate) fn waiting() -> SlotRecord {
    let by = Holder { node: node("a"), attempt: 1 };
    SlotRecord {
        attempts: 1,
        mark: Mark::Backoff { by, remaining: Duration::from_millis(8_400) },
        runs: vec![ended(1, "a", Outcome::Failure, 1)],
        ..untouched()
    }
}

pub(crate) fn done() -> SlotRecord {
    let by = Holder { node: node("a"), attempt: 1 };
    let when = at("2026-11-21T12:00:02Z");
    SlotRecord {
        attempts: 1,
        mark: Mark::Done(DoneMark { by, at: when }),
        verdict: Some(VerdictRecord { verdict: Verdict::Done, by: node("a"), at: when, attempt: 1 }),
        runs: vec![ended(1, "a", Outcome::Success, 0)],
        ..untouched()
    }
}

/// The first attempt failed, the second's node died, the third ran out of time; an operator looked at it.
pub(crate) fn failed() -> SlotRecord {
    let timeout = RunRecord {
        exit_code: None,
        signal: Some(15),
        message: Some("stopped after 30m".to_owned()),
        output: Some(OutputTail { text: (1..=15).map(|n| format!("line {n}\n")).collect(), dropped_bytes: 4_096 }),
        ..ended(3, "c", Outcome::Timeout, 0)
    };
    SlotRecord {
        attempts: 3,
        runs: vec![ended(1, "a", Outcome::Failure, 1), begun(2, "b"), timeout],
        audit: vec![audit("unlock")],
        ..untouched()
    }
}

pub(crate) fn audit(verb: &str) -> Audit {
    Audit {
        verb: verb.to_owned(),
        who: "alice".to_owned(),
        host: "ops-1".to_owned(),
        why: "node b is\ngone".to_owned(),
        at: at("2026-11-21T12:02:30Z"),
    }
}

pub(crate) fn pause() -> Pause {
    Pause { since: at("2026-11-21T11:00:00Z"), until: None, audit: audit("pause"), ended: None }
}
