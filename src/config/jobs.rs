//! `[jobs.NAME]`: one draft per job, with `[defaults]` below it; its command and what surrounds it. Variables are never replaced
//! inside a command: `{slot}` and the environment are its inputs.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use toml::Spanned;
use toml::de::DeValue;

use crate::config::interpolate::is_variable_name;
use crate::config::reader::{Section, put, put_some};
use crate::config::secrets;
use crate::config::sections::HOMES;
use crate::config::settings::{Defaults, KEYS, Places};
use crate::config::value::Entry;
use crate::exec::placeholders;
use crate::job::{CommandSpec, JobName, JobSpec, KillMode, Policy, Program};
use crate::schedule::Timetable;

const OWN_KEYS: &[&str] = &["description", "schedule", "command"];

/// A job as far as it could be read.
pub(super) struct Draft {
    pub(super) spec: JobSpec,
    /// Its ticks and slots; none when its schedule cannot be used.
    pub(super) timetable: Option<Timetable>,
    /// Where its name is.
    pub(super) name: Range<usize>,
    /// Where its own keys are.
    own: Places,
    /// Where the keys of `[defaults]` are.
    inherited: Rc<Places>,
    /// Whether nothing was wrong with it so far.
    pub(super) sound: bool,
}

impl Draft {
    /// Where the job itself says this.
    pub(super) fn own(&self, key: &str) -> Option<Range<usize>> {
        self.own.get(key).cloned()
    }

    /// Where the file says this of the job: in the job, or in `[defaults]`.
    pub(super) fn place(&self, key: &str) -> Option<Range<usize>> {
        self.own(key).or_else(|| self.inherited.get(key).cloned())
    }

    /// The same; the job's name when the file does not say it.
    pub(super) fn place_or_name(&self, key: &str) -> Range<usize> {
        self.place(key).unwrap_or_else(|| self.name.clone())
    }
}

/// Reads every job that has a usable name, or one alone.
pub(super) fn read(section: &Section<'_>, defaults: &Defaults, only: Option<&JobName>) -> Vec<Draft> {
    let known: Vec<&str> = OWN_KEYS.iter().chain(KEYS).copied().collect();
    let draft = |(key, job): (&Spanned<Cow<'_, str>>, Section<'_>)| {
        let errors = job.ctx.errors();
        job.only(&known, HOMES);
        let name = name(&job, key);
        let mut draft = one(&job, name?, defaults);
        draft.sound = job.ctx.errors() == errors;
        Some(draft)
    };
    let is_wanted = |key: &Spanned<Cow<'_, str>>| only.is_none_or(|only| only.as_str() == key.get_ref().as_ref());
    section.children().filter(|(key, _)| is_wanted(key)).filter_map(draft).collect()
}

fn name(job: &Section<'_>, key: &Spanned<Cow<'_, str>>) -> Option<JobName> {
    match JobName::new(key.get_ref()) {
        Ok(name) => Some(name),
        Err(error) => {
            job.ctx.error("bad-name", key.span(), error.to_string(), suggestion(key.get_ref()));
            None
        }
    }
}

/// The nearest name that is allowed, if there is one.
fn suggestion(name: &str) -> Option<String> {
    let lower: String = name.chars().take(52).flat_map(char::to_lowercase).collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let mapped: String = lower.chars().map(allowed).collect();
    let trimmed = mapped.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    JobName::new(trimmed).ok().map(|name| format!("for example [jobs.{name}]"))
}

fn one(job: &Section<'_>, name: JobName, defaults: &Defaults) -> Draft {
    let mut settings = defaults.settings.clone();
    settings.read(job);
    let schedule = schedule(job);
    let program = program(job);
    let mut spec = settings.into_spec(name, schedule.clone().unwrap_or_default(), program);
    spec.description = job.text("description", "\"Push the hour's invoices\"");
    let timetable = schedule.and_then(|_| timetable(job, &spec));
    let (own, inherited) = (job.places(), Rc::clone(&defaults.places));
    let mut draft = Draft { spec, timetable, name: job.span.clone(), own, inherited, sound: false };
    let shortest_slot = draft.timetable.as_ref().map(Timetable::shortest_slot);
    let default = |key: &str| shortest_slot.filter(|_| draft.place(key).is_none());
    let (lease_ttl, retry_delay) = (default("lease_ttl"), default("retry_delay"));
    put(&mut draft.spec.policy.lease_ttl, lease_ttl.map(Policy::default_lease_ttl));
    put(&mut draft.spec.policy.retry.delay, retry_delay.map(Policy::default_retry_delay));
    draft
}

