//! Who has held a lock for longer than any run may last. Pure.
//!
//! An entry is renewed for as long as its process lives, also by one that hangs: nothing in the store ends that.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::words::{brief, instant};
use crate::clock::between;
use crate::config::format_duration;
use crate::job::{JobName, JobSpec};
use crate::resource::{LockEntry, LockRecord};
use crate::store::Finding;

/// How many holders are named.
const NAMED: usize = 10;

/// How long a run of each job may last, by the file; none: for ever.
#[derive(Clone, Debug, Default)]
pub(super) struct RunLimits(BTreeMap<JobName, Option<Duration>>);

/// Somebody who has held a lock for too long.
struct Overdue<'a> {
    record: &'a LockRecord,
    entry: &'a LockEntry,
    since: DateTime<Utc>,
    limit: Duration,
    /// Whose limit it is, where that is the holder's own job.
    job: Option<&'a JobName>,
}

impl RunLimits {
    /// Of all jobs.
    pub(super) fn of<'a>(jobs: impl Iterator<Item = &'a JobSpec>) -> Self {
        Self(jobs.map(|job| (job.name.clone(), job.policy.timeout)).collect())
    }

    /// By what a holder with this label is judged: the timeout of its own job, else the longest of all. None where that job, or for
    /// a stranger any job, may run for ever.
    fn of_holder(&self, label: &str) -> Option<(Option<&JobName>, Duration)> {
        let own = label.split_once('@').and_then(|(job, _)| self.0.iter().find(|(name, _)| name.as_str() == job));
        if let Some((job, limit)) = own {
            return Some((Some(job), (*limit)?));
        }
        let limits: Option<Vec<Duration>> = self.0.values().copied().collect();
        limits?.into_iter().max().map(|longest| (None, longest))
    }
}

/// A warning for each holder that is older than its limit, the oldest first; of many the rest is counted.
pub(super) fn overdue(records: &[LockRecord], now: DateTime<Utc>, limits: &RunLimits) -> Vec<Finding> {
    let holders = records.iter().flat_map(|record| record.holders().map(move |entry| (record, entry)));
    let mut found: Vec<Overdue<'_>> = holders
        .filter_map(|(record, entry)| {
            let (job, limit) = limits.of_holder(&entry.by.label)?;
            let since = entry.since()?;
            (between(since, now) > limit).then_some(Overdue { record, entry, since, limit, job })
        })
        .collect();
    found.sort_by_key(|overdue| overdue.since);
    let more = found.len().saturating_sub(NAMED);
    let mut findings: Vec<Finding> = found.iter().take(NAMED).map(|overdue| overdue.told(now)).collect();
    if more > 0 {
        let told = format!("{more} more holders are older than that");
        findings.push(Finding::warning("holders", told, EFFECT, "cronward locks lists every lock"));
    }
    findings
}

const EFFECT: &str = "whoever waits for the lock waits on: a job that names it is missed, should its holder hang";

