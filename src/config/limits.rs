//! The limits of a job against each other, against its slot, and against its store: which of them contradict, and which have another
//! effect than their words.

use std::ops::Range;
use std::time::Duration;

use crate::config::StoreConfig;
use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::config::notation::format_duration;
use crate::job::{Backoff, CLOCK_SKEW, Concurrency, OnLost, Policy, RetryPolicy};
use crate::schedule::Timetable;
use crate::slot::Period;

/// Ticks looked at for the longest slot: more than a year of a weekly job.
const TICKS: usize = 60;

/// A claim, a renewal and a completion: a lease that cannot hold three answers is lost to one slow answer.
const ROUND_TRIPS: u32 = 3;

/// What makes the limits of a job unusable though each of them is fine.
pub(super) fn conflicts(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    late_kill(ctx, draft);
    short_done_ttl(ctx, draft, timetable);
    blocking_lease(ctx, draft, timetable);
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

/// Where a key stands that says something about the length of the slot: only where the same place says both. A job with slots of
/// its own may inherit a limit that is meant for others.
fn said_with_slot(draft: &Draft, key: &str) -> Option<Range<usize>> {
    let inherits_both = draft.own("slot").is_none() && draft.spec.period != Period::Tick;
    draft.own(key).or_else(|| draft.place(key).filter(|_| inherits_both))
}

/// A `done_ttl` inherited by a job with longer slots is no mistake: a marker never ends before its slot, see
/// [`crate::job::Policy::done_ttl_for`].
fn short_done_ttl(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let Some(place) = said_with_slot(draft, "done_ttl") else { return };
    let slot: Option<Duration> = slot_length(ctx, draft, timetable);
    let least = slot.unwrap_or_default().saturating_add(CLOCK_SKEW);
    if let Some(slot) = slot.filter(|_| draft.spec.policy.done_ttl < least) {
        let (ttl, slot) = (format_duration(draft.spec.policy.done_ttl), format_duration(slot));
        let message = format!("done_ttl = {ttl} does not outlive the slot of {slot} and a minute of clock skew");
        let hint = format!("write done_ttl = \"{}\" or more, or leave it out", format_duration(least));
        ctx.error("short-done-ttl", place, message, hint);
    }
}

/// A lease is a crashed node's for one `lease_ttl`: longer than the slot, no other node takes the slot over, and where slots of
/// the job exclude each other, the later ones wait for it.
fn blocking_lease(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) {
    let (policy, slot) = (&draft.spec.policy, timetable.shortest_slot());
    if policy.lease_ttl <= slot {
        return;
    }
    let (ttl, shown) = (format_duration(policy.lease_ttl), format_duration(slot));
    let longer = format!("lease_ttl = {ttl} is longer than the slot of {shown}");
    let hint = format!(
        "write lease_ttl = \"{}\" in the job, or leave lease_ttl out of the file",
        format_duration(Policy::default_lease_ttl(slot))
    );
    // Each job that inherits the lease has slots of its own.
    let place = draft.own("lease_ttl").unwrap_or_else(|| draft.name.clone());
    if policy.concurrency.is_exclusive() {
        let message = format!("{longer}: after a crash the lease would block the slots that follow");
        ctx.error("blocking-lease", place, message, hint);
    } else {
        let message = format!("{longer}: after a crash no other node takes the slot over");
        ctx.warn("long-lease", place, message, hint);
    }
}

/// What is allowed in the limits of a job and may not be meant.
pub(super) fn check(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable, store: &StoreConfig) {
    short_lease(ctx, draft, store);
    backoff(ctx, draft);
    if let Some(slot) = slot_length(ctx, draft, timetable) {
        timeout(ctx, draft, slot);
        waits(ctx, draft, slot);
        start_deadline(ctx, draft, slot);
        attempts(ctx, draft, slot);
    }
}

/// How long a slot of the job is; the longest, where they differ.
fn slot_length(ctx: &Context<'_>, draft: &Draft, timetable: &Timetable) -> Option<Duration> {
    match draft.spec.period {
        Period::Minute => Some(Duration::from_secs(60)),
        Period::Hour => Some(Duration::from_secs(3_600)),
        _ => timetable.longest_slot(ctx.env.now(), TICKS),
    }
}

/// A default is nobody's mistake.
fn short_lease(ctx: &Context<'_>, draft: &Draft, store: &StoreConfig) {
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

/// No attempt begins after the slot's end, whatever the deadline is.
fn start_deadline(ctx: &Context<'_>, draft: &Draft, slot: Duration) {
    let Some(deadline) = draft.spec.policy.start_deadline.filter(|deadline| *deadline >= slot) else { return };
    let Some(place) = said_with_slot(draft, "start_deadline") else { return };
    let (deadline, slot) = (format_duration(deadline), format_duration(slot));
    let message = format!("start_deadline = {deadline} has no effect: the slot of {slot} ends first");
    ctx.note("idle-deadline", place, message, "shorten it, or leave it out");
}

/// Attempts whose waits are longer than the slot are never made, even if each fails at once.
fn attempts(ctx: &Context<'_>, draft: &Draft, slot: Duration) {
    let Policy { max_attempts, retry, .. } = &draft.spec.policy;
    let fitting = attempts_within(retry, slot, *max_attempts);
    // That nothing is retried is a warning of its own.
    if fitting >= *max_attempts || fitting < 2 {
        return;
    }
    let keys = ["max_attempts", "retry_delay", "retry_backoff"];
    let own = keys.iter().find_map(|key| draft.own(key));
    let Some(place) = own.or_else(|| keys.iter().find_map(|key| draft.place(key))) else { return };
    let (delay, shown) = (format_duration(retry.delay), format_duration(slot));
    let message = format!(
        "max_attempts = {max_attempts} is never reached: with retry_delay = {delay} at most {fitting} attempts fit in the slot of {shown}"
    );
    ctx.note("few-attempts", place, message, format!("write max_attempts = {fitting}, or shorten retry_delay"));
}

/// How many attempts begin within a slot, the first at its start, each of the others after the wait that follows the one before;
/// at most so many.
fn attempts_within(retry: &RetryPolicy, slot: Duration, most: u32) -> u32 {
    let mut begins = Duration::ZERO;
    for attempt in 1..most {
        begins = begins.saturating_add(retry.delay_after(attempt));
        if begins >= slot {
            return attempt;
        }
    }
    most
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
    lock_wait(ctx, draft, slot);
    if let Some(after) = spec.alert_after.filter(|after| *after < slot) {
        let message = format!("alert_after = {} is shorter than the slot of {shown}", format_duration(after));
        let hint = "it would alert although every slot is done; make it longer than the slot";
        ctx.warn("early-alert", draft.place_or_name("alert_after"), message, hint);
    }
}

/// Attempts are numbered up to 999 over all nodes, and each wait in vain takes a number.
const MOST_WAITS: u32 = 500;

fn lock_wait(ctx: &Context<'_>, draft: &Draft, slot: Duration) {
    let policy = &draft.spec.policy;
    let Some(wait) = policy.lock_wait else { return };
    let (shown, place) = (format_duration(wait), draft.place_or_name("lock_wait"));
    if policy.locks.is_none() {
        // What all jobs are given is for those that name locks.
        let Some(place) = draft.own("lock_wait") else { return };
        let message = format!("lock_wait = {shown} has no effect: the job names no locks");
        ctx.warn("lock-wait-without-locks", place, message, "name its locks, or leave lock_wait out");
    } else if wait > slot {
        let message = format!(
            "lock_wait = {shown} is longer than the slot of {}: the wait ends with the slot",
            format_duration(slot)
        );
        ctx.warn("long-lock-wait", place, message, "shorten it, or leave it out");
    } else if wait.saturating_mul(MOST_WAITS) < slot {
        let message = format!("lock_wait = {shown} may be over more than {MOST_WAITS} times in the slot");
        ctx.warn(
            "short-lock-wait",
            place,
            message,
            "each wait takes one of the slot's 999 attempt numbers: lengthen it",
        );
    }
}
