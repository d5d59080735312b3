//! Listens for wake-ups on a connection of its own: in the background, from the first subscription until the store is
//! dropped. A lost connection is made again for ever, and listens again; each time it stands, `Resync` tells that hints may
//! have been lost. Nothing depends on a hint, so nothing here is an error.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use super::session::{Place, channel};
use crate::job::Namespace;
use crate::store::{Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;
/// The wait before a connection is made again; it doubles up to the longest.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The longest that a connection is waited for, whatever the limit of a call: the driver adds it to the time of day.
const LONGEST_LIMIT: Duration = Duration::from_secs(60);
/// A link that was silent for so long is asked whether it still stands.
const SILENCE: Duration = Duration::from_secs(5);

/// The channel and those who listen.
#[derive(Debug)]
pub(super) struct Listener {
    place: Place,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: broadcast::Sender<Wake>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(place: Place, namespace: &Namespace, limit: Duration) -> Self {
        let channel = channel(namespace);
        Self {
            place,
            channel,
            limit: limit.min(LONGEST_LIMIT),
            hints: broadcast::Sender::new(HINTS),
            task: Mutex::default(),
        }
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let hints = self.hints.subscribe();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && task.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            let listening = listen(self.place.clone(), self.channel.clone(), self.limit, self.hints.clone());
            *task = Some(AbortOnDropHandle::new(runtime.spawn(listening)));
        }
        hints
    }
}

/// Listens until the task is stopped.
#[allow(clippy::disallowed_methods, reason = "the wait before a connection is made again; the file owns it")]
async fn listen(place: Place, channel: String, limit: Duration, hints: broadcast::Sender<Wake>) {
    let mut wait = SHORTEST_WAIT;
    loop {
        match connect(&place, &channel, limit).await {
            Some(listener) => {
                wait = SHORTEST_WAIT;
                tell(&hints, Wake::Resync);
                relay(listener, limit, &hints).await;
                tracing::debug!(channel, "the connection for wake-ups broke");
            }
            None => {
                tracing::debug!(channel, "no connection for wake-ups");
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
        tokio::time::sleep(wait).await;
    }
}

/// A new connection that listens.
async fn connect(place: &Place, channel: &str, limit: Duration) -> Option<PgListener> {
    let listening = async {
        // The listener wants a pool to take its connection from.
        let pool =
            PgPoolOptions::new().max_connections(1).acquire_timeout(limit).connect_lazy_with(place.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        // A lost connection is made again here, so that it is noticed.
        listener.eager_reconnect(false);
        listener.listen(channel).await?;
        Ok::<_, sqlx::Error>(listener)
    };
    tokio::time::timeout(limit, listening).await.ok()?.ok()
}

/// Passes hints on until the connection is gone, or silent also when asked.
async fn relay(mut listener: PgListener, limit: Duration, hints: &broadcast::Sender<Wake>) {
    loop {
        match tokio::time::timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(message))) => {
                // What somebody else publishes there is no hint.
                if let Ok(wake) = message.payload().parse() {
                    tell(hints, wake);
                }
            }
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => match tokio::time::timeout(limit, listener.execute("SELECT 1")).await {
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
