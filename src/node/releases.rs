//! Tells a node's loop of each slot that the node let go of: it has done it, or has given it back. Decides nothing.

use tokio::sync::mpsc;

use crate::event::Event;
use crate::observe::Observer;
use crate::slot::Slot;

/// Hears of what is settled, and passes the slot on.
#[derive(Debug)]
pub(super) struct Releases(mpsc::UnboundedSender<Slot>);

impl Releases {
    /// To the loop that reads the other end.
    pub(super) const fn telling(releases: mpsc::UnboundedSender<Slot>) -> Self {
        Self(releases)
    }
}

impl Observer for Releases {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        if let (Some(slot), Event::Settled { .. }) = (slot, event) {
            // The loop may have ended; then nobody waits here any more.
            let _ = self.0.send(slot.clone());
        }
    }
}
