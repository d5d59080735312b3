//! Limits of a job that go together badly, or not with the length of its slots: lints.

use std::time::Duration;

use crate::config::StoreConfig;
use crate::config::context::Context;
use crate::config::duration::format_duration;
use crate::config::jobs::Draft;
use crate::job::{Backoff, Concurrency};
use crate::schedule::Timetable;
use crate::slot::Period;

/// Ticks looked at for the longest slot: more than a year of a weekly job.
const TICKS: usize = 60;

/// A claim, a renewal and a completion: a lease that cannot hold three answers is lost to one slow answer.
const ROUND_TRIPS: u32 = 3;

/// Checks the limits of a job.
pub(super) fn check(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable, store: &StoreConfig) {
    lease(ctx, draft, store);
    backoff(ctx, draft);
    if let Some(slot) = slot_length(ctx, draft, timetable) {
        timeout(ctx, draft, slot);
        waits(ctx, draft, slot);
    }
}

/// How long a slot of the job is; the longest, where they differ.
pub(super) fn slot_length(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) -> Option<Duration> {
    match draft.spec.period {
        Period::Minute => Some(Duration::from_secs(60)),
        Period::Hour => Some(Duration::from_secs(3_600)),
        _ => timetable.longest_slot(ctx.env.now(), TICKS),
    }
}

/// A default is nobody's mistake.
fn lease(ctx: &Context<'_>, draft: &Draft, store: &StoreConfig) {
    let Some(place) = draft.place("lease_ttl") else { return };
    let least = store.op_timeout.saturating_mul(ROUND_TRIPS);
    let ttl = draft.spec.policy.lease_ttl;
    if ttl < least {
        let (ttl, least, trip) = (format_duration(ttl), format_duration(least), format_duration(store.op_timeout));
        let message = format!("lease_ttl = {ttl} is below three round trips to the store (op_timeout is {trip})");
        let hint = format!("write lease_ttl = \"{least}\" or more, or lower op_timeout in [store]");
        ctx.warn("short-lease", place, message, hint);
    }
}

fn backoff(ctx: &Context<'_>, draft: &Draft) {
    let retry = &draft.spec.policy.retry;
    if retry.backoff == Backoff::Exponential && retry.max_delay < retry.delay {
        let (max, delay) = (format_duration(retry.max_delay), format_duration(retry.delay));
        let message = format!("retry_max_delay = {max} is below retry_delay = {delay}");
        let place = draft.place("retry_max_delay").unwrap_or_else(|| draft.place_or_name("retry_delay"));
        ctx.warn("short-max-delay", place, message, "make retry_max_delay the larger of the two");
    }
}

fn timeout(ctx: &Context<'_>, draft: &Draft, slot: Duration) {
    let policy = &draft.spec.policy;
    let Some(place) = draft.place("timeout") else { return };
    if policy.concurrency == Concurrency::Forbid && policy.timeout.is_some_and(|limit| limit > slot) {
        let (limit, slot) = (format_duration(policy.timeout.unwrap_or_default()), format_duration(slot));
        let message = format!("timeout = {limit} is longer than the slot of {slot}: a long run holds up the next slot");
        ctx.warn("long-timeout", place, message, "shorten it, or write concurrency = \"allow\" or \"replace\"");
    }
}

fn waits(ctx: &Context<'_>, draft: &Draft, slot: Duration) {
    let spec = &draft.spec;
    let shown = format_duration(slot);
    if spec.policy.max_attempts > 1 && spec.policy.retry.delay >= slot {
        let delay = format_duration(spec.policy.retry.delay);
        let message = format!("retry_delay = {delay} is not shorter than the slot of {shown}: nothing is ever retried");
        let hint = "shorten it, or write max_attempts = 1";
        ctx.warn("long-retry-delay", draft.place_or_name("retry_delay"), message, hint);
    }
    if spec.jitter >= slot {
        let message = format!("jitter = {} is not shorter than the slot of {shown}", format_duration(spec.jitter));
        ctx.warn("long-jitter", draft.place_or_name("jitter"), message, "the delay is cut to what is left of the slot");
    }
    if let Some(after) = spec.alert_after.filter(|after| *after < slot) {
        let message = format!("alert_after = {} is shorter than the slot of {shown}", format_duration(after));
        let hint = "it would alert although every slot is done; make it longer than the slot";
        ctx.warn("early-alert", draft.place_or_name("alert_after"), message, hint);
    }
}
