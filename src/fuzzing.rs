//! What the fuzz targets in `fuzz/` and their twins in `tests/parsers` share: one function per parser. Each takes any
//! bytes, checks what is claimed of the parser, panics when that is not so, and answers whether the bytes were accepted.
//!
//! - No panic, and an end: a search is bounded, and so is what comes out, by what went in. So is the memory, which
//!   `tests/parsers` counts.
//! - What is accepted reads back from its own display as the same value.
//! - An error is one line, of a length that can be read, and nothing in it moves a cursor.
//!
//! Behind the feature `fuzzing`, because a fuzz target is another package and some of these parsers are nobody's
//! business: a feature that no release is built with opens a door that a public module would leave open for good.

pub use crate::cli::import::fuzzing::crontab;
pub use crate::store::document_texts as document;
pub use crate::store::etcd::fuzzing::etcd_reply;
pub use crate::store::lock_document;
pub use crate::store::redis::fuzzing::redis_reply;
pub use crate::store::sql::fuzzing::sql_row;
pub use crate::store::zookeeper::fuzzing::zookeeper_node;
pub use crate::web::fuzzing::http_words;

use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::{Diagnostics, Environment, format_duration, parse, parse_duration};
use crate::exec::env_file;
use crate::exec::{check_placeholders, fill_placeholders};
use crate::job::{JobName, JobSpec, NodeName};
use crate::observe::journal::Line;
use crate::observe::view::SlotView;
use crate::resource::{Demand, LockHint};
use crate::schedule::{Schedule, Timetable};
use crate::slot::{
    Audit, Fence, JobLatest, Period, RunContext, RunRecord, Slot, SlotKey, SlotRecord, Token, Trigger, VerdictRecord,
};
use crate::store::{JobEntry, NodeReport};
use crate::verify::{self, Inputs, Malformed};
use crate::wake::Wake;
use crate::zone::Zone;

/// 2026-11-21T12:00:00Z, a Saturday.
const NOON: DateTime<Utc> = match DateTime::from_timestamp(1_795_262_400, 0) {
    Some(instant) => instant,
    None => DateTime::UNIX_EPOCH,
};

/// Characters of an error that a person may be asked to read.
const READABLE: usize = 2_000;

/// Checks that a message is one line that can be read and that nothing in it moves a cursor.
fn is_one_line(message: &str) {
    assert!(!message.chars().any(crate::text::is_harmful), "not one harmless line: {message:?}");
    assert!(message.chars().count() <= READABLE, "too long to be read: {} bytes", message.len());
}

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
    word_reads_back::<LockHint>(&text);
    word_reads_back::<Demand>(&text);
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
    report_is_shown(&verify::check(inputs), lines);
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

fn report_is_shown(report: &verify::Report, lines: usize) {
    assert!(report.slots + report.open <= lines + PLANNED, "{} slots of {lines} lines", report.slots);
    assert!(serde_json::to_string(report).is_ok());
    assert!(report.to_string().lines().count() > 4);
    assert!(report.rate_below.is_none() || report.unexplained.is_empty());
}

/// Findings that are kept: a hundred errors, a hundred others, and the count of the rest.
const MOST_FINDINGS: usize = 201;
/// Bytes that a finding takes on a screen, its piece of the source included.
const SHOWN: usize = 8_192;

/// A whole file.
pub fn config(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let env = Environment::new(NOON).with_hostname("web-1").with("A", "1").with("ODD", "\u{1b}[2J\n");
    let outcome = parse("jobs.toml", text.clone(), &env);
    let accepted = outcome.is_ok();
    let report = match outcome {
        Ok((config, report)) => {
            config.jobs.values().for_each(job_reads_back);
            let again = parse("jobs.toml", text.clone(), &env).map(|(config, _)| config.hash());
            assert_eq!(again, Ok(config.hash()), "a file has one hash");
            report
        }
        Err(report) => report,
    };
    assert_eq!(report.has_errors(), !accepted);
    assert_eq!(report.text.len(), text.len(), "masking moves nothing");
    is_shown(&report);
    accepted
}

/// Each part of a job that has a spelling.
fn job_reads_back(spec: &JobSpec) {
    assert_eq!(JobName::new(spec.name.as_str()).as_ref(), Ok(&spec.name));
    assert_eq!(spec.period.to_string().parse(), Ok(spec.period));
    assert_eq!(spec.timezone.name().parse().as_ref(), Ok(&spec.timezone));
    let schedule = Schedule::parse(&spec.schedule, spec.timezone.clone()).map(|schedule| schedule.text().to_owned());
    assert_eq!(schedule.as_deref(), Ok(spec.schedule.trim()));
    let policy = &spec.policy;
    for span in [policy.lease_ttl, policy.done_ttl, policy.retry.delay, policy.retry.max_delay, policy.kill_after] {
        assert_eq!(parse_duration(&format_duration(span)), Ok(span));
    }
}

