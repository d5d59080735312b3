//! What may be done to a slot: reset it, take its lease, mark it as done, run it.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::admin::KnownJob;
use crate::admin::actions::proposal::StoreStep;
use crate::admin::actions::texts::ActionTexts;
use crate::admin::actions::{Change, Proposal, Undo};
use crate::admin::command_line::CommandLine;
use crate::admin::words::instant;
use crate::job::{NodeName, Policy};
use crate::slot::{Mark, Slot, SlotRecord};

/// Its attempts no longer count.
pub(crate) fn reset(
    job: &KnownJob,
    record: &SlotRecord,
    now: DateTime<Utc>,
    line: CommandLine,
    t: &ActionTexts,
) -> Proposal {
    let slot = &record.slot;
    let mark = line.command(format_args!("mark-done {slot}"));
    let change = Change {
        verb: "reset",
        target: slot.to_string(),
        effect: effects_of_reset(job, record, now, &line, t).join(t.and),
        needless: t.reset.needless.to_owned(),
        undo: Undo::Not((t.reset.undo)(&mark)),
        line,
    };
    Proposal { command: command(&change), change, step: Some(StoreStep::Reset(slot.clone())) }
}

/// What the reset does to this slot, in words.
fn effects_of_reset(
    job: &KnownJob,
    record: &SlotRecord,
    now: DateTime<Utc>,
    line: &CommandLine,
    texts: &ActionTexts,
) -> Vec<String> {
    let t = &texts.reset;
    let mut parts = vec![(t.counts)(record.used())];
    if matches!(record.mark, Mark::Done(_)) {
        parts.push(t.no_longer_done.to_owned());
    }
    let end = instant(record.slot.end());
    let trigger = |past| line.command_of_file(format!("trigger {}{past}", record.slot), job.spec.is_some());
    parts.push(match ((t.starter)(job.entry.origin), record.slot.end() > now) {
        (None, true) => match job.no_start(&record.slot, now) {
            None if record.slot.start() > now => t.runs_when_due.to_owned(),
            None => t.runs_again.to_owned(),
            Some(why) => (t.not_started)((texts.no_start)(why), &trigger("")),
        },
        (None, false) => (t.by_command)(&end, &trigger(" --past")),
        (Some(starts), true) => (t.when)(starts),
        (Some(_), false) => (t.by_nobody)(&end),
    });
    parts
}

/// Its holder loses the lease.
pub(crate) fn unlock(
    job: &KnownJob,
    record: &SlotRecord,
    now: DateTime<Utc>,
    line: CommandLine,
    t: &ActionTexts,
) -> Proposal {
    let no_start = job.no_start(&record.slot, now).map(t.no_start);
    let t = &t.unlock;
    let follows = match no_start {
        _ if record.slot.end() <= now => t.over.to_owned(),
        _ if record.used() >= job.entry.max_attempts => t.none_left.to_owned(),
        Some(why) => (t.not_started)(why),
        None => t.may_start.to_owned(),
    };
    let holder = match &record.mark {
        Mark::Leased { by, .. } => Some(by),
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => None,
    };
    let change = Change {
        verb: "unlock",
        target: record.slot.to_string(),
        effect: holder.map_or_else(|| t.no_effect.to_owned(), |by| (t.effect)(by.attempt, by.node.as_str(), &follows)),
        needless: t.needless.to_owned(),
        // A lease cannot be handed back: what is left to do.
        undo: Undo::Not((t.undo)(holder.map(|by| by.node.as_str()))),
        line,
    };
    // Nobody agreed to take a lease that begins in this moment.
    let step = holder.is_some().then(|| StoreStep::Unlock(record.slot.clone()));
    Proposal { command: command(&change), change, step }
}

/// It is done without a run.
pub(crate) fn mark_done(job: &KnownJob, record: &SlotRecord, line: CommandLine, t: &ActionTexts) -> Proposal {
    let slot = &record.slot;
    let change = Change {
        verb: "mark-done",
        target: slot.to_string(),
        effect: t.mark_done.effect.to_owned(),
        needless: t.mark_done.needless.to_owned(),
        undo: Undo::By(line.command(format_args!("reset {slot}"))),
        line,
    };
    // The registry does not know the file's TTL; the default one outlives the slot too.
    let policy = job.spec.as_ref().map_or_else(Policy::default, |spec| spec.policy.clone());
    let step = Some(StoreStep::MarkDone(slot.clone(), policy.done_ttl_for(slot)));
    Proposal { command: command(&change), change, step }
}

/// Where a triggered command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPlace<'a> {
    /// Where the command line was typed.
    Here,
    /// On this node, whose port was asked.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the port alone asks a node"))]
    On(&'a NodeName),
}

/// Its command runs now. No step of the store's: whoever asked runs the command, under the lease of the slot.
pub(crate) fn trigger(
    slot: &Slot,
    now: DateTime<Utc>,
    place: RunPlace<'_>,
    line: CommandLine,
    t: &ActionTexts,
) -> Proposal {
    let t = &t.trigger;
    let place = match place {
        RunPlace::Here => t.here.to_owned(),
        RunPlace::On(node) => (t.on)(node.as_str()),
    };
    let is_past = slot.end() <= now;
    let command = line.command(format_args!("trigger {slot}{}", if is_past { " --past" } else { "" }));
    let reset = line.command(format_args!("reset {slot}"));
    // A slot that lasts is run by the nodes once it is reset.
    let again = if is_past { format!("{reset} && {command}") } else { reset };
    let (effect, undo) = ((t.effect)(&place, is_past), Undo::Not((t.undo)(&again)));
    let change = Change { verb: "trigger", target: slot.to_string(), effect, needless: String::new(), undo, line };
    Proposal { change, command, step: None }
}

/// A slot that has not begun cannot be triggered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotBegun(pub(crate) Slot);

impl NotBegun {
    /// When it begins, in words.
    pub(crate) fn start(&self) -> impl fmt::Display {
        self.0.start().format("%Y-%m-%d %H:%M:%S UTC")
    }
}

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (job, key, start) = (self.0.job(), self.0.key(), self.start());
        write!(f, "slot {key} of {job} starts at {start}; only current and past slots can be run")
    }
}

/// Why a slot cannot be triggered before it begins.
pub(crate) fn not_begun(slot: &Slot, now: DateTime<Utc>) -> Option<NotBegun> {
    (slot.start() > now).then(|| NotBegun(slot.clone()))
}

fn command(change: &Change) -> String {
    change.line.command(format_args!("{} {}", change.verb, change.target))
}
