//! Listens for hints on a connection of its own: in the background, from the first subscription until the store is dropped. A lost
//! connection is made again for ever, and listens again; each time it stands, `Resync` tells that hints may have been lost.
//! Nothing depends on a hint, so nothing here is an error.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};

use crate::job::Namespace;
use crate::slot::Token;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::locks::{LockHints, LockWakeups};
use crate::store::sql::server::ServerPlace;
use crate::store::{Wake, Wakeups};

/// Those who listen, and the connection that hears for them.
#[derive(Debug)]
pub(super) struct NotifyListener {
    place: ServerPlace<PgConnectOptions>,
    channel: String,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: Hints,
    lock_hints: Arc<LockHints>,
}

/// The longest that a connection is waited for, whatever the limit of a call: the driver adds it to the time of day.
const LONGEST_LIMIT: Duration = Duration::from_secs(60);
/// A link that was silent for so long is asked whether it still stands.
const SILENCE: Duration = Duration::from_secs(5);

impl NotifyListener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(place: ServerPlace<PgConnectOptions>, namespace: &Namespace, limit: Duration) -> Self {
        let (channel, limit) = (channel(namespace), limit.min(LONGEST_LIMIT));
        Self { place, channel, limit, hints: Hints::default(), lock_hints: Arc::default() }
    }

    /// Hints on slots and jobs from now on.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (options, channel, limit) = (self.place.options.clone(), self.channel.clone(), self.limit);
        let lock_hints = Arc::clone(&self.lock_hints);
        self.hints.subscribe(move |hints| Hearing { options, channel, limit, hints, lock_hints }.listen())
    }

    /// Hints on locks to this instance from now on.
    pub(super) fn listen_locks(&self, instance: Token) -> LockWakeups {
        // Before anything is heard: what comes first is that hints may have been lost.
        let wakeups = self.lock_hints.listen(instance);
        drop(self.subscribe());
        wakeups
    }
}

/// The channel of a namespace: within the 63 bytes of a name ([`crate::job::NAME_RULE`] has 52 of them).
pub(super) fn channel(namespace: &Namespace) -> String {
    format!("cronward:{namespace}")
}

/// What the task has that hears.
struct Hearing {
    options: PgConnectOptions,
    channel: String,
    limit: Duration,
    hints: Teller,
    lock_hints: Arc<LockHints>,
}

impl Hearing {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            match self.connect().await {
                Some(listener) => {
                    again.connected();
                    self.hints.tell(Wake::Resync);
                    self.lock_hints.resync();
                    self.relay(listener).await;
                    tracing::debug!(channel = self.channel, "the connection for wake-ups broke");
                }
                None => {
                    tracing::debug!(channel = self.channel, "no connection for wake-ups");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    /// A new connection that listens.
    async fn connect(&self) -> Option<PgListener> {
        let listening = async {
            // The listener wants a pool to take its connection from.
            let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(self.limit);
            let mut listener = PgListener::connect_with(&pool.connect_lazy_with(self.options.clone())).await?;
            // A lost connection is made again here, so that it is noticed.
            listener.eager_reconnect(false);
            listener.listen(&self.channel).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        tokio::time::timeout(self.limit, listening).await.ok()?.ok()
    }

    /// Passes hints on until the connection is gone, or silent also when asked.
    async fn relay(&self, mut listener: PgListener) {
        loop {
            match tokio::time::timeout(SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(message))) => self.tell(message.payload()),
                Ok(Ok(None) | Err(_)) => return,
                Err(_) => match tokio::time::timeout(self.limit, listener.execute("SELECT 1")).await {
                    Ok(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    }

    /// What somebody else publishes there is no hint.
    fn tell(&self, message: &str) {
        if !self.lock_hints.hear(message)
            && let Ok(wake) = message.parse()
        {
            self.hints.tell(wake);
        }
    }
}
