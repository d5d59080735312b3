//! Jobs under whose name crontabs start different commands. Pure.

use chrono::{DateTime, Utc};

use crate::store::{Finding, JobEntry};

/// How many jobs are named.
const NAMED: usize = 10;

/// A warning where there are any; of many jobs the rest is counted.
pub(super) fn conflicts(jobs: &[JobEntry], now: DateTime<Utc>) -> Option<Finding> {
    let names: Vec<&str> =
        jobs.iter().filter(|job| job.command_conflict(now).is_some()).map(|job| job.name.as_str()).collect();
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let rest = names.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let found = format!("different commands were started under one job name: {named}{rest}");
    let effect = "only the first command of a slot runs; the others do not run and end with 0";
    (!names.is_empty()).then(|| {
        Finding::warning("commands", found, effect, "cronward exec: give each command a --job name of its own")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture;
    use crate::store::{CrontabCommand, Severity};

    #[test]
    fn two_commands_of_one_job_are_a_warning_that_names_the_job() {
        let (now, at) = (fixture::at("2026-11-21T14:30:00Z"), fixture::at("2026-11-21T14:00:00Z"));
        let command = |conflict| Some(CrontabCommand { digest: "00c0".to_owned(), conflict });
        let entry = |name: &str, conflict| JobEntry { command: command(conflict), ..fixture::entry(name) };
        assert_eq!(conflicts(&[entry("push", None), fixture::entry("mail")], now), None);
        let found = conflicts(&[entry("push", Some(at)), entry("mail", None)], now).unwrap();
        assert_eq!((found.severity, found.check.as_str()), (Severity::Warning, "commands"));
        assert_eq!(found.found, "different commands were started under one job name: push");
        let many: Vec<JobEntry> = (0..12).map(|number| entry(&format!("job-{number:02}"), Some(at))).collect();
        assert!(conflicts(&many, now).unwrap().found.ends_with("job-09 and 2 more"));
    }
}
