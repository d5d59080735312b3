//! Who hears of what happens on a node.

use std::fmt::Debug;
use std::sync::Arc;

use crate::event::Event;
use crate::job::JobSpec;
use crate::slot::Slot;

/// Hears every event. Called from the node's loops: it may not block, and nothing depends on what it does.
pub trait Observer: Debug + Send + Sync + 'static {
    /// Something happened at this slot, or, where there is none, to the node.
    fn event(&self, slot: Option<&Slot>, event: &Event);

    /// These are the jobs from now on, disabled ones included, with the hash over all of them: at the start, and with each reload
    /// that is taken. For whoever keeps something by job; [`Event::Planned`] is what is told.
    fn plan(&self, _jobs: &[Arc<JobSpec>], _config_hash: &str) {}
}

/// Tells every event to each observer, in their order.
#[derive(Clone, Debug)]
pub struct FanOut(pub Vec<Arc<dyn Observer>>);

impl Observer for FanOut {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        self.0.iter().for_each(|observer| observer.event(slot, event));
    }

    fn plan(&self, jobs: &[Arc<JobSpec>], config_hash: &str) {
        self.0.iter().for_each(|observer| observer.plan(jobs, config_hash));
    }
}
