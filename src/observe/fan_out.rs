//! Several observers as one. It passes on and decides nothing.

use std::sync::Arc;

use crate::guard::Event;
use crate::observe::{NodeEvent, Observer};
use crate::slot::{Slot, Verdict};

/// Tells every event to each observer, in their order.
#[derive(Clone, Debug)]
pub struct FanOut(pub Vec<Arc<dyn Observer>>);

impl Observer for FanOut {
    fn slot(&self, slot: &Slot, event: &Event) {
        self.0.iter().for_each(|observer| observer.slot(slot, event));
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        self.0.iter().for_each(|observer| observer.closed(slot, verdict));
    }

    fn node(&self, event: &NodeEvent) {
        self.0.iter().for_each(|observer| observer.node(event));
    }
}
