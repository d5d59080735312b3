//! The small registry beside the slots: which jobs and nodes there are, and which jobs are paused.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::clock::later;
use crate::job::{JobName, JobSpec, NodeName};
use crate::slot::Audit;
use crate::store::state::Moment;
use crate::zone::ZoneRelease;

/// Between two heartbeats of a node.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// A node that was not heard of for this long is late: a heartbeat, and a second to send it.
pub(crate) const HEARTBEAT_DUE: Duration = HEARTBEAT.saturating_add(Duration::from_secs(1));

/// No node for this long: nobody was alive. Also how long before its last heartbeat a node may have died.
pub const SILENCE: Duration = HEARTBEAT.saturating_mul(2);

/// After an outage of the store each node that is alive is heard again within this: a heartbeat, and the time to send it.
#[cfg(any(feature = "http", feature = "notify"))]
pub(crate) const HEARD_AGAIN: Duration = HEARTBEAT.saturating_add(Duration::from_secs(5));

/// Who made the registry know a job, and so who has its command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOrigin {
    /// A file of jobs: daemons plan it.
    #[default]
    File,
    /// A command line, `cronward exec`: some crontab starts it, and no file has its command.
    Crontab,
    /// A program with a [`crate::service::Guard`]: it has the work, and calls when it wants it done.
    Service,
}

impl JobOrigin {
    const fn is_file(&self) -> bool {
        matches!(self, Self::File)
    }
}

/// The first sight of a caller that has none: later than the clock of any store.
const UNSEEN: DateTime<Utc> = match DateTime::from_timestamp(253_402_300_799, 0) {
    Some(last_second_of_9999) => last_second_of_9999,
    None => DateTime::<Utc>::MAX_UTC,
};

/// The command that a crontab starts under a job's name, without its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrontabCommand {
    /// [`crate::job::hash::of_command`] of the command that ran last.
    pub digest: String,
    /// When a machine last started another command under the name, in a slot that the machine had done; to the hour.
    #[serde(
        default,
        rename = "conflict_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub conflict: Option<DateTime<Utc>>,
}

/// How long a conflict of commands is shown after the machine last found it: a daily line finds it once a day.
const CONFLICT_SHOWN: Duration = Duration::from_secs(2 * 86_400);

/// A job as the registry knows it: enough to compute its slots without its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEntry {
    /// Its name.
    pub name: JobName,
    /// Its cron expression.
    pub schedule: String,
    /// Its IANA time zone.
    pub timezone: String,
    /// `hour`, `minute`, `day`, `tick`, or a length like `15m`.
    pub period: String,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Whether it is planned.
    pub enabled: bool,
    /// Who made it known.
    #[serde(default, skip_serializing_if = "JobOrigin::is_file")]
    pub origin: JobOrigin,
    /// What a crontab starts; none where a file or a service has the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CrontabCommand>,
    /// When a node that has it in its file said so last, by that node's clock as it is put right by the store's; none where no
    /// daemon did. To the hour: a node says so at its start, when it reads its file again, and once an hour. Its heartbeats name its
    /// jobs, too.
    #[serde(
        default,
        rename = "planned_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub planned: Option<DateTime<Utc>>,
    /// When the cluster first knew the name, by the store's clock. In a request: since when the caller knows the job; the store keeps
    /// the earliest of that, its own time and what it has. Stands last: stores look for it there.
    #[serde(rename = "first_seen_ms", with = "chrono::serde::ts_milliseconds")]
    pub first_seen: DateTime<Utc>,
}

impl JobEntry {
    /// The entry of a job of a file, seen now.
    pub fn of(spec: &JobSpec, now: DateTime<Utc>) -> Self {
        Self {
            name: spec.name.clone(),
            schedule: spec.schedule.clone(),
            timezone: spec.timezone.name().to_owned(),
            period: spec.period.to_string(),
            max_attempts: spec.policy.max_attempts,
            enabled: spec.enabled,
            origin: JobOrigin::File,
            command: None,
            // To the hour: a registration that is repeated finds nothing to write.
            planned: now.duration_trunc(TimeDelta::hours(1)).ok(),
            first_seen: now,
        }
    }

    /// The same with what is known of a conflict, where the command has not changed.
    #[must_use]
    pub fn keeping_conflict(self, known: &Self) -> Self {
        let digest = |entry: &Self| entry.command.as_ref().map(|command| command.digest.clone());
        if digest(&self) == digest(known) { Self { command: known.command.clone(), ..self } } else { self }
    }