fn schedule(job: &Section<'_>) -> Option<String> {
    let entry = job.entry("schedule");
    if entry.is_none() && !job.is_misspelled("schedule") {
        let message = "the job has no schedule".to_owned();
        job.ctx.error("missing-schedule", job.span.clone(), message, "add schedule = \"0 * * * *\" (every hour)");
    }
    entry?.text("\"0 * * * *\"")
}

fn timetable(job: &Section<'_>, spec: &JobSpec) -> Option<Timetable> {
    let entry = job.entry("schedule")?;
    match Timetable::of(spec) {
        Ok(timetable) => Some(timetable),
        Err(error) => {
            entry.object("bad-schedule", error.message, error.hint);
            None
        }
    }
}

/// More than this is kept of no attempt: records live in the store, and a store is no log archive.
const LARGEST_OUTPUT: i64 = 1024 * 1024;

/// What cronward itself tells the command; a job cannot set these.
const RESERVED: &str = "CRONWARD_";

const EXAMPLE: &str = "[\"/usr/local/bin/push\", \"--hour\", \"{slot}\"]";

/// The program of a job; told and empty when there is none.
pub(super) fn program(section: &Section<'_>) -> Program {
    let nothing = Program::Direct(Vec::new());
    let Some(entry) = section.entry("command") else {
        if section.is_misspelled("command") {
            return nothing;
        }
        let hint = format!("add command = {EXAMPLE}");
        section.ctx.error("missing-command", section.span.clone(), "the job has no command".to_owned(), hint);
        return nothing;
    };
    match entry.value() {
        DeValue::String(_) => shell(&entry).unwrap_or(nothing),
        DeValue::Array(_) => direct(&entry).unwrap_or(nothing),
        _ => entry.wrong_type("a list of strings, or a string for /bin/sh", EXAMPLE).unwrap_or(nothing),
    }
}

fn shell(entry: &Entry<'_>) -> Option<Program> {
    let line = entry.raw("\"make backup | gzip > /srv/backup.gz\"")?;
    if line.trim().is_empty() {
        empty(entry);
        return None;
    }
    if let Some((range, name)) = first_placeholder(line) {
        let span = entry.ctx.within(&entry.span(), line, range);
        let message = format!("{{{name}}} is not replaced in a shell command");
        let hint = format!("use \"$CRONWARD_{}\", or write the command as a list", name.to_ascii_uppercase());
        entry.ctx.warn("shell-placeholder", span, message, hint);
    }
    Some(Program::Shell(line.to_owned()))
}

/// The first `{slot}` or the like of a shell line, and where it is. `${slot}` is the shell's own.
fn first_placeholder(line: &str) -> Option<(Range<usize>, &str)> {
    line.match_indices('{').find_map(|(at, _)| {
        let (name, _) = line.get(at + 1..)?.split_once('}')?;
        let of_shell = line.get(..at).is_some_and(|before| before.ends_with('$'));
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let known = plain && !of_shell && placeholders::check(&format!("{{{name}}}")).is_ok();
        known.then_some((at..at + name.len() + 2, name))
    })
}

fn direct(entry: &Entry<'_>) -> Option<Program> {
    let items = entry.items("a list of strings", EXAMPLE)?;
    let words: Vec<Option<String>> = items.iter().map(word).collect();
    let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        empty(entry);
        return None;
    }
    Some(Program::Direct(words))
}

fn empty(entry: &Entry<'_>) {
    entry.refuse("empty-command", "names no program", format!("write command = {EXAMPLE}"));
}

/// One word of a list command, its placeholders checked.
fn word(item: &Entry<'_>) -> Option<String> {
    let text = item.raw("\"…\"")?;
    if let Err(error) = placeholders::check(text) {
        let variable = text.contains("${").then_some("variables are not replaced in commands: set them in env");
        item.object("unknown-placeholder", error, variable.map(str::to_owned));
        return None;
    }
    Some(text.to_owned())
}

/// Takes over what a section says about the surroundings of a command.
pub(super) fn read_settings(section: &Section<'_>, command: &mut CommandSpec) {
    if let Some(entry) = section.entry("env") {
        read_env(&entry, command);
    }
    put_some(&mut command.env_file, path(section, "env_file", "\"/etc/cronward/push.env\""));
    put_some(&mut command.cwd, path(section, "cwd", "\"/srv/app\""));
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

fn path(section: &Section<'_>, key: &str, example: &str) -> Option<PathBuf> {
    Some(PathBuf::from(section.entry(key)?.filled_text(example)?))
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
