//! Journals written by hand: what is well, every class, every rule, and clusters that are broken in silence. Here is what
//! they are written with.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::*;

mod classes;
mod close_calls;
mod locks;
mod recovery;
mod report;
mod rules;

/// Lines of several nodes; seconds count from 14:00:00, the slot is `push@2026-11-21T14Z` and lasts ten minutes.
#[derive(Clone, Default)]
struct Book {
    journals: String,
    recorder: String,
    faults: String,
}

fn at(seconds: f64) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
    #[allow(clippy::cast_possible_truncation, reason = "small")]
    let ms = (seconds * 1_000.0).round() as i64;
    start + TimeDelta::milliseconds(ms)
}

fn text(seconds: f64) -> String {
    at(seconds).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// A line that says nothing of importance.
const FILLER: &str = r#""event":"reload_refused","error":"x""#;

const SLOT: &str = r#""job":"push","slot":"2026-11-21T14Z","slot_end":"2026-11-21T14:10:00Z","#;

impl Book {
    /// Two nodes that are there and in touch all the time.
    fn new() -> Self {
        Self::default().up("a").up("b")
    }

    fn up(self, node: &str) -> Self {
        self.node(node, -5.0, r#""event":"started","jobs":1"#).node(node, -4.0, r#""event":"store_reached""#)
    }

    fn line(mut self, node: &str, seconds: f64, rest: &str) -> Self {
        let (name, instance) = node.split_once('/').unwrap_or((node, node));
        let line = format!(r#"{{"at":"{}","node":"{name}","instance":"{instance}",{rest}}}"#, text(seconds));
        self.journals.push_str(&line);
        self.journals.push('\n');
        self
    }

    fn node(self, node: &str, seconds: f64, fact: &str) -> Self {
        self.line(node, seconds, fact)
    }

    fn slot(self, node: &str, seconds: f64, fact: &str) -> Self {
        self.line(node, seconds, &format!("{SLOT}{fact}"))
    }

    fn granted(self, node: &str, seconds: f64, attempt: u32) -> Self {
        let at = text(seconds);
        self.slot(node, seconds, &format!(
            r#""event":"granted","attempt":{attempt},"used":{attempt},"max_attempts":3,"granted_at":"{at}","token":"{node}{attempt}","trigger":"schedule","lease_ttl_s":6.0,"retry_delay_s":1.0,"on_lost":"continue""#
        ))
    }

    fn starts(self, node: &str, seconds: f64, attempt: u32) -> Self {
        let fence = 1_795_269_600_000_u64 + u64::from(attempt);
        self.granted(node, seconds, attempt).slot(
            node,
            seconds,
            &format!(
                r#""event":"run_started","attempt":{attempt},"fence":{fence},"trigger":"schedule","guarded":true"#
            ),
        )
    }

    /// The run ends as its node tells of it.
    fn ends(self, node: &str, seconds: f64, attempt: u32, outcome: &str) -> Self {
        let name = node.split_once('/').map_or(node, |(name, _)| name);
        let started = |line: &&str| {
            let of = |words: &str| line.contains(words);
            of(&format!("\"node\":\"{name}\"")) && of(&format!("\"event\":\"run_started\",\"attempt\":{attempt},"))
        };
        let from = self.journals.lines().rev().find(started).and_then(|line| line.get(7..31));
        let from: Option<DateTime<Utc>> = from.map(|from| from.parse().unwrap());
        let ran = from.map_or(1.0, |from| (at(seconds) - from).as_seconds_f64().max(0.0));
        self.ended_after(ran, node, seconds, attempt, outcome)
    }

    /// Its node tells of it later.
    fn ended_after(self, ran: f64, node: &str, seconds: f64, attempt: u32, outcome: &str) -> Self {
        self.slot(
            node,
            seconds,
            &format!(r#""event":"run_ended","attempt":{attempt},"outcome":"{outcome}","duration_s":{ran}"#),
        )
    }

    fn settles(self, node: &str, seconds: f64, attempt: u32, outcome: &str) -> Self {
        self.slot(node, seconds, &format!(r#""event":"settled","attempt":{attempt},"outcome":"{outcome}""#))
    }

    /// A whole run.
    fn run(self, node: &str, from: f64, to: f64, attempt: u32, outcome: &str) -> Self {
        self.starts(node, from, attempt).ends(node, to, attempt, outcome).settles(node, to, attempt, outcome)
    }

    fn closed(self, node: &str, seconds: f64, verdict: &str) -> Self {
        self.slot(node, seconds, &format!(r#""event":"closed","verdict":"{verdict}""#))
    }

    fn told(self, node: &str, seconds: f64, event: &str, attempt: u32) -> Self {
        self.slot(node, seconds, &format!(r#""event":"{event}","attempt":{attempt},"killing":false"#))
    }

    fn recorded(mut self, node: &str, from: f64, to: Option<f64>, attempt: u32) -> Self {
        let ms = |seconds: f64| at(seconds).timestamp_millis();
        let end = to.map_or("null".to_owned(), |to| ms(to).to_string());
        self.recorder.push_str(&format!(
            "{{\"job\":\"push\",\"slot\":\"2026-11-21T14Z\",\"attempt\":{attempt},\"fence\":{attempt},\"node\":\"{node}\",\"pid\":{attempt},\"start_ms\":{},\"end_ms\":{end}}}\n",
            ms(from)
        ));
        self
    }

    fn fault(mut self, seconds: f64, kind: &str, target: &str) -> Self {
        let line = format!("{{\"at\":\"{}\",\"kind\":\"{kind}\",\"target\":\"{target}\"}}\n", text(seconds));
        self.faults.push_str(&line);
        self
    }

    fn fault_until(mut self, seconds: f64, until: f64, kind: &str, target: &str) -> Self {
        self = self.fault(seconds, kind, target);
        let (line, until) = (self.faults.trim_end().len() - 1, text(until));
        self.faults.truncate(line);
        self.faults.push_str(&format!(",\"until\":\"{until}\"}}\n"));
        self
    }

    /// The journals go on until long after the slot.
    fn later(self) -> Self {
        self.node("a", 900.0, FILLER).node("b", 900.0, FILLER)
    }

    fn report(&self) -> Report {
        self.report_with(Duration::ZERO)
    }

    fn report_with(&self, allowance: Duration) -> Report {
        let mut inputs = Inputs { allowance, ..Inputs::default() };
        inputs.journal("j", &self.journals).unwrap();
        inputs.recorder("r", &self.recorder).unwrap();
        inputs.faults("f", &self.faults).unwrap();
        check(inputs)
    }

    #[track_caller]
    fn is_clean_and(&self, class: Class) -> Report {
        let report = self.report();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.tally(class).slots, 1, "{report}");
        report
    }

    /// The rules and classes that are found wanting.
    fn faulted(&self) -> Vec<&'static str> {
        let report = self.report();
        report.unexplained.iter().chain(&report.violations).map(|finding| finding.rule).collect()
    }
}

/// What a node tells of its plan: the job ticks every ten minutes.
const PLAN: &str = r#""job":"push","event":"planned","schedule":"*/10 * * * *","timezone":"UTC","period":"tick","max_attempts":3,"lease_ttl_s":6.0,"retry_delay_s":1.0,"on_lost":"continue","ours":true"#;