    /// When a machine last started another command under the name, unless that was long ago.
    pub fn command_conflict(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.command.as_ref()?.conflict.filter(|at| later(*at, CONFLICT_SHOWN) > now)
    }

    /// Whether this leaves a known entry of the same name as it is: what a file's daemon said is replaced by another file's
    /// alone.
    pub fn yields_to(&self, known: &Self) -> bool {
        known.origin.is_file() && !self.origin.is_file()
    }

    /// What is kept of the name once this is registered; none where that is what is kept already.
    pub(super) fn registered(&self, known: Option<&Self>, now: DateTime<Utc>) -> Option<Self> {
        let first_seen = known.map_or(now, |known| known.first_seen).min(self.first_seen);
        let entry = Self { first_seen, ..self.clone() };
        let stays = known.is_some_and(|known| *known == entry || entry.yields_to(known));
        (!stays).then_some(entry)
    }

    /// Each name once: of several entries of one name the last, unless that yields to one before it.
    pub fn by_name(entries: &[Self]) -> BTreeMap<&JobName, &Self> {
        let mut named: BTreeMap<&JobName, &Self> = BTreeMap::new();
        for entry in entries {
            let kept = named.entry(&entry.name).or_insert(entry);
            if !entry.yields_to(kept) {
                *kept = entry;
            }
        }
        named
    }

    /// The entry of a job that no daemon plans. Its schedule is no more than where its slots begin.
    pub fn unplanned(spec: &JobSpec, origin: JobOrigin, now: DateTime<Utc>) -> Self {
        Self { enabled: false, origin, planned: None, ..Self::of(spec, now).unseen() }
    }

    /// The same from a caller whose clock says nothing: of a name that is new the store's time counts.
    #[must_use]
    pub fn unseen(self) -> Self {
        Self { first_seen: UNSEEN, ..self }
    }
}

/// What a node says of itself with each heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name.
    pub name: NodeName,
    /// Fresh at each start: two daemons of one name are seen.
    pub instance: String,
    /// The program's version.
    pub version: String,
    /// Hash of its jobs; nodes that differ run different files.
    pub config_hash: String,
    /// Where the rules of its time zones come from; none where every job of its file is in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneRelease>,
    /// Hash of each job, so that a difference can be named.
    pub job_hashes: BTreeMap<JobName, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it started, by its own clock.
    #[serde(rename = "started_ms", with = "chrono::serde::ts_milliseconds")]
    pub started_at: DateTime<Utc>,
    /// The node's clock minus the store's, in milliseconds, as last measured.
    pub clock_offset_ms: i64,
    /// Slots it runs now, as `job@key`.
    pub running: Vec<String>,
    /// True while it finishes its runs before it leaves.
    pub draining: bool,
    /// True in its last report: it left because it was told to.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// The report of another node that is alive and has the same name, where there is one: the two take each other's place in the
    /// registry again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namesake: Option<Box<Self>>,
    /// Jobs whose ended slots it has not closed up to now, with the start of the oldest; should it die, another node goes
    /// on from there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<JobName, DateTime<Utc>>,
    /// Jobs with which it, or the first of those that it took over from, began after the store had first seen them and without
    /// hearing of a node that had them: the start of the slot with which that was. Of what ended earlier it says nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub since: BTreeMap<JobName, DateTime<Utc>>,
    /// The last heartbeat of any node before its own start, where no node was alive then: up to its start there was none. For people.
    #[serde(
        default,
        rename = "silent_since_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub silent_since: Option<DateTime<Utc>>,
}

impl NodeReport {
    /// The hash of a job's definition; none where the node has no such job, or left the hash out of a report that was too long.
    pub fn hash_of(&self, job: &JobName) -> Option<&String> {
        self.job_hashes.get(job).filter(|hash| !hash.is_empty())
    }

    /// The node has the job, and left its hash out of a report that was too long.
    pub fn has_unknown(&self, job: &JobName) -> bool {
        self.job_hashes.get(job).is_some_and(String::is_empty)
    }

    /// What a node without jobs says of itself when it starts.
    pub fn new(name: NodeName, instance: &str, started_at: DateTime<Utc>) -> Self {
        Self {
            name,
            instance: instance.to_owned(),
            version: String::new(),
            config_hash: String::new(),
            zones: None,
            job_hashes: BTreeMap::new(),
            labels: BTreeMap::new(),
            started_at,
            clock_offset_ms: 0,
            running: Vec::new(),
            draining: false,
            stopped: false,
            namesake: None,
            behind: BTreeMap::new(),
            since: BTreeMap::new(),
            silent_since: None,
        }
    }
}

