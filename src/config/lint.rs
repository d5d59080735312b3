//! What only shows when a job's keys are looked at together with its ticks, its node and its store.

use chrono::TimeDelta;

use crate::config::context::Context;
use crate::config::jobs::Draft;
use crate::config::{Diagnostic, NodeConfig, Severity, StoreConfig, limits};
use crate::schedule::{DstEffect, DstNote, Timetable};
use crate::slot::Period;

/// How far ahead changes of the clock are looked for: each zone that has them has them within a year.
const DST_HORIZON: TimeDelta = TimeDelta::days(366);

/// Checks what one key alone cannot show. A job with errors is left alone: it would only repeat them.
pub(super) fn check(ctx: &Context<'_>, drafts: &[Draft], node: &NodeConfig, store: &StoreConfig) {
    if drafts.is_empty() && ctx.errors() == 0 {
        let message = "there are no jobs in the file".to_owned();
        ctx.warn("no-jobs", 0..0, message, "add one: [jobs.NAME] with a schedule and a command");
    }
    for draft in drafts.iter().filter(|draft| draft.sound) {
        let Some(timetable) = &draft.timetable else { continue };
        if !timetable.ticks_in_some_slot(ctx.env.now()) {
            never_ticks(ctx, draft);
            continue;
        }
        limits::check(ctx, draft, timetable, store);
        if draft.spec.enabled {
            extra_ticks(ctx, draft, timetable);
            clock_changes(ctx, draft, timetable);
            labels(ctx, draft, node);
        }
    }
}

fn never_ticks(ctx: &Context<'_>, draft: &Draft) {
    let message = format!("{:?} never comes: the job would never run", draft.spec.schedule);
    ctx.error("never-ticks", draft.place_or_name("schedule"), message, "look at the days and months of the schedule");
}

fn extra_ticks(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let period = draft.spec.period;
    if period == Period::Tick || !timetable.ticks_per_slot_more_than_one(ctx.env.now()) {
        return;
    }
    let message = format!("the schedule ticks more than once per {period}: the extra ticks are only retries");
    let hint = "the job is done once per slot; for one run per tick write period = \"tick\"";
    ctx.warn("extra-ticks", draft.place_or_name("schedule"), message, hint);
}

/// The first change of each kind; the others are the same in other years.
fn clock_changes(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let from = ctx.env.now();
    let until = from.checked_add_signed(DST_HORIZON).unwrap_or(from);
    for note in timetable.dst_notes(from, until) {
        ctx.add(clock_change(draft, &note));
    }
}

fn clock_change(draft: &Draft, note: &DstNote) -> Diagnostic {
    let (severity, code) = match note.effect {
        DstEffect::Moved => (Severity::Note, "dst-moved"),
        DstEffect::Swallowed => (Severity::Warning, "dst-swallowed"),
        DstEffect::Doubled => (Severity::Warning, "dst-doubled"),
    };
    let message = format!("in {} {note}", draft.spec.timezone);
    let hint = Some("choose another time, or timezone = \"UTC\"".to_owned());
    Diagnostic { severity, code, message, span: draft.place_or_name("schedule"), hint }
}

fn labels(ctx: &Context<'_>, draft: &Draft, node: &NodeConfig) {
    let absent = draft.spec.only_on.iter().find(|(key, value)| node.labels.get(*key) != Some(*value));
    if let Some((key, value)) = absent {
        let message = format!("this node does not run the job: it has no label {key} = {value:?}");
        let hint = Some("other nodes may have it; labels are set in [node]".to_owned());
        let span = draft.place_or_name("only_on");
        ctx.add(Diagnostic { severity: Severity::Note, code: "no-such-label", message, span, hint });
    }
}
