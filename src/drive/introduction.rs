//! Makes the registry know a job that no daemon plans, so that every listing and verb does: as soon as its work runs, beside
//! it. Best effort: the run neither waits for it nor hears of its failure. What a file's daemon said is never replaced.

use crate::guard::Event;
use crate::observe::{NodeEvent, Observer};
use crate::slot::{Slot, Verdict};
use crate::store::{JobEntry, JobOrigin, Store};
use tokio::sync::Notify;

/// A job that no daemon plans, as its caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The registry's entry.
    pub entry: JobEntry,
    /// False where it is in part a guess: then it takes the place of none that is there.
    pub certain: bool,
}

impl Introduction {
    /// Tells the store, unless it knows. Answers whether it knows now. Between the look and the word a daemon may register
    /// the same name for the first time: the store then keeps what the daemon said.
    pub(super) async fn tell(&self, store: &dyn Store) -> bool {
        let Ok(known) = store.jobs().await else { return false };
        let known = known.iter().find(|job| job.name == self.entry.name);
        if known.is_some_and(|known| !self.replaces(known)) {
            return true;
        }
        store.register(std::slice::from_ref(&self.entry)).await.is_ok()
    }

    fn replaces(&self, known: &JobEntry) -> bool {
        let same = JobEntry { first_seen: known.first_seen, ..self.entry.clone() } == *known;
        self.certain && !same && known.origin != JobOrigin::File
    }
}

/// Tells once that the work has begun.
#[derive(Debug, Default)]
pub(super) struct Begun(pub(super) Notify);

impl Observer for Begun {
    fn slot(&self, _slot: &Slot, event: &Event) {
        // Not the grant: the start of the work comes before everything else.
        if matches!(event, Event::RunStarted { .. }) {
            self.0.notify_one();
        }
    }

    fn closed(&self, _slot: &Slot, _verdict: Verdict) {}

    fn node(&self, _event: &NodeEvent) {}
}