impl Overdue<'_> {
    fn told(&self, now: DateTime<Utc>) -> Finding {
        let Self { record, entry, since, limit, job } = self;
        let lock = &record.lock;
        let who = if entry.by.label.is_empty() { String::new() } else { format!("{} on ", entry.by.label) };
        let limit = format_duration(*limit);
        let than = match job {
            Some(job) => format!("the timeout of {job}, {limit}"),
            None => format!("the longest timeout of all jobs, {limit}"),
        };
        let (since, age) = (instant(*since), brief(between(*since, now)));
        let found = format!("{lock}: held by {who}{} since {since}, for {age}: longer than {than}", entry.by.node);
        let fix = format!(
            "cronward locks {lock} shows its queue; if the holder hangs, end it, or: cronward unlock --lock {lock} --token {}",
            entry.token
        );
        Finding::warning("holders", found, EFFECT, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::job::{LockName, NodeName, Program};
    use crate::resource::{LockHolder, OwnerId};
    use crate::slot::{Fence, Token};

    fn noon() -> DateTime<Utc> {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn job(name: &str, timeout: Option<u64>) -> JobSpec {
        let mut job = JobSpec::new(JobName::new(name).unwrap(), "0 * * * *", Program::Direct(Vec::new()));
        job.policy.timeout = timeout.map(|minutes| Duration::from_secs(minutes * 60));
        job
    }

    /// Somebody who has stood in a queue for so many minutes.
    fn entry(label: &str, minutes: i64, holds: bool) -> LockEntry {
        let since = (noon() - chrono::TimeDelta::minutes(minutes)).timestamp_millis().unsigned_abs();
        let (token, node) = (Token::from_bits(7), NodeName::new("c").unwrap());
        let fence = holds.then_some(Fence(since));
        let by = LockHolder { node, label: label.to_owned(), owner: OwnerId::of_text(label), fence };
        let remaining = Duration::from_secs(20);
        LockEntry { token, by, demand: "db".parse().unwrap(), place: since, holds, remaining }
    }

    fn found(entries: Vec<LockEntry>, jobs: &[JobSpec]) -> Vec<String> {
        let record = LockRecord { lock: LockName::new("db").unwrap(), entries, audit: Vec::new() };
        let findings = overdue(&[record], noon(), &RunLimits::of(jobs.iter()));
        assert!(findings.iter().all(|finding| finding.check == "holders" && finding.fix.is_some()));
        findings.into_iter().map(|finding| finding.found).collect()
    }

    #[test]
    fn a_holder_is_judged_by_the_timeout_of_its_job_and_any_other_one_by_the_longest() {
        let jobs = [job("export", Some(30)), job("import", Some(90))];
        let own = "db: held by export@2026-11-21T11Z#1 on c since 2026-11-21T11:20:00Z, for 40m: \
                   longer than the timeout of export, 30m";
        assert_eq!(found(vec![entry("export@2026-11-21T11Z#1", 40, true)], &jobs), [own]);
        for label in ["import@2026-11-21T11Z#1", "other@2026-11-21T11Z#1", "pg_dump", ""] {
            assert_eq!(found(vec![entry(label, 90, true)], &jobs), [""; 0], "{label}");
        }
        let other = "db: held by pg_dump on c since 2026-11-21T10:29:00Z, for 91m: longer than the longest timeout of all jobs, 1h 30m";
        assert_eq!(found(vec![entry("pg_dump", 91, true)], &jobs), [other]);
        let nameless = found(vec![entry("", 91, true)], &jobs);
        assert!(nameless.iter().all(|found| found.starts_with("db: held by c since ")), "{nameless:?}");
        assert_eq!(nameless.len(), 1);
    }

    #[test]
    fn nobody_is_too_old_who_waits_or_may_run_for_ever_and_no_stranger_beside_a_job_that_may() {
        let jobs = [job("export", Some(30)), job("open", None)];
        for label in ["open@2026-11-21T11Z#1", "other@2026-11-21T11Z#1", "pg_dump", ""] {
            assert_eq!(found(vec![entry(label, 9_000, true)], &jobs), [""; 0], "{label}");
        }
        assert_eq!(found(vec![entry("export@2026-11-21T11Z#1", 31, true)], &jobs).len(), 1);
        assert_eq!(found(vec![entry("x", 9_000, false)], &[job("export", Some(30))]), [""; 0]);
        assert_eq!(found(vec![entry("x", 9_000, true)], &[job("open", None)]), [""; 0]);
    }

    #[test]
    fn of_many_the_oldest_are_named_and_the_rest_is_counted() {
        let many = (0..25).map(|number| entry(&format!("p{number}"), 100 + number, true)).collect();
        let told = found(many, &[job("export", Some(30))]);
        assert_eq!(told.len(), 11);
        assert!(told[0].starts_with("db: held by p24 on c"), "{told:?}");
        assert_eq!(told[10], "15 more holders are older than that");
    }
}
