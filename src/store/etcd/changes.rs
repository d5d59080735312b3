//! Hears for those who look on, by a watch on a connection of its own that stands only while there is somebody: on the documents of slots,
//! which every step that is to be seen writes, and on the pauses. Nothing is published for their sake. A watch that ends is begun anew from
//! then on, and `Resync` tells that hints may have been lost.

use std::sync::Arc;

use tonic::Streaming;

use super::api::{WatchCreateRequest, WatchEvent, WatchResponse};
use super::fault::Fault;
use super::keys::Keys;
use super::link::Link;
use super::watch::open_watch;
use crate::store::hints::{ChangeTeller, Onlookers, Reconnection};
use crate::store::{ChangeHint, Changes};

/// What is watched, and those who look on.
#[derive(Debug)]
pub(super) struct ChangeWatch {
    link: Arc<Link>,
    keys: Keys,
    teller: ChangeTeller,
}

impl ChangeWatch {
    /// One that does not connect before somebody looks on.
    pub(super) fn new(link: Link, keys: Keys) -> Self {
        Self { link: Arc::new(link), keys, teller: ChangeTeller::default() }
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Changes {
        let (link, keys) = (Arc::clone(&self.link), self.keys.clone());
        self.teller.subscribe(|onlookers| Eyes { link, keys, onlookers }.listen())
    }
}

/// What the task has of it.
struct Eyes {
    link: Arc<Link>,
    keys: Keys,
    onlookers: Onlookers,
}

impl Eyes {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            match self.open().await {
                Ok(answers) => {
                    again.connected();
                    self.relay(answers).await;
                    self.link.leave();
                }
                Err(error) => {
                    tracing::debug!(%error, "no watch for changes");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    async fn open(&self) -> Result<Streaming<WatchResponse>, Fault> {
        let (key, range_end) = self.keys.seen();
        let create = WatchCreateRequest { key, range_end, ..WatchCreateRequest::default() };
        open_watch(&self.link, create).await
    }

    /// Passes hints on until the watch ends.
    async fn relay(&self, mut answers: Streaming<WatchResponse>) {
        while let Ok(Some(answer)) = answers.message().await {
            if answer.canceled {
                return;
            }
            if answer.created {
                self.onlookers.tell(ChangeHint::Resync);
            }
            for hint in answer.events.iter().filter_map(|event| self.hint(event)) {
                self.onlookers.tell(hint);
            }
        }
    }

    /// What somebody else writes there is no hint.
    fn hint(&self, event: &WatchEvent) -> Option<ChangeHint> {
        let key = &event.kv.as_ref()?.key;
        if let Some((job, key)) = self.keys.slot_key_of(key) {
            return Some(ChangeHint::Slot { job, key });
        }
        self.keys.paused_job_of(key).map(ChangeHint::Job)
    }
}
