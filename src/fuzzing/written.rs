//! What a person writes: `jobs.toml`, cron expressions, files of `KEY=value` lines, placeholders in the words of a command.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::config::{Environment, Report, format_duration, parse, parse_duration};
use crate::exec::env_file;
use crate::exec::{check_placeholders, fill_placeholders};
use crate::fuzzing::{NOON, is_one_line};
use crate::job::{JobName, JobSpec, NodeName};
use crate::schedule::Schedule;
use crate::slot::{Fence, RunContext, Slot, Trigger};

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
    assert_eq!(spec.timezone.name().parse(), Ok(spec.timezone));
    let schedule = Schedule::parse(&spec.schedule, spec.timezone).map(|schedule| schedule.text().to_owned());
    assert_eq!(schedule.as_deref(), Ok(spec.schedule.trim()));
    let policy = &spec.policy;
    for span in [policy.lease_ttl, policy.done_ttl, policy.retry.delay, policy.retry.max_delay, policy.kill_after] {
        assert_eq!(parse_duration(&format_duration(span)), Ok(span));
    }
}

fn is_shown(report: &Report) {
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
const ZONES: [Tz; 6] = [
    Tz::UTC,
    Tz::Europe__Berlin,
    Tz::Australia__Lord_Howe,
    Tz::America__Sao_Paulo,
    Tz::Pacific__Apia,
    Tz::Asia__Tehran,
];

/// Where the search begins: far outside of the calendar, at its ends, at changes of clocks.
fn starts() -> [DateTime<Utc>; 6] {
    let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or(NOON);
    [NOON, DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC, at(-1), at(1_325_239_200), at(13_569_292_799)]
}

/// The first byte chooses the zone, the rest is the expression.
pub fn cron(bytes: &[u8]) -> bool {
    let (choice, text) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let zone = ZONES.get(usize::from(choice) % ZONES.len()).copied().unwrap_or(Tz::UTC);
    let text = String::from_utf8_lossy(text);
    match Schedule::parse(&text, zone) {
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
    })
}
