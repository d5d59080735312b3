//! Listens for wake-ups on a connection of its own: in the background, from the first subscription until the store is
//! dropped. A lost connection is made again for ever; each time it stands, `Resync` tells that hints may have been lost.
//! Nothing depends on a hint, so nothing here is an error.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, RedisError};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

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
    client: Client,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: broadcast::Sender<Wake>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(client: Client, channel: String, limit: Duration) -> Self {
        Self { client, channel, limit, hints: broadcast::Sender::new(HINTS), task: Mutex::default() }
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let hints = self.hints.subscribe();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && task.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            let listening = listen(self.client.clone(), self.channel.clone(), self.limit, self.hints.clone());
            *task = Some(AbortOnDropHandle::new(runtime.spawn(listening)));
        }
        hints
    }
}

/// Listens until the task is stopped.
#[allow(clippy::disallowed_methods, reason = "the wait before a connection is made again; the file owns it")]
async fn listen(client: Client, channel: String, limit: Duration, hints: broadcast::Sender<Wake>) {
    let mut wait = SHORTEST_WAIT;
    loop {
        match connect(&client, &channel, limit).await {
            Ok((sink, messages)) => {
                wait = SHORTEST_WAIT;
                tell(&hints, Wake::Resync);
                relay(sink, messages, limit, &hints).await;
                tracing::debug!(channel, "the connection for wake-ups broke");
            }
            Err(error) => {
                tracing::debug!(channel, %error, "no connection for wake-ups");
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
        tokio::time::sleep(wait).await;
    }
}

async fn connect(client: &Client, channel: &str, limit: Duration) -> Result<(PubSubSink, PubSubStream), RedisError> {
    let subscribed = async {
        let (mut sink, messages) = client.get_async_pubsub().await?.split();
        sink.subscribe(channel).await?;
        Ok((sink, messages))
    };
    tokio::time::timeout(limit, subscribed).await.unwrap_or_else(|_| Err(silent()))
}

/// Passes hints on until the connection is gone, or silent also when asked.
async fn relay(mut sink: PubSubSink, mut messages: PubSubStream, limit: Duration, hints: &broadcast::Sender<Wake>) {
    loop {
        match tokio::time::timeout(SILENCE, messages.next()).await {
            Ok(None) => return,
            // What somebody else publishes there is no hint.
            Ok(Some(message)) => {
                if let Ok(wake) = String::from_utf8_lossy(message.get_payload_bytes()).parse() {
                    tell(hints, wake);
                }
            }
            Err(_) => match tokio::time::timeout(limit, sink.ping::<redis::Value>()).await {
                Ok(Ok(_)) => {}
                _ => return,
            },
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
