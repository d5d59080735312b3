//! `jobs.toml`.

use super::{NOON, is_one_line};
use crate::config::{Environment, Report, format_duration, parse, parse_duration};
use crate::job::{JobName, JobSpec};
use crate::schedule::Schedule;

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
            config.jobs.values().for_each(reads_back);
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
fn reads_back(spec: &JobSpec) {
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
