//! What only shows when a job's keys are looked at together with its ticks, its node and its store.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::config::context::Context;
use crate::config::jobs::Draft;
use crate::config::{Diagnostic, NodeConfig, Severity, StoreConfig, limits};
use crate::schedule::{self, DstEffect, DstNote, Remark, Timetable};

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
            let zone = draft.spec.timezone;
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
fn clock_changes(ctx: &Context<'_>, zone: Tz) -> Vec<DateTime<Utc>> {
    let from = ctx.env.now();
    schedule::clock_changes(zone, from, from.checked_add_signed(DST_HORIZON).unwrap_or(from))
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
