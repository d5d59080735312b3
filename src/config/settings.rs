//! What `[defaults]` and each job may say alike, and how one is laid over the other.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use std::time::Duration;

use chrono_tz::Tz;

use crate::config::nearest::nearest_zone;
use crate::config::reader::{LONGEST, Section, put, put_some};
use crate::config::{command, policy};
use crate::job::{CommandSpec, JobName, JobSpec, Policy, Program};
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
        policy::read(section, &mut self.policy);
        command::read_settings(section, &mut self.command);
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
