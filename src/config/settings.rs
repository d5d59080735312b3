//! What `[defaults]` and each job may say alike, their bounds and their words, and how one is laid over the other; and what
//! surrounds a job's command.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::config::command::fits;
use crate::config::locks;
use crate::config::notation::{format_duration, is_variable_name, parse_duration};
use crate::config::reader::{LONGEST, Section, put, put_some};
use crate::config::secrets;
use crate::config::value::{Entry, zone_hint};
use crate::job::{
    Backoff, CommandSpec, Concurrency, JobName, JobSpec, KillMode, MAX_ATTEMPTS_LIMIT, OnLost, OnStoreError, Policy,
    Program, SHORTEST_LEASE_TTL,
};
use crate::slot::Period;
use crate::zone::Zone;

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
    "locks",
    "lock_wait",
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

/// A word, or a duration that divides a day.
fn period(section: &Section<'_>) -> Option<Period> {
    let entry = section.entry("slot")?;
    let length = entry.value().as_str().and_then(|_| parse_duration(&entry.text("\"hour\"")?).ok());
    let Some(length) = length else {
        return entry.word_or(PERIODS, ", or a duration that divides a day, like \"15m\"");
    };
    match Period::of_length(length) {
        Ok(period) => Some(period),
        Err(fix) => {
            entry.refuse("bad-slot", &format!("cannot be {}", format_duration(length)), fix.to_string());
            None
        }
    }
}

/// What `[defaults]` and each job may say alike.
#[derive(Clone)]
pub(super) struct Settings {
    timezone: Zone,
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
            timezone: Zone::UTC,
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
        put(&mut self.period, period(section));
        read(section, &mut self.policy);
        read_settings(section, &mut self.command);
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

fn zone(section: &Section<'_>) -> Option<Zone> {
    let entry = section.entry("timezone")?;
    let text = entry.text("\"Europe/Berlin\"")?;
    let zone = Zone::named(&text).map_err(|error| entry.refuse("bad-timezone", &error.to_string(), zone_hint(&text)));
    zone.ok()
}

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// One longer than a day is no lease.
pub(crate) const LEASE_TTL: RangeInclusive<Duration> = SHORTEST_LEASE_TTL..=seconds(86_400);
const DONE_TTL: RangeInclusive<Duration> = seconds(1)..=LONGEST;
const RETRY: RangeInclusive<Duration> = Duration::ZERO..=seconds(7 * 86_400);
const KILL_AFTER: RangeInclusive<Duration> = Duration::ZERO..=seconds(3_600);
const START_DEADLINE: RangeInclusive<Duration> = seconds(1)..=LONGEST;
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=LONGEST;

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
    locks::read(section, policy);
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

/// `"none"` means no limit. Zero does elsewhere (`timeout(1)`), and reads like the shortest limit.
fn timeout(section: &Section<'_>) -> Option<Option<Duration>> {
    let entry = section.entry("timeout")?;
    let is_zero = |text: &str| parse_duration(text).is_ok_and(|limit| limit.is_zero());
    if entry.value().as_str().is_some() && is_zero(&entry.text("\"30m\"")?) {
        entry.refuse("out-of-range", "is zero: no run could ever end in time", "write timeout = \"none\" for no limit");
        return None;
    }
    section.word_or_duration("timeout", "none", TIMEOUT)
}

/// `"slot"` means while the slot lasts.
fn start_deadline(section: &Section<'_>) -> Option<Option<Duration>> {
    section.word_or_duration("start_deadline", "slot", START_DEADLINE)
}

/// More than this is kept of no attempt: records live in the store, and a store is no log archive.
const LARGEST_OUTPUT: i64 = 1024 * 1024;

/// What cronward itself tells the command; a job cannot set these.
const RESERVED: &str = "CRONWARD_";

/// Takes over what a section says about the surroundings of a command.
fn read_settings(section: &Section<'_>, command: &mut CommandSpec) {
    if let Some(entry) = section.entry("env") {
        read_env(&entry, command);
    }
    put_some(&mut command.env_file, home_path(section, "env_file", "\"/etc/cronward/push.env\""));
    put_some(&mut command.cwd, home_path(section, "cwd", "\"/srv/app\""));
    put_some(&mut command.user, account(section, "user"));
    put_some(&mut command.group, account(section, "group"));
    put(&mut command.success_codes, success_codes(section));
    put(&mut command.output_limit, output_limit(section));
    let kill_modes = [("group", KillMode::Group), ("process", KillMode::Process)];
    put(&mut command.kill_mode, section.word("kill_mode", &kill_modes));
}

fn read_env(entry: &Entry<'_>, command: &mut CommandSpec) {
    for (name, span, field) in entry.fields("a table of strings", "{ RUST_LOG = \"info\" }").unwrap_or_default() {
        let value = field.text("\"…\"");
        if variable_name(entry, name, span) {
            secrets::look_at_variable(name, &field);
            let value = value.filter(|value| fits(&field, name.len() + 1 + value.len()));
            command.env.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
}

fn variable_name(entry: &Entry<'_>, name: &str, span: Range<usize>) -> bool {
    let shown: String = name.chars().take(40).collect();
    if !is_variable_name(name) {
        let message = format!("env: {shown:?} cannot name a variable");
        entry.ctx.error("bad-env-name", span, message, "use A-Z, a-z, 0-9 and _, and begin with no digit");
        return false;
    }
    if name.starts_with(RESERVED) {
        let message = format!("env: {shown} is set by cronward itself");
        entry.ctx.error("bad-env-name", span, message, "choose a name that does not begin with CRONWARD_");
        return false;
    }
    true
}

/// A path that may begin with `~`, the home of the job's user.
fn home_path(section: &Section<'_>, key: &str, example: &str) -> Option<PathBuf> {
    let entry = section.entry(key)?;
    let path = PathBuf::from(entry.filled_text(example)?);
    let first = path.iter().next().and_then(|first| first.to_str()).unwrap_or_default();
    if first.starts_with('~') && first != "~" {
        let what = format!("cannot begin with {first:?}: ~ is the home of the job's user, and of no other");
        entry.refuse("bad-path", &what, "write ~/ or the whole path");
        return None;
    }
    Some(path)
}

/// A user or group: a name or a number. Whether it exists is only known where the command runs.
fn account(section: &Section<'_>, key: &str) -> Option<String> {
    let entry = section.entry(key)?;
    let text = entry.filled_text("\"www-data\"")?;
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@');
    if text.starts_with('-') || !text.chars().all(allowed) {
        entry.refuse("bad-name", &format!("cannot be {text:?}"), "write the name or the number of an account");
        return None;
    }
    Some(text)
}

fn success_codes(section: &Section<'_>) -> Option<Vec<i32>> {
    let entry = section.entry("success_codes")?;
    let items = entry.items("a list of exit codes", "[0]")?;
    if items.is_empty() {
        entry.refuse("empty", "is empty: no run could ever succeed", "write success_codes = [0]");
        return None;
    }
    let codes: Vec<Option<i64>> = items.iter().map(|item| item.integer(0..=255, 0)).collect();
    codes.into_iter().map(|code| i32::try_from(code?).ok()).collect()
}

fn output_limit(section: &Section<'_>) -> Option<usize> {
    usize::try_from(section.entry("output_limit")?.bytes(0..=LARGEST_OUTPUT)?).ok()
}
