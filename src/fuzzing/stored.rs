//! What programs write: keys and messages, the JSON of records and what is made of it for people, the files of `cronward verify`.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use chrono::TimeDelta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fuzzing::{NOON, is_one_line};
use crate::job::{JobName, NodeName};
use crate::observe::journal::Line;
use crate::observe::view::SlotView;
use crate::schedule::Timetable;
use crate::slot::{Audit, JobLatest, Period, RunRecord, Slot, SlotKey, SlotRecord, Token, VerdictRecord};
use crate::store::{JobEntry, NodeReport};
use crate::verify::{Inputs, Malformed, Report, check};
use crate::wake::Wake;

/// Any of the short words. True when the bytes are a slot key.
pub fn slot_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let key = word_reads_back::<SlotKey>(&text);
    if let Some(key) = key {
        assert_eq!(SlotKey::of(key.start()), Some(key));
        assert_eq!(key.to_string(), text, "one instant, one key");
    }
    for name in [word_reads_back::<JobName>(&text).is_some(), word_reads_back::<NodeName>(&text).is_some()] {
        assert!(!name || text.len() <= 64);
    }
    word_reads_back::<Period>(&text);
    word_reads_back::<Token>(&text);
    word_reads_back::<Wake>(&text);
    if let Some((job, rest)) = text.split_once('@')
        && let Some((start, end)) = rest.split_once('/')
    {
        match Slot::parse(job, start, end) {
            Ok(slot) => assert!(slot.start() < slot.end() && slot.fence(999) > slot.fence(1)),
            Err(error) => is_one_line(&error.to_string()),
        }
    }
    key.is_some()
}

fn word_reads_back<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            assert_eq!(value.to_string().parse::<T>().ok().as_ref(), Some(&value));
            Some(value)
        }
        Err(error) => {
            is_one_line(&error.to_string());
            None
        }
    }
}

/// One record, of whichever kind it can be.
pub fn stored_record(bytes: &[u8]) -> bool {
    let run = record_reads_back::<RunRecord>(bytes);
    let verdict = record_reads_back::<VerdictRecord>(bytes);
    let audit = record_reads_back::<Audit>(bytes);
    let job = record_reads_back::<JobEntry>(bytes);
    let node = record_reads_back::<NodeReport>(bytes);
    let accepted = run.is_some() || verdict.is_some() || audit.is_some() || job.is_some() || node.is_some();
    // Each of its parts may be absent, so that it accepts any object.
    let _ = record_reads_back::<JobLatest>(bytes);
    if let Some(job) = &job {
        is_planned(job);
    }
    record_is_shown(run, verdict, audit);
    accepted
}

fn record_reads_back<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_string(&value).unwrap_or_default();
    assert_eq!(serde_json::from_str::<T>(&written).ok().as_ref(), Some(&value), "{written}");
    Some(value)
}

/// A job that somebody else registered: its slots are looked for by every command that lists them.
fn is_planned(job: &JobEntry) {
    match Timetable::parse(job.name.clone(), &job.schedule, &job.timezone, &job.period) {
        Ok(table) => {
            let current = table.slot_at(NOON);
            assert!(current.iter().all(|slot| slot.start() <= NOON && NOON < slot.end()));
            let slots: Vec<_> = table.slots(NOON - TimeDelta::days(1), NOON).take(3).collect();
            assert!(slots.iter().all(|(slot, tick)| slot.start() <= *tick && *tick < slot.end()));
            let _ = table.slot_at(job.first_seen);
            let _ = current.map(|slot| table.older(&slot, std::time::Duration::from_secs(3_600), 3));
        }
        Err(error) => is_one_line(&error.to_string()),
    }
}

fn record_is_shown(run: Option<RunRecord>, verdict: Option<VerdictRecord>, audit: Option<Audit>) {
    let Ok(slot) = Slot::parse("a", "2026-11-21T12Z", "2026-11-21T13Z") else { return };
    let mut record = SlotRecord::untouched(slot);
    record.attempts = run.as_ref().map_or(0, |run| run.attempt);
    record.runs.extend(run);
    record.audit.extend(audit);
    record.verdict = verdict;
    let view = SlotView::of(&record, NOON, 3);
    assert!(serde_json::to_string(&view).is_ok());
}

/// Planned slots that are looked at here; a fuzz target has no time for more.
const PLANNED: usize = 1_000;

/// Parts at a line `--- recorder` and a line `--- faults`; what is before them is a journal. True when all can be read.
pub fn journal(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let (text, faults) = text.split_once("--- faults\n").unwrap_or((&text, ""));
    let (journal, recorder) = text.split_once("--- recorder\n").unwrap_or((text, ""));
    journal.lines().for_each(line_reads_back);
    let mut inputs = Inputs::default();
    inputs.most_planned = PLANNED;
    let taken =
        [inputs.journal("a.jsonl", journal), inputs.recorder("runs", recorder), inputs.faults("faults", faults)];
    for malformed in taken.iter().filter_map(|taken| taken.as_ref().err()) {
        let Malformed { file, line, .. } = malformed;
        is_one_line(&malformed.to_string());
        assert!(malformed.to_string().starts_with(&format!("{file}:{line}: ")), "it says where");
    }
    let lines = text.lines().count() + faults.lines().count();
    report_is_shown(&check(inputs), lines);
    taken.iter().all(Result::is_ok)
}

/// A line that is read means the same when it is written again; spans are of no more digits than a float has.
fn line_reads_back(text: &str) {
    let Ok(line) = serde_json::from_str::<Line>(text) else { return };
    let written = serde_json::to_string(&line).unwrap_or_default();
    let again = serde_json::from_str::<Line>(&written).ok();
    let name = |line: &Line| (line.node.clone(), line.instance.clone(), line.slot(), line.at.timestamp_millis());
    assert_eq!(again.as_ref().map(name), Some(name(&line)), "{written}");
}

fn report_is_shown(report: &Report, lines: usize) {
    assert!(report.slots + report.open <= lines + PLANNED, "{} slots of {lines} lines", report.slots);
    assert!(serde_json::to_string(report).is_ok());
    assert!(report.to_string().lines().count() > 4);
    assert!(report.rate_below.is_none() || report.unexplained.is_empty());
}
