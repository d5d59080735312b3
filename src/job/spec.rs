//! A job as its file declares it: its limits and policies, as the guard goes by them, and what it starts: the program, its
//! environment, whose rights it has. Words only: nothing is started here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::JobName;
use crate::clock::between;
use crate::resource::Demands;
use crate::slot::{Period, Slot};
use crate::zone::Zone;

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
    pub timezone: Zone,
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
    /// Whether a node with these labels may claim it.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.only_on.iter().all(|(label, value)| labels.get(label) == Some(value))
    }

    /// A job with the defaults of `jobs.toml`.
    pub fn new(name: JobName, schedule: impl Into<String>, program: Program) -> Self {
        Self {
            name,
            description: None,
            owner: None,
            runbook: None,
            tags: Vec::new(),
            schedule: schedule.into(),
            timezone: Zone::UTC,
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

/// What is started for each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program, directly or by the shell.
    pub program: Program,
    /// Set for the command on top of the inherited environment; later wins. Values are not placeholders.
    pub env: BTreeMap<String, String>,
    /// `KEY=value` lines, read before each attempt.
    pub env_file: Option<PathBuf>,
    /// The working directory; the daemon's when none.
    pub cwd: Option<PathBuf>,
    /// The user to run as; needs a daemon that runs as root.
    pub user: Option<String>,
    /// The group to run as; the user's primary group when none.
    pub group: Option<String>,
    /// Exit codes that count as success.
    pub success_codes: Vec<i32>,
    /// Bytes of output kept, the last ones.
    pub output_limit: usize,
    /// What is stopped when the command has ended or is being stopped.
    pub kill_mode: KillMode,
}

/// How much of what a command started is stopped with it. The words are systemd's `KillMode=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KillMode {
    /// Everything, also what left the command's process group: nothing outlives its run.
    #[default]
    Group,
    /// The command and its process group while it runs, and nothing of it once it has ended: a daemon that it starts lives on,
    /// and nobody looks after that.
    Process,
}

/// How the command is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `command = ["/bin/x", "--hour", "{slot}"]`: no shell; placeholders are filled in.
    Direct(Vec<String>),
    /// `command = "x | y"`: `/bin/sh -c`, with the environment and no placeholders.
    Shell(String),
}

/// Bytes of output kept of an attempt when the job says nothing.
pub const DEFAULT_OUTPUT_LIMIT: usize = 64 * 1024;

impl CommandSpec {
    /// A command with the defaults of `jobs.toml`.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            env: BTreeMap::new(),
            env_file: None,
            cwd: None,
            user: None,
            group: None,
            success_codes: vec![0],
            output_limit: DEFAULT_OUTPUT_LIMIT,
            kill_mode: KillMode::Group,
        }
    }
}

/// How long to wait before a failed slot is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Wait after the first failure; after each when `backoff` is fixed.
    pub delay: Duration,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The longest wait.
    pub max_delay: Duration,
}

impl RetryPolicy {
    /// The wait after the `failures`-th failure of a slot (1-based), on every node.
    pub fn delay_after(&self, failures: u32) -> Duration {
        match self.backoff {
            Backoff::Fixed => self.delay,
            Backoff::Exponential => {
                let doublings = failures.saturating_sub(1).min(31);
                self.delay.saturating_mul(1_u32 << doublings).min(self.max_delay.max(self.delay))
            }
        }
    }
}

/// How the wait between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The same wait each time.
    Fixed,
    /// Doubled after each failure, up to the longest wait.
    Exponential,
}

/// What a node does with a running command whose lease is lost or in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnLost {
    /// Lets it finish: a repeated run is better than none.
    Continue,
    /// Kills its group before another node can start. The future of a service is dropped: [`crate::service`] says when.
    Kill,
}

/// What a node does at a tick when the store cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStoreError {
    /// Starts nothing (invariant I8) and goes on asking while the slot lasts.
    Skip,
    /// Runs once without a guard, loudly, after the store has been away for one `lease_ttl`.
    Run,
}

/// A slot's run against the run of another slot of the same job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Concurrency {
    /// Waits within the slot until the other run is over.
    Forbid,
    /// Runs beside it.
    Allow,
    /// The node of an older slot's run kills it; then as `Forbid`.
    Replace,
}

impl Concurrency {
    /// Whether a slot is granted only while no other slot of the job is leased.
    pub const fn is_exclusive(self) -> bool {
        !matches!(self, Self::Allow)
    }
}

/// The limits and policies of a job: all that the guard needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// TTL of a lease; renewed at a third of it.
    pub lease_ttl: Duration,
    /// TTL of the done marker, from completion on. See [`Policy::done_ttl_for`].
    pub done_ttl: Duration,
    /// Attempts in all, over all nodes; 1 to [`MAX_ATTEMPTS_LIMIT`].
    pub max_attempts: u32,
    /// The wait between attempts.
    pub retry: RetryPolicy,
    /// Per attempt; none means that the run may last for ever.
    pub timeout: Option<Duration>,
    /// From TERM to KILL.
    pub kill_after: Duration,
    /// When the lease is lost.
    pub on_lost: OnLost,
    /// When the store is away at the tick.
    pub on_store_error: OnStoreError,
    /// Against another slot's run.
    pub concurrency: Concurrency,
    /// Not started later than this after the tick; none means while the slot lasts.
    pub start_deadline: Option<Duration>,
    /// What each run holds besides its slot; none for nothing.
    pub locks: Option<Demands>,
    /// How long they are waited for at the most; none means as long as the slot and `start_deadline` allow.
    pub lock_wait: Option<Duration>,
}

