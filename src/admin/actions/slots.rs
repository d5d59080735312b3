//! What may be done to a slot: reset it, take its lease, mark it as done, run it.

use chrono::{DateTime, Utc};

use crate::admin::KnownJob;
use crate::admin::actions::proposal::StoreStep;
use crate::admin::actions::{Change, Proposal, Undo};
use crate::admin::command_line::{CommandLine, starter};
use crate::admin::words::instant;
use crate::job::{NodeName, Policy};
use crate::slot::{Mark, Slot, SlotRecord};

/// Its attempts no longer count.
pub(crate) fn reset(job: &KnownJob, record: &SlotRecord, now: DateTime<Utc>, line: CommandLine) -> Proposal {
    let slot = &record.slot;
    let mark = line.command(format_args!("mark-done {slot}"));
    let change = Change {
        verb: "reset",
        target: slot.to_string(),
        effect: effect_of_reset(job, record, now, &line),
        needless: "nothing has happened in the slot".to_owned(),
        undo: Undo::Not(format!("cannot be undone; to keep nodes from running the slot: {mark}")),
        line,
    };
    Proposal { command: command(&change), change, step: Some(StoreStep::Reset(slot.clone())) }
}

/// What the reset does to this slot, in words.
fn effect_of_reset(job: &KnownJob, record: &SlotRecord, now: DateTime<Utc>, line: &CommandLine) -> String {
    let mut parts = vec![match record.used() {
        0 => "the slot had no attempts".to_owned(),
        1 => "1 attempt no longer counts".to_owned(),
        used => format!("{used} attempts no longer count"),
    }];
    if matches!(record.mark, Mark::Done(_)) {
        parts.push("the slot is no longer done".to_owned());
    }
    let end = instant(record.slot.end());
    parts.push(match (starter(job.entry.origin), record.slot.end() > now) {
        (None, true) => "nodes run the slot again at once".to_owned(),
        (None, false) => {
            let trigger = format!("trigger {} --past", record.slot);
            let trigger = line.command_of_file(trigger, job.spec.is_some());
            format!("the slot ended at {end}; to run it now: {trigger}")
        }
        (Some(starts), true) => format!("the slot runs when {starts} again"),
        (Some(_), false) => format!("the slot ended at {end}, so nothing runs it any more"),
    });
    parts.join("; ")
}

/// Its holder loses the lease.
pub(crate) fn unlock(record: &SlotRecord, line: CommandLine) -> Proposal {
    let (effect, node) = match &record.mark {
        Mark::Leased { by, .. } => (
            format!("attempt {} on node {} loses its lease, and other nodes may start the slot", by.attempt, by.node),
            format!(" on node {}", by.node),
        ),
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => ("no node loses a lease".to_owned(), String::new()),
    };
    let change = Change {
        verb: "unlock",
        target: record.slot.to_string(),
        effect,
        needless: "no node holds the lease".to_owned(),
        // A lease cannot be handed back: what is left to do.
        undo: Undo::Not(format!(
            "cannot be undone; if the command{node} is still running, stop it: two runs may overlap"
        )),
        line,
    };
    // Nobody agreed to take a lease that begins in this moment.
    let step = matches!(record.mark, Mark::Leased { .. }).then(|| StoreStep::Unlock(record.slot.clone()));
    Proposal { command: command(&change), change, step }
}

/// It is done without a run.
pub(crate) fn mark_done(job: &KnownJob, record: &SlotRecord, line: CommandLine) -> Proposal {
    let slot = &record.slot;
    let change = Change {
        verb: "mark-done",
        target: slot.to_string(),
        effect: "the slot counts as done, and no node runs it any more".to_owned(),
        needless: "the slot is already done".to_owned(),
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
pub(crate) fn trigger(slot: &Slot, now: DateTime<Utc>, place: RunPlace<'_>, line: CommandLine) -> Proposal {
    let reset = line.command(format_args!("reset {slot}"));
    let again = format!("cannot be undone; to run the slot again: {reset}");
    let place = match place {
        RunPlace::Here => "on this machine".to_owned(),
        RunPlace::On(node) => format!("on node {node}"),
    };
    let is_past = slot.end() <= now;
    let command = line.command(format_args!("trigger {slot}{}", if is_past { " --past" } else { "" }));
    let (effect, undo) = if is_past {
        (format!("the slot has ended; the command runs now {place}"), format!("{again} && {command}"))
    } else {
        (format!("the command runs now {place}"), again)
    };
    let (target, undo) = (slot.to_string(), Undo::Not(undo));
    let change = Change { verb: "trigger", target, effect, needless: String::new(), undo, line };
    Proposal { change, command, step: None }
}

/// Why a slot cannot be triggered before it begins.
pub(crate) fn not_begun(slot: &Slot, now: DateTime<Utc>) -> Option<String> {
    if slot.start() <= now {
        return None;
    }
    let (job, key, start) = (slot.job(), slot.key(), slot.start().format("%Y-%m-%d %H:%M:%S UTC"));
    Some(format!("slot {key} of {job} starts at {start}; only current and past slots can be run"))
}

fn command(change: &Change) -> String {
    change.line.command(format_args!("{} {}", change.verb, change.target))
}
