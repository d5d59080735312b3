//! Listens for wake-ups on a connection of its own: in the background, from the first subscription until the store is
//! dropped. A lost connection is made again for ever; each time it stands, `Resync` tells that hints may have been lost.
//! Nothing depends on a hint, so nothing here is an error. A user who may not subscribe is told of once, and whoever waits
//! looks again by a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use redis::RedisError;
use redis::aio::{PubSubSink, PubSubStream};

use super::link::Endpoint;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::{Wake, Wakeups};

/// A link that was silent for so long is asked whether it still stands.
const SILENCE: Duration = Duration::from_secs(5);

/// The channel and those who listen.
#[derive(Debug)]
pub(super) struct Listener {
    endpoint: Endpoint,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: Hints,
    /// The server has said that this user may not listen.
    refused: Arc<AtomicBool>,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(endpoint: Endpoint, channel: String, limit: Duration) -> Self {
        Self { endpoint, channel, limit, hints: Hints::default(), refused: Arc::default() }
    }

    /// False while the server refuses the subscription.
    pub(super) fn is_allowed(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (endpoint, channel, refused) = (self.endpoint.clone(), self.channel.clone(), Arc::clone(&self.refused));
        self.hints.subscribe(|hints| Ears { endpoint, channel, limit: self.limit, hints, refused }.listen())
    }
}

/// What the task has of the listener.
struct Ears {
    endpoint: Endpoint,
    channel: String,
    limit: Duration,
    hints: Teller,
    refused: Arc<AtomicBool>,
}

impl Ears {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            let version = self.endpoint.version();
            match self.connect().await {
                Ok((sink, messages)) => {
                    again.connected();
                    self.refused.store(false, Ordering::Relaxed);
                    self.hints.tell(Wake::Resync);
                    tokio::select! {
                        () = self.relay(sink, messages) => {}
                        // What is published at the old master is heard by nobody.
                        () = self.endpoint.moved(version) => {}
                    }
                    tracing::debug!(channel = self.channel, "the connection for wake-ups broke");
                }
                Err(error) => {
                    self.endpoint.doubt();
                    self.failed(&error);
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    /// A refusal is worth a warning, once; everything else passes.
    fn failed(&self, error: &RedisError) {
        if error.code() == Some("NOPERM") && !self.refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                channel = self.channel,
                "no wake-ups: the user may not subscribe, so waiting nodes look by timers"
            );
            // Whoever waits counted on being told.
            self.hints.tell(Wake::Resync);
        } else {
            tracing::debug!(channel = self.channel, %error, "no connection for wake-ups");
        }
    }

    async fn connect(&self) -> Result<(PubSubSink, PubSubStream), RedisError> {
        let subscribed = async {
            let target = self.endpoint.target(self.limit).await?;
            let (mut sink, messages) = target.listener.get_async_pubsub().await?.split();
            sink.subscribe(&self.channel).await?;
            Ok((sink, messages))
        };
        tokio::time::timeout(self.limit, subscribed).await.unwrap_or_else(|_| Err(silent()))
    }

    /// Passes hints on until the connection is gone, or silent also when asked.
    async fn relay(&self, mut sink: PubSubSink, mut messages: PubSubStream) {
        loop {
            match tokio::time::timeout(SILENCE, messages.next()).await {
                Ok(None) => return,
                // What somebody else publishes there is no hint.
                Ok(Some(message)) => {
                    if let Ok(wake) = String::from_utf8_lossy(message.get_payload_bytes()).parse() {
                        self.hints.tell(wake);
                    }
                }
                Err(_) => match tokio::time::timeout(self.limit, sink.ping::<redis::Value>()).await {
                    Ok(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    }
}

fn silent() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))
}