/// A node as the registry knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its last report.
    pub report: NodeReport,
    /// When that came, by the store's clock.
    pub seen: DateTime<Utc>,
}

impl NodeEntry {
    /// Whether the node runs: it was heard of a moment ago, and has not left.
    pub fn is_alive(&self, now: DateTime<Utc>) -> bool {
        !self.report.stopped && later(self.seen, SILENCE) > now
    }

    /// Whether it is still kept, and not yet forgotten for not being heard of.
    pub(super) fn is_kept(&self, at: Moment) -> bool {
        later(self.seen, at.retention) > at.now
    }

    /// Whether the node has the job in its file.
    pub fn plans(&self, job: &JobName) -> bool {
        self.report.job_hashes.contains_key(job)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// The store's clock.
    pub now: DateTime<Utc>,
    /// The store had an entry of this name before: where it acknowledged one and has none, it has lost its data.
    pub was_known: bool,
}

/// A job's pause. There is at most one per job; a resume sets its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// From when, by the store's clock.
    pub since: DateTime<Utc>,
    /// Until when; none means until resumed.
    pub until: Option<DateTime<Utc>>,
    /// Who paused it and why.
    pub audit: Audit,
    /// Who ended it and why, after a resume.
    pub ended: Option<Audit>,
}

impl Pause {
    /// One that begins now.
    pub fn begun(until: Option<DateTime<Utc>>, audit: &Audit, now: DateTime<Utc>) -> Self {
        Self { since: now, until, audit: Audit { at: now, ..audit.clone() }, ended: None }
    }

    /// The same, ended now; none when it is over already.
    pub fn end(self, audit: &Audit, now: DateTime<Utc>) -> Option<Self> {
        self.remaining(now)?;
        Some(Self { until: Some(now), ended: Some(Audit { at: now, ..audit.clone() }), ..self })
    }

    /// The verb that was the last to change it.
    pub fn last(&self) -> &Audit {
        self.ended.as_ref().unwrap_or(&self.audit)
    }

    /// How long it lasts from `now` on: none when it is over, `Some(None)` when it has no end.
    pub fn remaining(&self, now: DateTime<Utc>) -> Option<Option<Duration>> {
        match self.until {
            None => Some(None),
            Some(until) => until.signed_duration_since(now).to_std().ok().filter(|left| !left.is_zero()).map(Some),
        }
    }

    /// Whether it covered some instant of the span.
    pub fn touches(&self, start: DateTime<Utc>, end: DateTime<Utc>) -> bool {
        self.since < end && self.until.is_none_or(|until| until > start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Program;

    #[test]
    fn a_jobs_entry_that_says_nothing_of_its_origin_is_a_files_and_the_instant_stands_last() {
        let spec = JobSpec::new(JobName::new("a").unwrap(), "0 * * * *", Program::Direct(Vec::new()));
        let of_file = JobEntry::of(&spec, DateTime::UNIX_EPOCH);
        let written = serde_json::to_string(&of_file).unwrap();
        assert!(!written.contains("origin"), "{written}");
        assert_eq!(serde_json::from_str::<JobEntry>(&written).unwrap(), of_file);
        let of_crontab = JobEntry::unplanned(&spec, JobOrigin::Crontab, DateTime::UNIX_EPOCH);
        let written = serde_json::to_string(&of_crontab).unwrap();
        // Redis takes what stands before it as it is.
        let unseen = UNSEEN.timestamp_millis();
        let end = format!(r#""enabled":false,"origin":"crontab","first_seen_ms":{unseen}}}"#);
        assert!(written.ends_with(&end), "{written}");
        assert_eq!(serde_json::from_str::<JobEntry>(&written).unwrap(), of_crontab);
    }

    #[test]
    fn a_report_that_answers_from_the_first_slot_on_reads_and_is_written_as_one_that_knows_of_no_other() {
        let report = NodeReport::new(NodeName::new("n").unwrap(), "i", DateTime::UNIX_EPOCH);
        let written = serde_json::to_string(&report).unwrap();
        assert!(!written.contains("since"), "{written}");
        assert_eq!(serde_json::from_str::<NodeReport>(&written).unwrap(), report);
        let since = BTreeMap::from([(JobName::new("a").unwrap(), DateTime::UNIX_EPOCH)]);
        let report = NodeReport { since, ..report };
        let written = serde_json::to_string(&report).unwrap();
        assert!(written.ends_with(r#""since":{"a":"1970-01-01T00:00:00Z"}}"#), "{written}");
        assert_eq!(serde_json::from_str::<NodeReport>(&written).unwrap(), report);
    }
}
