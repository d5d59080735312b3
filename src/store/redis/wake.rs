//! Listens for wake-ups on a connection of its own: in the background, from the first subscription until the store is
//! dropped. A lost connection is made again for ever; each time it stands, `Resync` tells that hints may have been lost.
//! Nothing depends on a hint, so nothing here is an error. A user who may not subscribe is told of once, and whoever waits
//! looks again by a timer. The same connection hears for the processes that wait for locks, each on a channel of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{Msg, RedisError};

use super::keys::Keys;
use super::link::Endpoint;
use super::processes::Processes;
use super::subscription::Subscription;
use crate::slot::Token;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::locks::LockWakeups;
use crate::store::{Wake, Wakeups};

/// The channel and those who listen.
#[derive(Debug)]
pub(super) struct Listener {
    endpoint: Endpoint,
    channels: Channels,
    /// The longest wait for a connection and for an answer on it.
    limit: Duration,
    hints: Hints,
    processes: Arc<Processes>,
    /// The server has said that this user may not listen.
    refused: Arc<AtomicBool>,
}

/// Where hints are published.
#[derive(Clone, Debug)]
struct Channels {
    /// Those about slots.
    slots: String,
    /// What the channel of a process begins with.
    processes: String,
}

impl Channels {
    fn of(&self, instance: Token) -> String {
        format!("{}{instance}", self.processes)
    }
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(endpoint: Endpoint, keys: &Keys, limit: Duration) -> Self {
        let channels = Channels { slots: keys.wake(), processes: keys.wake_of_processes() };
        Self { endpoint, channels, limit, hints: Hints::default(), processes: Arc::default(), refused: Arc::default() }
    }

    /// False while the server refuses the subscription.
    pub(super) fn is_allowed(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (endpoint, channels, limit) = (self.endpoint.clone(), self.channels.clone(), self.limit);
        let (refused, processes) = (Arc::clone(&self.refused), Arc::clone(&self.processes));
        self.hints.subscribe(|hints| Ears { endpoint, channels, limit, hints, refused, processes }.listen())
    }

    /// Hints about locks to this process from now on.
    pub(super) fn listen(&self, instance: Token) -> LockWakeups {
        let wakeups = self.processes.listen(instance);
        drop(self.subscribe());
        wakeups
    }

    /// False while the server refuses to let a process listen for hints about locks.
    pub(super) fn is_allowed_to_processes(&self) -> bool {
        self.is_allowed() && !self.processes.is_refused()
    }

    /// Whether what is published to this process comes here.
    pub(super) fn hears_for(&self, instance: Token) -> bool {
        self.processes.hears(instance)
    }

    /// Waits until it does, where somebody listens for it; not for long. Whether it does then.
    pub(super) async fn comes_to_hear_for(&self, instance: Token) -> bool {
        self.processes.comes_to_hear(instance, self.limit / 2).await
    }
}

/// What the task has of the listener.
struct Ears {
    endpoint: Endpoint,
    channels: Channels,
    limit: Duration,
    hints: Teller,
    refused: Arc<AtomicBool>,
    processes: Arc<Processes>,
}

impl Ears {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            let version = self.endpoint.version();
            match Subscription::open(&self.endpoint, &self.channels.slots, self.limit).await {
                Ok(subscription) => {
                    again.connected();
                    self.refused.store(false, Ordering::Relaxed);
                    self.hints.tell(Wake::Resync);
                    tokio::select! {
                        () = self.relay(subscription) => {}
                        // What is published at the old master is heard by nobody.
                        () = self.endpoint.moved(version) => {}
                    }
                    self.processes.disconnected();
                    tracing::debug!(channel = self.channels.slots, "the connection for wake-ups broke");
                }
                Err(error) => {
                    self.processes.in_vain(false);
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
                channel = self.channels.slots,
                "no wake-ups: the user may not subscribe, so waiting nodes look by timers"
            );
            // Whoever waits counted on being told.
            self.hints.tell(Wake::Resync);
            self.processes.resync();
        } else {
            tracing::debug!(channel = self.channels.slots, %error, "no connection for wake-ups");
        }
    }

    /// Passes hints on until the connection is gone.
    async fn relay(&self, mut subscription: Subscription) {
        self.processes.connected();
        let mut heard = self.hear_for_processes(&mut subscription).await;
        while heard.is_ok() {
            tokio::select! {
                message = subscription.next() => match message {
                    None => return,
                    Some(message) => self.pass_on(&message),
                },
                () = self.processes.joined() => heard = self.hear_for_processes(&mut subscription).await,
            }
        }
    }

    /// What somebody else publishes there is no hint.
    fn pass_on(&self, message: &Msg) {
        let content = String::from_utf8_lossy(message.get_payload_bytes());
        if let Some(instance) = message.get_channel_name().strip_prefix(&self.channels.processes) {
            if let (Ok(instance), Ok(hint)) = (instance.parse(), content.parse()) {
                self.processes.tell(instance, hint);
            }
        } else if let Ok(wake) = content.parse() {
            self.hints.tell(wake);
        }
    }

    /// Subscribes to the channels of those who listen. A user who may not do that hears of slots all the same.
    async fn hear_for_processes(&self, subscription: &mut Subscription) -> Result<(), RedisError> {
        for instance in self.processes.unheard() {
            match subscription.add(&self.channels.of(instance)).await {
                Ok(()) => self.processes.add(instance),
                Err(error) if error.code() == Some("NOPERM") => self.refused_to_process(),
                Err(error) => return Err(error),
            }
        }
        for instance in self.processes.idle() {
            subscription.remove(&self.channels.of(instance)).await?;
            self.processes.remove(instance);
        }
        Ok(())
    }

    fn refused_to_process(&self) {
        if !self.processes.is_refused() {
            let channels = format!("{}*", self.channels.processes);
            tracing::warn!(channels, "no hints about locks: the user may not subscribe, so who waits looks by timers");
        }
        self.processes.in_vain(true);
    }
}
