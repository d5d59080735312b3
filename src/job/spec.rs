//! A job as its file declares it. Words only.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono_tz::Tz;

use super::{CommandSpec, JobName, Policy, Program};
use crate::slot::Period;

/// A declared unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Its name, unique within the namespace.
    pub name: JobName,
    /// For people.
    pub description: Option<String>,
    /// Who is asked about it.
    pub owner: Option<String>,
    /// Where it is written what to do when it fails.
    pub runbook: Option<String>,
    /// For people.
    pub tags: Vec<String>,
    /// The cron expression as written; `schedule` compiles it.
    pub schedule: String,
    /// The zone in which the expression, hours and days are read.
    pub timezone: Tz,
    /// What one slot spans.
    pub period: Period,
    /// Limits and policies.
    pub policy: Policy,
    /// What is started.
    pub command: CommandSpec,
    /// False: planned by nobody.
    pub enabled: bool,
    /// Upper bound of the fixed delay after each tick.
    pub jitter: Duration,
    /// Only nodes that carry all of these labels claim it.
    pub only_on: BTreeMap<String, String>,
    /// Told when the last success is older than this.
    pub alert_after: Option<Duration>,
    /// Names of the channels to tell.
    pub notify: Vec<String>,
}

impl JobSpec {
    /// A job with the defaults of `jobs.toml`.
    pub fn new(name: JobName, schedule: impl Into<String>, program: Program) -> Self {
        Self {
            name,
            description: None,
            owner: None,
            runbook: None,
            tags: Vec::new(),
            schedule: schedule.into(),
            timezone: Tz::UTC,
            period: Period::Hour,
            policy: Policy::default(),
            command: CommandSpec::new(program),
            enabled: true,
            jitter: Duration::ZERO,
            only_on: BTreeMap::new(),
            alert_after: None,
            notify: Vec::new(),
        }
    }
}
