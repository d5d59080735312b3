//! The verdicts of ended slots: asked for when they are due, told when this node was the one to record them.

use crate::clock::Now;
use crate::node::chores::{self, Chores};
use crate::node::daemon::Node;
use crate::slot::Slot;
use crate::store::{Closing, StoreError};

impl Node {
    /// Asks for the verdicts that are due.
    pub(super) fn close_ended(&mut self, now: Now, chores: &Chores) {
        // A verdict can wait, and a slot that waits to be run cannot.
        let is_busy = self.tools.gate.occupancy().waiting > 0;
        let most = if is_busy { chores::CLOSINGS_WHEN_BUSY } else { chores::CLOSINGS };
        let room = most.saturating_sub(self.presence.closing);
        let due = if room > 0 { self.presence.closer.due(now.wall, room) } else { Vec::new() };
        for slot in due {
            let Some(entry) = self.entries.get(slot.job()) else { continue };
            let max_attempts = entry.spec.policy.max_attempts;
            self.presence.closing += 1;
            chores.close(slot, max_attempts, self.identity.name.clone());
        }
    }

    /// The store's answer.
    pub(super) fn closed(&mut self, now: Now, slot: &Slot, reply: Result<Closing, StoreError>, chores: &Chores) {
        let reply = reply.map_err(|error| error.applied);
        let answered = self.presence.closer.answered(slot, now.wall, reply);
        if let Some(verdict) = answered.tell {
            self.tools.observer.closed(slot, verdict);
        }
        // After an outage the next one is due as well, and need not wait for a beat.
        if answered.moved_on {
            self.close_ended(now, chores);
        }
    }
}
