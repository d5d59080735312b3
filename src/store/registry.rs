//! The small registry beside the slots: which jobs and nodes there are, and which jobs are paused.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::{JobName, JobSpec, NodeName};
use crate::slot::Audit;

/// A job as the registry knows it: enough to compute its slots without its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEntry {
    /// Its name.
    pub name: JobName,
    /// Its cron expression.
    pub schedule: String,
    /// Its IANA time zone.
    pub timezone: String,
    /// `hour`, `minute`, `day`, `tick`, or whole seconds like `5s`.
    pub period: String,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Whether it is planned.
    pub enabled: bool,
    /// When the name was first registered, by the store's clock; ignored in a request.
    #[serde(rename = "first_seen_ms", with = "chrono::serde::ts_milliseconds")]
    pub first_seen: DateTime<Utc>,
}

impl JobEntry {
    /// The entry of a job, seen now.
    pub fn of(spec: &JobSpec, now: DateTime<Utc>) -> Self {
        Self {
            name: spec.name.clone(),
            schedule: spec.schedule.clone(),
            timezone: spec.timezone.name().to_owned(),
            period: spec.period.to_string(),
            max_attempts: spec.policy.max_attempts,
            enabled: spec.enabled,
            first_seen: now,
        }
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
    /// Jobs whose ended slots it has not closed up to now, with the start of the oldest; should it die, another node goes
    /// on from there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<JobName, DateTime<Utc>>,
}

/// A node as the registry knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its last report.
    pub report: NodeReport,
    /// When that came, by the store's clock.
    pub seen: DateTime<Utc>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// The store's clock.
    pub now: DateTime<Utc>,
}

/// A job's pause. There is at most one per job; a resume sets its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// From when, by the store's clock.
    pub since: DateTime<Utc>,
    /// Until when; none means until resumed.
    pub until: Option<DateTime<Utc>>,
    /// Who paused it and why; after a resume, who ended it.
    pub audit: Audit,
}

impl Pause {
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
