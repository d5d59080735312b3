//! A checker that finds nothing proves nothing: what two real nodes wrote in seventy seconds, each with one thing about it
//! that cannot be, has to be found, by the rule that is there for it.
//!
//! `recorded.jsonl` is the journals of both nodes, without the answers that somebody else holds a slot: `quick` is done at
//! once, `flaky` by its second attempt, `hopeless` by neither of two, and `long` takes four seconds and is killed when its
//! lease is lost.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use cronward::verify::{Inputs, Report, check};
use serde_json::Value;

const RECORDED: &str = include_str!("recorded.jsonl");

/// Slots amid the time in which both nodes were there.
const QUICK: &str = "quick@2026-11-21T21:41:30Z";
const FLAKY: &str = "flaky@2026-11-21T21:41:20Z";
const HOPELESS: &str = "hopeless@2026-11-21T21:41Z";
const LONG: &str = "long@2026-11-21T21:41:20Z";

struct Recorded {
    lines: Vec<Value>,
    recorder: String,
    faults: String,
}

impl Recorded {
    fn new() -> Self {
        let lines = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { lines, recorder: String::new(), faults: String::new() }
    }

    /// The places of a slot's lines of some event.
    fn of(&self, slot: &str, event: &str) -> Vec<usize> {
        let (job, key) = slot.split_once('@').unwrap();
        let is = |line: &Value| line["job"] == job && line["slot"] == key && (event == "*" || line["event"] == event);
        (0..self.lines.len()).filter(|index| is(&self.lines[*index])).collect()
    }

    /// The place of the last one.
    fn last(&self, slot: &str, event: &str) -> usize {
        *self.of(slot, event).last().unwrap()
    }

    fn without(mut self, slot: &str, event: &str) -> Self {
        let gone = self.of(slot, event);
        assert!(!gone.is_empty(), "{slot} {event}");
        let mut index = 0;
        self.lines.retain(|_| {
            index += 1;
            !gone.contains(&(index - 1))
        });
        self
    }

    fn with(mut self, slot: &str, event: &str, change: impl Fn(&mut Value)) -> Self {
        let index = self.last(slot, event);
        change(&mut self.lines[index]);
        self
    }

    /// A copy of a slot's last line of an event, changed.
    fn copied(mut self, slot: &str, event: &str, change: impl Fn(&mut Value)) -> Self {
        let mut line = self.lines[self.last(slot, event)].clone();
        change(&mut line);
        self.lines.push(line);
        self
    }

    /// Another run of a slot by the other node, so many milliseconds after the one that there was.
    fn again(self, slot: &str, ms: i64, number: impl Fn(u64) -> u64) -> Self {
        ["granted", "run_started", "run_ended", "settled"].into_iter().fold(self, |recorded, event| {
            let other = recorded.lines[recorded.last(slot, "granted")]["node"].clone();
            let other = if other == "a" { "b" } else { "a" };
            let instance = recorded.lines.iter().find(|line| line["node"] == other).unwrap()["instance"].clone();
            // Of the run that there was, and not of the one that this adds.
            let original =
                recorded.of(slot, event).into_iter().rfind(|index| recorded.lines[*index]["added"].is_null());
            let Some(mut line) = original.map(|index| recorded.lines[index].clone()) else { return recorded };
            shift(&mut line, ms);
            (line["node"], line["instance"], line["added"]) = (other.into(), instance, true.into());
            for field in ["attempt", "used", "fence"] {
                if let Some(old) = line[field].as_u64() {
                    line[field] = number(old).into();
                }
            }
            if line["token"].is_string() {
                line["token"] = "0badc0de".into();
            }
            Self { lines: recorded.lines.into_iter().chain([line]).collect(), ..recorded }
        })
    }

    fn shifted(mut self, slot: &str, ms: i64, which: impl Fn(&Value) -> bool) -> Self {
        for index in self.of(slot, "*") {
            if which(&self.lines[index]) {
                shift(&mut self.lines[index], ms);
            }
        }
        self
    }

    fn fault(mut self, at: &str, kind: &str, target: &str) -> Self {
        self.faults += &format!("{{\"at\":\"2026-11-21T{at}Z\",\"kind\":\"{kind}\",\"target\":\"{target}\"}}\n");
        self
    }

    fn report(&self) -> Report {
        let mut inputs = Inputs::default();
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        inputs.journal("recorded", &text).unwrap();
        inputs.recorder("recorder", &self.recorder).unwrap();
        inputs.faults("faults", &self.faults).unwrap();
        check(inputs)
    }
}

fn shift(line: &mut Value, ms: i64) {
    for field in ["at", "granted_at"] {
        if let Some(at) = line[field].as_str() {
            let at: DateTime<Utc> = at.parse().unwrap();
            let later = at + TimeDelta::milliseconds(ms);
            line[field] = later.to_rfc3339_opts(SecondsFormat::Millis, true).into();
        }
    }
}

