//! `[jobs.NAME]`: one draft per job, with `[defaults]` below it.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use toml::Spanned;

use crate::config::reader::{Section, put};
use crate::config::sections::HOMES;
use crate::config::settings::{self, Defaults, KEYS, Places};
use crate::job::{JobName, JobSpec, Policy};
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
    let program = settings::program(job);
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
