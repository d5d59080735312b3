//! What a node plans of one job, as it tells it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::json::{maybe_seconds, seconds};
use crate::job::{JobName, JobSpec, OnLost};
use crate::resource::Demand;

/// What a node plans of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// The job; in a journal the line names it.
    #[serde(skip)]
    pub job: Option<JobName>,
    /// The cron expression.
    pub schedule: String,
    /// Its zone.
    pub timezone: String,
    /// What one slot spans.
    pub period: String,
    /// Attempts in all.
    pub max_attempts: u32,
    /// TTL of a lease.
    #[serde(rename = "lease_ttl_s", with = "seconds")]
    pub lease_ttl: Duration,
    /// The wait after the first failure.
    #[serde(rename = "retry_delay_s", with = "seconds")]
    pub retry_delay: Duration,
    /// What becomes of a run whose lease is lost.
    pub on_lost: OnLost,
    /// False: `only_on` asks for other nodes; its slots are closed by every node.
    pub ours: bool,
    /// Upper bound of the job's fixed delay after each tick; absent in journals that are older than the field.
    #[serde(rename = "jitter_s", with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// Not started later than this after the tick.
    #[serde(rename = "start_deadline_s", with = "maybe_seconds", default, skip_serializing_if = "Option::is_none")]
    pub start_deadline: Option<Duration>,
    /// What each run holds besides its slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Demand>,
}

impl Plan {
    /// Of a job; `ours`: whether this node claims it.
    pub fn of(job: &JobSpec, ours: bool) -> Self {
        Self {
            job: Some(job.name.clone()),
            schedule: job.schedule.clone(),
            timezone: job.timezone.name().to_owned(),
            period: job.period.to_string(),
            max_attempts: job.policy.max_attempts,
            lease_ttl: job.policy.lease_ttl,
            retry_delay: job.policy.retry.delay,
            on_lost: job.policy.on_lost,
            ours,
            jitter: Some(job.jitter),
            start_deadline: job.policy.start_deadline,
            locks: job.policy.locks.iter().flatten().cloned().collect(),
        }
    }
}
