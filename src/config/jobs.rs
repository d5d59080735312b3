//! `[jobs.NAME]`: one draft per job, with `[defaults]` below it; then what only shows when a job's keys are looked at together, and
//! with its ticks, its node and its store: what makes a job unusable though each of its keys is fine, and what may not be meant. Looks
//! at no more ticks than it must, because every command that reads a file waits for it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use toml::Spanned;

use crate::config::command;
use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::config::limits;
use crate::config::reader::{Section, put};
use crate::config::sections::HOMES;
use crate::config::settings::{Defaults, KEYS};
use crate::config::value::nearest_allowed;
use crate::config::{Diagnostic, NodeConfig, Severity, StoreConfig};
use crate::job::{JobName, JobSpec, Policy};
use crate::schedule::{self, DstEffect, DstNote, Remark, Timetable};
use crate::zone::Zone;

const OWN_KEYS: &[&str] = &["description", "schedule", "command"];

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

fn suggestion(name: &str) -> Option<String> {
    JobName::new(&nearest_allowed(name)).ok().map(|name| format!("for example [jobs.{name}]"))
}

fn one(job: &Section<'_>, name: JobName, defaults: &Defaults) -> Draft {
    let mut settings = defaults.settings.clone();
    settings.read(job);
    let schedule = schedule(job);
    let program = command::program(job);
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

/// How far ahead changes of the clock are looked for: each zone that has them has them within a year.
const DST_HORIZON: TimeDelta = TimeDelta::days(366);

/// Checks what one key alone cannot show. A job with errors is left alone: it would only repeat them.
pub(super) fn check(ctx: &Context<'_>, drafts: &[Draft], node: &NodeConfig, store: &StoreConfig) {
    if drafts.is_empty() && ctx.errors() == 0 {
        let message = "there are no jobs in the file".to_owned();
        ctx.warn("no-jobs", 0..0, message, "add one: [jobs.NAME] with a schedule and a command");
    }
    let mut changes: BTreeMap<&str, Vec<DateTime<Utc>>> = BTreeMap::new();
    for draft in drafts.iter().filter(|draft| draft.sound) {
        let Some(timetable) = &draft.timetable else { continue };
        limits::check(ctx, draft, timetable, store);
        if draft.spec.enabled {
            remarks(ctx, draft, timetable);
            extra_ticks(ctx, draft, timetable);
            let zone = &draft.spec.timezone;
            let of_zone = changes.entry(zone.name()).or_insert_with(|| clock_changes(ctx, zone));
            timetable.dst_notes_at(of_zone).iter().for_each(|note| ctx.add(clock_change(draft, note)));
            labels(ctx, draft, node);
        }
    }
}

/// Where the job itself says its slot, that is meant. Where it says none at all, that is an error.
fn extra_ticks(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let period = draft.spec.period;
    if draft.own("slot").is_some() || !timetable.ticks_per_slot_more_than_one() {
        return;
    }
    let message = format!(
        "this job will run at most once per {period}, although its schedule fires more often (slot = \"{period}\" in [defaults])"
    );
    let hint =
        format!("write slot = \"tick\" in the job to run it every time, or slot = \"{period}\" if that is meant");
    ctx.warn("extra-ticks", draft.place_or_name("schedule"), message, hint);
}

fn remarks(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    for Remark { code, message, hint } in timetable.schedule().remarks() {
        ctx.warn(code, draft.place_or_name("schedule"), message, hint);
    }
}

/// The first change of each kind; the others are the same in other years.
fn clock_changes(ctx: &Context<'_>, zone: &Zone) -> Vec<DateTime<Utc>> {
    let from = ctx.env.now();
    schedule::clock_changes(zone, from, from.checked_add_signed(DST_HORIZON).unwrap_or(from))
}

fn clock_change(draft: &Draft, note: &DstNote) -> Diagnostic {
    let (severity, code) = match note.effect {
        DstEffect::Shifted => (Severity::Note, "dst-shifted"),
        DstEffect::Skipped => (Severity::Warning, "dst-skipped"),
        DstEffect::Repeated => (Severity::Warning, "dst-repeated"),
    };
    let message = format!("in {} {note}", draft.spec.timezone);
    let hint = Some("choose another time, or timezone = \"UTC\"".to_owned());
    Diagnostic { severity, code, message, span: draft.place_or_name("schedule"), hint }
}

fn labels(ctx: &Context<'_>, draft: &Draft, node: &NodeConfig) {
    if let Some((key, value)) = draft.missing_label(node) {
        let message = format!("this node does not run the job: it has no label {key} = {value:?}");
        let hint = Some("other nodes may have it; labels are set in [node]".to_owned());
        let span = draft.place_or_name("only_on");
        ctx.add(Diagnostic { severity: Severity::Note, code: "no-such-label", message, span, hint });
    }
}

/// Looks at each job that nothing is wrong with so far: of one with errors it would only repeat them.
pub(super) fn conflicts(ctx: &Context<'_>, drafts: &mut [Draft]) {
    for draft in drafts.iter_mut().filter(|draft| draft.sound) {
        let errors = ctx.errors();
        if let Some(timetable) = &draft.timetable {
            if timetable.ticks_in_some_slot(ctx.env.now()) {
                unwritten_slot(ctx, draft, timetable);
                limits::conflicts(ctx, draft, timetable);
            } else {
                never_ticks(ctx, draft);
            }
        }
        draft.sound = ctx.errors() == errors;
    }
}

fn never_ticks(ctx: &Context<'_>, draft: &Draft) {
    let message = format!("{:?} never fires: the job would never run", draft.spec.schedule);
    ctx.error("never-ticks", draft.place_or_name("schedule"), message, "look at the days and months of the schedule");
}

/// A schedule that fires more often than the default slot is the mistake that is made most: each who writes it has to say
/// which of the two is meant.
fn unwritten_slot(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    if !draft.spec.enabled || draft.place("slot").is_some() || !timetable.ticks_per_slot_more_than_one() {
        return;
    }
    let period = draft.spec.period;
    let message = format!(
        "the schedule fires more than once per {period}, but the job runs at most once per {period} unless its slot is written"
    );
    let hint =
        format!("write slot = \"tick\" to run it every time, or slot = \"{period}\" if once per {period} is meant");
    ctx.error("unwritten-slot", draft.place_or_name("schedule"), message, hint);
}
