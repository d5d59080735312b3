//! Listens for wake-ups on a connection of its own: in the background, from the first subscription until the store is
//! dropped. A lost connection is made again for ever; each time it stands, `Resync` tells that hints may have been lost.
//! Nothing depends on a hint, so nothing here is an error. A user who may not subscribe is told of once, and whoever waits
//! looks again by a timer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::RedisError;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use super::link::Endpoint;
use crate::store::{Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;
/// The wait before a connection is made again; it doubles up to the longest.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// A link that was silent for so long is asked whether it still stands.
const SILENCE: Duration = Duration::from_secs(5);

/// The channel and those who listen.
#[derive(Debug)]
pub(super) struct Listener {
    endpoint: Endpoint,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: broadcast::Sender<Wake>,
    /// The server has said that this user may not listen.
    refused: Arc<AtomicBool>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(endpoint: Endpoint, channel: String, limit: Duration) -> Self {
        let (refused, task) = (Arc::default(), Mutex::default());
        Self { endpoint, channel, limit, hints: broadcast::Sender::new(HINTS), refused, task }
    }

    /// False while the server refuses the subscription.
    pub(super) fn is_allowed(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let hints = self.hints.subscribe();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && task.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            let ears = Ears {
                endpoint: self.endpoint.clone(),
                channel: self.channel.clone(),
                limit: self.limit,
                hints: self.hints.clone(),
                refused: Arc::clone(&self.refused),
            };
            let listening = ears.listen();
            *task = Some(AbortOnDropHandle::new(runtime.spawn(listening)));
        }
        hints
    }
}

/// What the task has of the listener.
struct Ears {
    endpoint: Endpoint,
    channel: String,
    limit: Duration,
    hints: broadcast::Sender<Wake>,
    refused: Arc<AtomicBool>,
}

impl Ears {
    /// Listens until the task is stopped.
    #[allow(clippy::disallowed_methods, reason = "the wait before a connection is made again; the file owns it")]
    async fn listen(self) {
        let mut wait = SHORTEST_WAIT;
        loop {
            let version = self.endpoint.version();
            match self.connect().await {
                Ok((sink, messages)) => {
                    wait = SHORTEST_WAIT;
                    self.refused.store(false, Ordering::Relaxed);
                    tell(&self.hints, Wake::Resync);
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
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
            tokio::time::sleep(wait).await;
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
            tell(&self.hints, Wake::Resync);
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
                        tell(&self.hints, wake);
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

fn tell(hints: &broadcast::Sender<Wake>, wake: Wake) {
    // Nobody may be listening just now.
    let _ = hints.send(wake);
}

fn silent() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))
}
