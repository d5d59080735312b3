//! What is counted of the locks that runs of this node wait for and hold: over all jobs, but for what was lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Mono;
use crate::event::Event;
use crate::metrics::histogram::{Histogram, OF_RUNS};
use crate::slot::{Attempt, Slot};

/// How an attempt stands to its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockStanding {
    Waits,
    Holds { since: Mono },
}

/// The locks of one node.
#[derive(Debug, Default)]
pub(super) struct LockFigures {
    /// How long was waited by whom came to hold.
    pub(super) waits: Histogram,
    /// How long locks were held by whom has left them.
    pub(super) holds: Histogram,
    /// Attempts that wait or hold now: as many as run here, and those that are leaving.
    phases: Mutex<HashMap<(Slot, Attempt), LockStanding>>,
}

impl LockFigures {
    /// Counts what was told of an attempt at this slot.
    pub(super) fn hear(&self, slot: &Slot, event: &Event, now: Mono) {
        match event {
            Event::LockWaiting(wait) => {
                self.phases().insert((slot.clone(), wait.attempt), LockStanding::Waits);
            }
            Event::LockHeld(grant) if !grant.again => {
                self.waits.add(&OF_RUNS, grant.waited);
                self.phases().insert((slot.clone(), grant.attempt), LockStanding::Holds { since: now });
            }
            Event::LockLeft(leave) => self.left(slot, leave.attempt, now),
            // Where nobody waits for the store any more, leaving is not told either.
            Event::SettlementGivenUp { attempt, .. } => self.left(slot, *attempt, now),
            _ => {}
        }
    }

    /// How many attempts wait.
    pub(super) fn waiting(&self) -> usize {
        self.phases().values().filter(|phase| **phase == LockStanding::Waits).count()
    }

    fn left(&self, slot: &Slot, attempt: Attempt, now: Mono) {
        let left = self.phases().remove(&(slot.clone(), attempt));
        if let Some(LockStanding::Holds { since }) = left {
            self.holds.add(&OF_RUNS, now.since(since));
        }
    }

    fn phases(&self) -> MutexGuard<'_, HashMap<(Slot, Attempt), LockStanding>> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