/// The largest `max_attempts`: the fence keeps three decimal digits for the attempt.
pub const MAX_ATTEMPTS_LIMIT: u32 = 999;

/// A lease shorter than half a second would be lost to any hiccup.
pub const SHORTEST_LEASE_TTL: Duration = Duration::from_millis(500);

/// What the clocks of nodes and store may differ by before a done marker could end within its slot.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The wait between attempts, where slots leave room for it.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Whole milliseconds, like every duration that a file or a store has.
fn part(slot: Duration, divisor: u128) -> Duration {
    Duration::from_millis(u64::try_from(slot.as_millis() / divisor).unwrap_or(u64::MAX))
}

impl Policy {
    /// The TTL of a lease where nobody says one, by the length of the shortest slot: a third of it, so that another node still
    /// has time within the slot when one dies; at most a minute, and never below [`SHORTEST_LEASE_TTL`].
    pub fn default_lease_ttl(shortest_slot: Duration) -> Duration {
        part(shortest_slot, 3).clamp(SHORTEST_LEASE_TTL, Duration::from_secs(60))
    }

    /// The wait between attempts where nobody says one: a sixth of the shortest slot, so that the retries have room in it; at most
    /// that of [`Policy::default`].
    pub fn default_retry_delay(shortest_slot: Duration) -> Duration {
        part(shortest_slot, 6).min(RETRY_DELAY)
    }

    /// The done marker's TTL for this slot: `done_ttl`, but never so short that the marker could end before the slot.
    pub fn done_ttl_for(&self, slot: &Slot) -> Duration {
        self.done_ttl.max(between(slot.start(), slot.end()).saturating_add(CLOCK_SKEW))
    }
}

impl Default for Policy {
    /// The defaults of `jobs.toml`.
    fn default() -> Self {
        Self {
            lease_ttl: Duration::from_secs(60),
            done_ttl: Duration::from_secs(2 * 3_600),
            max_attempts: 3,
            retry: RetryPolicy { delay: RETRY_DELAY, backoff: Backoff::Fixed, max_delay: Duration::from_secs(300) },
            timeout: Some(Duration::from_secs(30 * 60)),
            kill_after: Duration::from_secs(10),
            on_lost: OnLost::Continue,
            on_store_error: OnStoreError::Skip,
            concurrency: Concurrency::Forbid,
            start_deadline: None,
            locks: None,
            lock_wait: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_third_of_a_short_slot_unless_somebody_says_more() {
        for (slot_ms, ttl_ms) in [(1_000, 500), (2_000, 666), (60_000, 20_000), (180_000, 60_000), (86_400_000, 60_000)]
        {
            let ttl = Policy::default_lease_ttl(Duration::from_millis(slot_ms));
            assert_eq!(ttl.as_millis(), ttl_ms, "{slot_ms}");
        }
    }

    #[test]
    fn a_retry_waits_a_sixth_of_a_short_slot() {
        for (slot_ms, delay_ms) in [(1_000, 166), (5_000, 833), (60_000, 10_000), (86_400_000, 10_000)] {
            let delay = Policy::default_retry_delay(Duration::from_millis(slot_ms));
            assert_eq!(delay.as_millis(), delay_ms, "{slot_ms}");
        }
        assert_eq!(Policy::default().retry.delay, Policy::default_retry_delay(Duration::MAX));
    }

    fn retry(backoff: Backoff) -> RetryPolicy {
        RetryPolicy { delay: Duration::from_secs(10), backoff, max_delay: Duration::from_secs(60) }
    }

    #[test]
    fn a_fixed_wait_stays_and_an_exponential_one_doubles_up_to_its_cap() {
        let fixed = [1, 2, 9].map(|n| retry(Backoff::Fixed).delay_after(n).as_secs());
        assert_eq!(fixed, [10, 10, 10]);
        let doubled = [1, 2, 3, 4, 999].map(|n| retry(Backoff::Exponential).delay_after(n).as_secs());
        assert_eq!(doubled, [10, 20, 40, 60, 60]);
    }

    #[test]
    fn a_cap_below_the_delay_does_not_shorten_the_delay() {
        let policy = RetryPolicy { max_delay: Duration::from_secs(1), ..retry(Backoff::Exponential) };
        assert_eq!(policy.delay_after(5).as_secs(), 10);
    }

    #[test]
    fn a_done_marker_outlives_its_slot_whatever_done_ttl_says() {
        let policy = Policy { done_ttl: Duration::from_secs(1), ..Policy::default() };
        let slot = Slot::parse("daily", "2026-11-21T00Z", "2026-11-22T00Z").unwrap();
        assert_eq!(policy.done_ttl_for(&slot), Duration::from_secs(86_400) + CLOCK_SKEW);
    }
}
