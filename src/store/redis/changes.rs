//! Hears for those who look on, on a connection of its own that stands only while there is somebody. A lost connection is made again
//! until the last has left; each time it stands, `Resync` tells that hints may have been lost. Nothing depends on a hint, so nothing
//! here is an error: who may not subscribe looks again by a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::keys::Keys;
use super::link::Endpoint;
use super::subscription::Subscription;
use crate::store::hints::{ChangeTeller, Onlookers, Reconnection};
use crate::store::{ChangeHint, Changes};

/// The channel, and those who look on.
#[derive(Debug)]
pub(super) struct ChangeListener {
    endpoint: Endpoint,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    teller: ChangeTeller,
    /// The server has said that this user may not listen.
    refused: Arc<AtomicBool>,
}

impl ChangeListener {
    /// A listener that does not connect before somebody looks on.
    pub(super) fn new(endpoint: Endpoint, keys: &Keys, limit: Duration) -> Self {
        let (teller, refused) = (ChangeTeller::default(), Arc::default());
        Self { endpoint, channel: keys.events(), limit, teller, refused }
    }

    /// False while the server refuses the subscription.
    pub(super) fn is_allowed(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Changes {
        let (endpoint, channel, limit) = (self.endpoint.clone(), self.channel.clone(), self.limit);
        let refused = Arc::clone(&self.refused);
        self.teller.subscribe(|onlookers| Eyes { endpoint, channel, limit, onlookers, refused }.listen())
    }
}

/// What the task has of the listener.
struct Eyes {
    endpoint: Endpoint,
    channel: String,
    limit: Duration,
    onlookers: Onlookers,
    refused: Arc<AtomicBool>,
}

impl Eyes {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            let version = self.endpoint.version();
            match Subscription::open(&self.endpoint, &self.channel, self.limit).await {
                Ok(subscription) => {
                    again.connected();
                    self.refused.store(false, Ordering::Relaxed);
                    self.onlookers.tell(ChangeHint::Resync);
                    tokio::select! {
                        () = self.relay(subscription) => {}
                        // What is published at the old master is heard by nobody.
                        () = self.endpoint.moved(version) => {}
                    }
                }
                Err(error) => {
                    self.endpoint.doubt();
                    let is_refused = error.code() == Some("NOPERM");
                    self.refused.store(is_refused, Ordering::Relaxed);
                    tracing::debug!(channel = self.channel, %error, "no connection for changes");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    /// Passes hints on until the connection is gone. What somebody else publishes there is no hint.
    async fn relay(&self, mut subscription: Subscription) {
        while let Some(message) = subscription.next().await {
            if let Ok(hint) = String::from_utf8_lossy(message.get_payload_bytes()).parse() {
                self.onlookers.tell(hint);
            }
        }
    }
}
