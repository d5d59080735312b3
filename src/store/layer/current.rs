//! The store that calls go to, which another connection to the same place may take over from. A call keeps the store that it was
//! begun with; hints go on coming, from the one that is current.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use crate::store::contract::pass_on;
use crate::store::{Store, Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// The store that calls go to.
#[derive(Debug)]
pub(super) struct Current {
    /// Of the first one: all are at one place.
    location: String,
    /// None where the store stays the same: its own hints need no relay.
    hints: Option<broadcast::Sender<Wake>>,
    state: Mutex<InUse>,
}

#[derive(Debug)]
struct InUse {
    store: Arc<dyn Store>,
    /// How many there were before it.
    generation: u64,
    /// Passes its hints on, from the first subscription.
    relay: Option<AbortOnDropHandle<()>>,
}

impl Current {
    /// One that stays.
    pub(super) fn fixed(store: Arc<dyn Store>) -> Self {
        let location = store.location().to_owned();
        Self { location, hints: None, state: Mutex::new(InUse { store, generation: 0, relay: None }) }
    }

    /// One that may be replaced.
    pub(super) fn replaceable(store: Arc<dyn Store>) -> Self {
        Self { hints: Some(broadcast::Sender::new(HINTS)), ..Self::fixed(store) }
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.lock().store)
    }

    /// Another one for each store that took over.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// From now on calls go to `store`. Whoever listens hears its hints; the first of them tells that some may have been lost.
    pub(super) fn replace(&self, store: Arc<dyn Store>) {
        let mut state = self.lock();
        let relay = state.relay.is_some().then(|| self.relay(&store)).flatten();
        let generation = state.generation + 1;
        *state = InUse { store, generation, relay };
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let Some(hints) = &self.hints else { return self.store().subscribe() };
        let receiver = hints.subscribe();
        let mut state = self.lock();
        if state.relay.is_none() {
            state.relay = self.relay(&state.store);
        }
        receiver
    }

    fn relay(&self, store: &Arc<dyn Store>) -> Option<AbortOnDropHandle<()>> {
        let (hints, runtime) = (self.hints.clone()?, tokio::runtime::Handle::try_current().ok()?);
        Some(AbortOnDropHandle::new(runtime.spawn(pass_on(store.subscribe(), hints))))
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
