//! How slots ended that failed: of each job the newest, with the last line of its output. Told what was read; reads nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::board::Fault;
use crate::job::JobName;
use crate::slot::{Attempt, OutputTail, Slot, SlotKey, SlotRecord, SlotState, Token};
use crate::text::message;

/// Outputs that are waited for; of more failures at once the rest is shown without.
const WAITING: usize = 50;
/// Characters of the last line that are kept.
const LINE: usize = 200;

/// See [`super`].
#[derive(Debug, Default)]
pub(super) struct Faults {
    newest: BTreeMap<JobName, (SlotKey, Fault)>,
    /// What was asked for because the job says that it failed.
    asked: BTreeMap<JobName, SlotKey>,
    outputs: Vec<(Slot, Attempt, Token)>,
}

impl Faults {
    /// Takes what was read of a slot.
    pub(super) fn take(&mut self, record: &SlotRecord, max_attempts: u32, now: DateTime<Utc>) {
        let (job, key) = (record.slot.job(), record.slot.key());
        let known = self.newest.get(job).map(|(known, _)| *known);
        let ended_badly = matches!(record.state(now, max_attempts), SlotState::Failed | SlotState::Missed);
        // Of a slot that nobody tried there is no more to tell than that.
        if !ended_badly || (record.used() == 0 && record.runs.is_empty()) {
            if known == Some(key) {
                self.newest.remove(job);
            }
            return;
        }
        if known.is_some_and(|known| known > key) {
            return;
        }
        let last = record.runs.last();
        let kept = self.newest.get(job).filter(|(known, fault)| *known == key && fault.attempts == record.used());
        let last_line = kept.and_then(|(_, fault)| fault.last_line.clone());
        if let Some(run) = last.filter(|run| run.outcome.is_some() && last_line.is_none())
            && self.outputs.len() < WAITING
        {
            self.outputs.retain(|(slot, ..)| *slot != record.slot);
            self.outputs.push((record.slot.clone(), run.attempt, run.token));
        }
        let fault = Fault {
            attempts: record.used(),
            max_attempts,
            node: last.map(|run| run.node.clone()),
            outcome: last.and_then(|run| record.outcome_of(run)),
            exit_code: last.and_then(|run| run.exit_code),
            signal: last.and_then(|run| run.signal),
            ended: last.and_then(|run| run.ended_at),
            last_line,
        };
        self.newest.insert(job.clone(), (key, fault));
    }

    /// How the slot ended.
    pub(super) fn of(&self, job: &JobName, key: SlotKey) -> Option<&Fault> {
        self.newest.get(job).filter(|(known, _)| *known == key).map(|(_, fault)| fault)
    }

    /// Whether the slot was read, or asked for. It is from now on.
    pub(super) fn knows(&mut self, job: &JobName, key: SlotKey) -> bool {
        self.of(job, key).is_some() || self.asked.insert(job.clone(), key) == Some(key)
    }

    /// The next output to be read.
    pub(super) fn next_output(&mut self) -> Option<(Slot, Attempt, Token)> {
        self.outputs.pop()
    }

    pub(super) fn wants_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Takes an output that was read.
    pub(super) fn take_output(&mut self, slot: &Slot, output: Option<OutputTail>) {
        let Some((_, fault)) = self.newest.get_mut(slot.job()).filter(|(known, _)| *known == slot.key()) else {
            return;
        };
        let text = output.map(|output| output.text).unwrap_or_default();
        fault.last_line =
            text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| message(line.trim(), LINE));
    }
}