fn next(number: u64) -> u64 {
    number + 1
}

fn verdict(verdict: &'static str, at: &'static str) -> impl Fn(&mut Value) {
    move |line| (line["verdict"], line["at"]) = (verdict.into(), format!("2026-11-21T{at}Z").into())
}

/// The verdict of one slot as that of another.
fn closed(recorded: Recorded, slot: &str, say: &'static str, at: &'static str) -> Recorded {
    let mut line = recorded.lines[recorded.last(HOPELESS, "closed")].clone();
    let of = recorded.lines[recorded.last(slot, "settled")].clone();
    (line["job"], line["slot"], line["slot_end"]) = (of["job"].clone(), of["slot"].clone(), of["slot_end"].clone());
    verdict(say, at)(&mut line);
    Recorded { lines: recorded.lines.into_iter().chain([line]).collect(), ..recorded }
}

const UNTOLD: &str = r#"{"job":"quick","slot":"2026-11-21T21:41:30Z","attempt":7,"fence":7,"node":"a","pid":7,"start_ms":1795297294000,"end_ms":1795297295000}"#;

/// What is done to the history, and the slot and the rule (or class) by which it is found.
fn tampered() -> Vec<(&'static str, Recorded, &'static str, &'static str)> {
    let new = Recorded::new;
    let second = |line: &Value| line["attempt"] == 2;
    let killed_later = new().without(QUICK, "settled").again(QUICK, 3_000, next).fault("21:41:40", "kill", "b");
    let lost = closed(new(), QUICK, "missed", "21:41:41").without(QUICK, "granted").without(QUICK, "run_started");
    let lost = lost.without(QUICK, "run_ended").without(QUICK, "settled").without(QUICK, "claim_answered");
    vec![
        (
            "a success is not settled, nor was anybody told of it",
            new().without(QUICK, "settled").without(QUICK, "claim_answered"),
            QUICK,
            "success-without-done",
        ),
        ("a verdict is not told", new().without(HOPELESS, "closed"), HOPELESS, "no-verdict"),
        ("a whole slot is gone", new().without(QUICK, "*"), QUICK, "lost"),
        ("a slot that could be done is closed as missed", lost, QUICK, "lost"),
        (
            "the end of a run is gone",
            new().without(LONG, "run_ended").without(LONG, "settled"),
            LONG,
            "run-without-end",
        ),
        ("a second run", new().again(QUICK, 3_000, next), QUICK, "repeat"),
        ("a second run at the same time", new().again(LONG, 1_000, next), LONG, "overlap"),
        ("a second run, and a death after it", killed_later, QUICK, "repeat"),
        (
            "a success is settled and no run is there",
            new().without(QUICK, "run_started"),
            QUICK,
            "done-without-success",
        ),
        (
            "a run that failed is done",
            new().with(QUICK, "run_ended", |line| line["outcome"] = "failure".into()),
            QUICK,
            "done-without-success",
        ),
        (
            "a job records a run that no node tells of",
            Recorded { recorder: format!("{UNTOLD}\n"), ..new() },
            QUICK,
            "untold-run",
        ),
        ("a grant before the slot", new().shifted(QUICK, -500, |_| true), QUICK, "early-start"),
        ("a grant after the slot", new().shifted(QUICK, 10_500, |_| true), QUICK, "late-start"),
        ("a first start after 8 s", new().shifted(QUICK, 8_000, |_| true), QUICK, "late-first-start"),
        ("a retry after 3 s", new().shifted(FLAKY, 3_000, second), FLAKY, "late-recovery"),
        ("a third attempt of two", new().again(HOPELESS, 3_000, next), HOPELESS, "too-many-attempts"),
        ("a fence that goes back", new().again(FLAKY, 3_000, |number| number - 1), FLAKY, "fence-back"),
        ("a number that is granted twice", new().again(FLAKY, 3_000, |number| number), FLAKY, "same-attempt-twice"),
        ("a done slot is closed as missed", closed(new(), QUICK, "missed", "21:41:45"), QUICK, "success-without-done"),
        ("two verdicts", new().copied(HOPELESS, "closed", verdict("missed", "21:41:45.000")), HOPELESS, "two-verdicts"),
    ]
}

#[test]
fn the_history_itself_is_clean() {
    let report = Recorded::new().report();
    assert!(report.is_clean() && report.slots > 15, "{report}");
}

#[test]
fn everything_that_was_tampered_with_is_found_by_its_rule() {
    for (what, recorded, slot, rule) in tampered() {
        let report = recorded.report();
        let found = report.unexplained.iter().chain(&report.violations);
        let found: Vec<&str> = found.filter(|found| found.slot == slot).map(|found| found.rule).collect();
        println!("{what}: {}", found.join(", "));
        assert!(found.contains(&rule), "{what}: {rule} is not among {found:?}\n{report}");
    }
}
