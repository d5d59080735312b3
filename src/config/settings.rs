//! What `[defaults]` and each job may say alike, and how one is laid over the other.
//! Its keys, their bounds and their words.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use std::time::Duration;

use chrono_tz::Tz;

use crate::config::jobs;
use crate::config::reader::{LONGEST, Section, put, put_some};
use crate::config::value::nearest_zone;
use crate::job::{
    Backoff, CommandSpec, Concurrency, JobName, JobSpec, MAX_ATTEMPTS_LIMIT, OnLost, OnStoreError, Policy, Program,
    SHORTEST_LEASE_TTL,
};
use crate::slot::Period;

/// The keys of `[defaults]`; a job has these and its own.
pub(super) const KEYS: &[&str] = &[
    "timezone",
    "slot",
    "lease_ttl",
    "done_ttl",
    "max_attempts",
    "retry_delay",
    "retry_backoff",
    "retry_max_delay",
    "timeout",
    "kill_after",
    "on_lost",
    "on_store_error",
    "concurrency",
    "start_deadline",
    "jitter",
    "env",
    "env_file",
    "cwd",
    "user",
    "group",
    "success_codes",
    "output_limit",
    "kill_mode",
    "enabled",
    "tags",
    "owner",
    "runbook",
    "only_on",
    "alert_after",
    "notify",
];

/// Where the value of each key is written.
pub(super) type Places = BTreeMap<String, Range<usize>>;

const ALERT_AFTER: RangeInclusive<Duration> = Duration::from_secs(1)..=LONGEST;
const JITTER: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(86_400);

const PERIODS: &[(&str, Period)] =
    &[("hour", Period::Hour), ("minute", Period::Minute), ("day", Period::Day), ("tick", Period::Tick)];

/// What `[defaults]` and each job may say alike.
#[derive(Clone)]
pub(super) struct Settings {
    timezone: Tz,
    period: Period,
    policy: Policy,
    command: CommandSpec,
    enabled: bool,
    jitter: Duration,
    only_on: BTreeMap<String, String>,
    alert_after: Option<Duration>,
    notify: Vec<String>,
    tags: Vec<String>,
    owner: Option<String>,
    runbook: Option<String>,
}

impl Settings {
    fn builtin() -> Self {
        Self {
            timezone: Tz::UTC,
            period: Period::Hour,
            policy: Policy::default(),
            command: CommandSpec::new(Program::Direct(Vec::new())),
            enabled: true,
            jitter: Duration::ZERO,
            only_on: BTreeMap::new(),
            alert_after: None,
            notify: Vec::new(),
            tags: Vec::new(),
            owner: None,
            runbook: None,
        }
    }

    /// Takes over what a section says. `env` and `only_on` are laid over key by key, everything else is replaced.
    pub(super) fn read(&mut self, section: &Section<'_>) {
        put(&mut self.timezone, zone(section));
        put(&mut self.period, section.word("slot", PERIODS));
        read(section, &mut self.policy);
        jobs::read_settings(section, &mut self.command);
        put(&mut self.enabled, section.boolean("enabled"));
        put(&mut self.jitter, section.duration("jitter", JITTER));
        self.only_on.extend(section.text_map("only_on", "{ zone = \"eu-1\" }").unwrap_or_default());
        put_some(&mut self.alert_after, section.duration("alert_after", ALERT_AFTER));
        put(&mut self.notify, section.texts("notify", "[\"ops\"]"));
        put(&mut self.tags, section.texts("tags", "[\"billing\"]"));
        put_some(&mut self.owner, section.text("owner", "\"billing team\""));
        put_some(&mut self.runbook, section.text("runbook", "\"https://wiki/billing\""));
    }

    /// A job with these settings.
    pub(super) fn into_spec(self, name: JobName, schedule: String, program: Program) -> JobSpec {
        JobSpec {
            name,
            description: None,
            owner: self.owner,
            runbook: self.runbook,
            tags: self.tags,
            schedule,
            timezone: self.timezone,
            period: self.period,
            policy: self.policy,
            command: CommandSpec { program, ..self.command },
            enabled: self.enabled,
            jitter: self.jitter,
            only_on: self.only_on,
            alert_after: self.alert_after,
            notify: self.notify,
        }
    }
}