fn is_shown(report: &Diagnostics) {
    assert!(report.findings.len() <= MOST_FINDINGS, "{} findings", report.findings.len());
    for finding in &report.findings {
        is_one_line(&finding.message);
        finding.hint.iter().for_each(|hint| is_one_line(hint));
        assert!(report.text.get(finding.span.clone()).is_some(), "{:?} is no place in the text", finding.span);
    }
    assert_eq!(report.to_string().lines().count(), report.findings.len(), "one line for each finding");
    let rendered = report.render(false);
    assert!(rendered.len() <= SHOWN * report.findings.len(), "{} bytes to be shown", rendered.len());
    let moves = |c: char| crate::text::is_harmful(c) && c != '\n';
    assert!(!rendered.contains(moves), "a source line moves a cursor: {rendered:?}");
    is_one_line(&report.summary());
    assert_eq!(report.to_findings().len(), report.findings.len());
}

/// Zones whose clocks do odd things: none, an hour, half an hour, at midnight, a whole day.
const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Asia/Tehran"];

/// Where the search begins: far outside of the calendar, at its ends, at changes of clocks.
fn starts() -> [DateTime<Utc>; 6] {
    let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or(NOON);
    [NOON, DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, at(-1), at(1_325_239_200), at(13_569_292_799)]
}

/// The first byte chooses the zone, the rest is the expression.
pub fn cron(bytes: &[u8]) -> bool {
    let (choice, text) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let zone = ZONES.get(usize::from(choice) % ZONES.len()).and_then(|zone| Zone::named(zone).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    match Schedule::parse(&text, zone.clone()) {
        Ok(schedule) => {
            assert_eq!(Schedule::parse(schedule.text(), zone).as_ref(), Ok(&schedule));
            is_one_line(&schedule.describe());
            starts().into_iter().for_each(|start| ticks_are_in_order(&schedule, start));
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            error.hint.iter().for_each(|hint| is_one_line(hint));
            false
        }
    }
}

/// Forwards they rise, and backwards each is found from itself.
fn ticks_are_in_order(schedule: &Schedule, start: DateTime<Utc>) {
    let mut before = start;
    for tick in schedule.ticks_after(start).take(4) {
        assert!(tick > before, "{tick} after {before}");
        assert_eq!(schedule.last_until(tick), Some(tick), "backwards from {tick}");
        before = tick;
    }
    if let Some(last) = schedule.last_until(start) {
        assert!(last <= start);
        let next = schedule.next_after(last - TimeDelta::seconds(1));
        assert_eq!(next, Some(last), "forwards to {last}");
    }
}

/// A whole file. What is read can be given to a command, and says the same when it is written again.
pub fn env_file(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match env_file::parse(Path::new("/etc/push.env"), text) {
        Ok(variables) => {
            let length: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(length <= bytes.len(), "no more comes out than went in");
            assert!(variables.iter().all(|(name, value)| !format!("{name}{value}").contains('\0')));
            let written: String = variables.iter().map(|(name, value)| format!("{name}={}\n", quoted(value))).collect();
            assert_eq!(env_file::parse(Path::new("/etc/push.env"), &written).as_ref(), Ok(&variables));
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            false
        }
    }
}

fn quoted(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// One word. A text that is checked is filled in, and filling in adds no more than the values themselves.
pub fn placeholders(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some(run) = some_run() else { return false };
    let (checked, filled) = (check_placeholders(&text), fill_placeholders(&text, &run));
    assert_eq!(checked.is_ok(), filled.is_ok(), "what is checked can be filled in, and only that");
    match filled {
        Ok(filled) => {
            // The shortest placeholder, `{job}`, stands for up to 52 characters.
            assert!(filled.len() <= text.len().saturating_mul(16), "{} bytes of {}", filled.len(), text.len());
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            false
        }
    }
}

fn some_run() -> Option<RunContext> {
    Some(RunContext {
        slot: Slot::new(JobName::new(&"j".repeat(52)).ok()?, NOON, NOON + TimeDelta::hours(1)).ok()?,
        scheduled_at: NOON,
        attempt: 1,
        max_attempts: 3,
        fence: Fence(u64::MAX),
        fence_revision: Some(u64::MAX),
        run_id: "r".to_owned(),
        node: NodeName::new("n").ok()?,
        trigger: Trigger::Schedule,
        deadline: None,
        token: None,
        lease_held: true,
        locks: None,
    })
}
