//! What makes a job unusable though each of its keys is fine: keys that do not go together, or not with the ticks. Looks at no
//! more ticks than it must, because every command that reads a file waits for it.

use std::time::Duration;

use crate::config::context::Context;
use crate::config::duration::format_duration;
use crate::config::jobs::Draft;
use crate::config::limits::slot_length;
use crate::job::{CLOCK_SKEW, OnLost};
use crate::schedule::Timetable;
use crate::slot::Period;

/// Looks at each job that nothing is wrong with so far: of one with errors it would only repeat them.
pub(super) fn check(ctx: &Context<'_>, drafts: &mut [Draft]) {
    for draft in drafts.iter_mut().filter(|draft| draft.sound) {
        let errors = ctx.errors();
        if let Some(timetable) = &draft.timetable {
            if timetable.ticks_in_some_slot(ctx.env.now()) {
                unwritten_slot(ctx, draft, timetable);
                late_kill(ctx, draft);
                short_done_ttl(ctx, draft, timetable);
            } else {
                never_ticks(ctx, draft);
            }
        }
        draft.sound = ctx.errors() == errors;
    }
}

fn never_ticks(ctx: &Context<'_>, draft: &Draft) {
    let message = format!("{:?} never comes: the job would never run", draft.spec.schedule);
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

/// `on_lost = "kill"` promises that the command is dead before another node can start, which is when the lease ends. The
/// lease was renewed at most one `lease_ttl` ago, so a command that may take that long to die cannot be dead in time: the
/// promise would be broken each time, which is an error and no matter of taste.
fn late_kill(ctx: &Context<'_>, draft: &Draft) {
    let policy = &draft.spec.policy;
    if policy.on_lost == OnLost::Kill && policy.kill_after >= policy.lease_ttl {
        let (after, ttl) = (format_duration(policy.kill_after), format_duration(policy.lease_ttl));
        let message = format!(
            "on_lost = \"kill\" cannot stop the command before its lease ends: kill_after is {after}, lease_ttl is {ttl}"
        );
        let hint = "make kill_after at most a third of lease_ttl";
        ctx.error("late-kill", draft.place_or_name("on_lost"), message, hint);
    }
}

/// Only where the same place says both `done_ttl` and what the slot is. A `done_ttl` inherited by a job with longer slots
/// is no mistake: a marker never ends before its slot, see [`crate::job::Policy::done_ttl_for`].
fn short_done_ttl(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let inherited_both = draft.own("slot").is_none() && draft.spec.period != Period::Tick;
    let Some(place) = draft.own("done_ttl").or_else(|| draft.place("done_ttl").filter(|_| inherited_both)) else {
        return;
    };
    let slot: Option<Duration> = slot_length(ctx, draft, timetable);
    let least = slot.unwrap_or_default().saturating_add(CLOCK_SKEW);
    if let Some(slot) = slot.filter(|_| draft.spec.policy.done_ttl < least) {
        let (ttl, slot) = (format_duration(draft.spec.policy.done_ttl), format_duration(slot));
        let message = format!("done_ttl = {ttl} does not outlive the slot of {slot} and a minute of clock skew");
        let hint = format!("write done_ttl = \"{}\" or more, or leave it out", format_duration(least));
        ctx.error("short-done-ttl", place, message, hint);
    }
}