/// `[defaults]`, read once.
pub(super) struct Defaults {
    pub(super) settings: Settings,
    pub(super) places: Rc<Places>,
}

/// Reads `[defaults]`.
pub(super) fn defaults(section: &Section<'_>) -> Defaults {
    section.only(KEYS, &[("[jobs.NAME]", &["description", "schedule", "command"])]);
    let mut settings = Settings::builtin();
    settings.read(section);
    Defaults { settings, places: Rc::new(section.places()) }
}

fn zone(section: &Section<'_>) -> Option<Tz> {
    let entry = section.entry("timezone")?;
    let text = entry.text("\"Europe/Berlin\"")?;
    if let Ok(zone) = text.parse() {
        return Some(zone);
    }
    let shown: String = text.chars().take(40).collect();
    let hint = match nearest_zone(&text) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "write an IANA name like \"UTC\" or \"Europe/Berlin\"".to_owned(),
    };
    entry.refuse("bad-timezone", &format!("{shown:?} is no time zone"), hint);
    None
}

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// One longer than a day is no lease.
const LEASE_TTL: RangeInclusive<Duration> = SHORTEST_LEASE_TTL..=seconds(86_400);
const DONE_TTL: RangeInclusive<Duration> = seconds(1)..=LONGEST;
const RETRY: RangeInclusive<Duration> = Duration::ZERO..=seconds(7 * 86_400);
const KILL_AFTER: RangeInclusive<Duration> = Duration::ZERO..=seconds(3_600);
const START_DEADLINE: RangeInclusive<Duration> = seconds(1)..=LONGEST;
/// Zero is the word for "no limit", so that an environment variable can say it too.
const TIMEOUT: RangeInclusive<Duration> = Duration::ZERO..=LONGEST;

/// Takes over what a section says.
pub(super) fn read(section: &Section<'_>, policy: &mut Policy) {
    put(&mut policy.lease_ttl, section.duration("lease_ttl", LEASE_TTL));
    put(&mut policy.done_ttl, section.duration("done_ttl", DONE_TTL));
    put(&mut policy.max_attempts, max_attempts(section));
    put(&mut policy.retry.delay, section.duration("retry_delay", RETRY));
    put(&mut policy.retry.max_delay, section.duration("retry_max_delay", RETRY));
    put(&mut policy.timeout, timeout(section));
    put(&mut policy.kill_after, section.duration("kill_after", KILL_AFTER));
    put(&mut policy.start_deadline, start_deadline(section));
    read_words(section, policy);
}

fn read_words(section: &Section<'_>, policy: &mut Policy) {
    let backoffs = [("fixed", Backoff::Fixed), ("exponential", Backoff::Exponential)];
    put(&mut policy.retry.backoff, section.word("retry_backoff", &backoffs));
    put(&mut policy.on_lost, section.word("on_lost", &[("continue", OnLost::Continue), ("kill", OnLost::Kill)]));
    let on_store_error = [("skip", OnStoreError::Skip), ("run", OnStoreError::Run)];
    put(&mut policy.on_store_error, section.word("on_store_error", &on_store_error));
    let concurrency =
        [("forbid", Concurrency::Forbid), ("allow", Concurrency::Allow), ("replace", Concurrency::Replace)];
    put(&mut policy.concurrency, section.word("concurrency", &concurrency));
}

fn max_attempts(section: &Section<'_>) -> Option<u32> {
    let number = section.entry("max_attempts")?.integer(1..=i64::from(MAX_ATTEMPTS_LIMIT), 3)?;
    u32::try_from(number).ok()
}

/// `"none"` and `"0s"` mean no limit.
fn timeout(section: &Section<'_>) -> Option<Option<Duration>> {
    let duration = section.word_or_duration("timeout", "none", TIMEOUT)?;
    Some(duration.filter(|limit| !limit.is_zero()))
}

/// `"slot"` means while the slot lasts.
fn start_deadline(section: &Section<'_>) -> Option<Option<Duration>> {
    section.word_or_duration("start_deadline", "slot", START_DEADLINE)
}
