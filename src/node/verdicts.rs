//! The verdicts of ended slots: asked for when they are due, told when this node was the one to record them.

use std::time::Duration;

use crate::clock::{Now, later};
use crate::node::chores::{self, Chores};
use crate::node::daemon::Node;
use crate::slot::Slot;
use crate::store::{Applied, Closing, StoreError};

/// Until a verdict is asked for again that could not be.
const AGAIN: Duration = Duration::from_secs(1);

impl Node {
    /// Asks for the verdicts that are due.
    pub(super) fn close_ended(&mut self, now: Now, chores: &Chores) {
        for slot in self.presence.closer.due(now.wall, chores::CLOSINGS) {
            let Some(entry) = self.entries.get(slot.job()) else { continue };
            let max_attempts = entry.spec.policy.max_attempts;
            chores.close(slot, max_attempts, self.identity.name.clone());
        }
    }

    /// The store's answer.
    pub(super) fn closed(&mut self, now: Now, slot: &Slot, reply: Result<Closing, StoreError>, chores: &Chores) {
        let moved_on = matches!(reply, Ok(Closing::First(_) | Closing::Already(_)));
        let closer = &mut self.presence.closer;
        match reply {
            Ok(Closing::First(verdict)) => {
                closer.closed(slot);
                self.presence.unsure.remove(slot);
                self.ports.observer.closed(slot, verdict);
            }
            Ok(Closing::Already(verdict)) => {
                closer.closed(slot);
                // An earlier answer was lost and may have been `First`: told twice is better than never.
                if self.presence.unsure.remove(slot) {
                    self.ports.observer.closed(slot, verdict);
                }
            }
            Ok(Closing::Running { remaining, .. }) => {
                closer.still_running(slot, later(now.wall, remaining.max(Duration::from_secs(1))));
            }
            // This node's clock is ahead of the store's, or the store is away.
            Ok(Closing::Open { remaining }) => closer.postponed(slot, later(now.wall, remaining)),
            Err(error) => {
                closer.postponed(slot, later(now.wall, AGAIN));
                if error.applied == Applied::Maybe {
                    self.presence.unsure.insert(slot.clone());
                }
            }
        }
        // After an outage the next one is due as well, and need not wait for a beat.
        if moved_on {
            self.close_ended(now, chores);
        }
    }
}
