//! What became of the slots before: where no daemon closes them, the next claim of a guard does, and reports a slot that ended without
//! success. So a holder that died, or a slot that no process ran, is in the log and in the listings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::event::Event;
use crate::job::NodeName;
use crate::observe::Observer;
use crate::slot::{Slot, SlotRecord};
use crate::store::{Closing, Store, is_planned};

/// How many slots before the current one are looked at.
pub(super) const SLOTS: usize = 3;

/// How far back they may lie: what a process runs once a day has no older neighbours worth a report.
pub(super) const BACK: Duration = Duration::from_secs(7 * 86_400);

/// How long the result of a run waits for the look back, at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// The start of the newest slot that a guard was asked to run.
#[derive(Debug, Default)]
pub(super) struct Newest(Mutex<Option<DateTime<Utc>>>);

impl Newest {
    /// Notes a slot. Returns whether it is newer than all before, and the newest of those.
    pub(super) fn note(&self, slot: &Slot) -> (bool, Option<DateTime<Utc>>) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *newest;
        let is_newer = before.is_none_or(|before| before < slot.start());
        if is_newer {
            *newest = Some(slot.start());
        }
        (is_newer, before)
    }
}

/// One look at the slots before the current one.
pub(super) struct LookBack {
    pub(super) store: Arc<dyn Store>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) node: NodeName,
    pub(super) max_attempts: u32,
    /// Those before the current one, newest first.
    pub(super) slots: Vec<Slot>,
    /// Slots that begin later were due, also where the store has no record of them: the guard knows the schedule, and was last asked for
    /// the slot of that time.
    pub(super) due_after: Option<DateTime<Utc>>,
}

impl LookBack {
    /// Best effort: a slot that cannot be closed now is closed at the next look.
    pub(super) async fn run(self) {
        let _ = tokio::time::timeout(PATIENCE, self.close()).await;
    }

    async fn close(self) {
        let Some(job) = self.slots.first().map(Slot::job) else { return };
        let Ok((_, records)) = self.store.inspect(&self.slots).await else { return };
        if !records.iter().any(|record| self.is_open(record)) {
            return;
        }
        // The daemons that plan a job close its slots, and send messages with the verdicts.
        if is_planned(&*self.store, job).await.unwrap_or(true) {
            return;
        }
        // Oldest first, as they ended.
        for record in records.iter().rev().filter(|record| self.is_open(record)) {
            let closing = self.store.close(&record.slot, self.max_attempts, &self.node).await;
            if let Ok(Closing::First(verdict)) = closing {
                self.observer.event(Some(&record.slot), &Event::Closed { verdict });
            }
        }
    }

    /// Whether the slot was due and has no verdict. A slot that is done has one.
    fn is_open(&self, record: &SlotRecord) -> bool {
        let was_due = self.due_after.is_some_and(|before| record.slot.start() > before);
        record.verdict.is_none() && (record.attempts > 0 || was_due)
    }
}
