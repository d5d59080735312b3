//! Listens for wake-ups by a persistent watch on a session of its own: in the background, from the first subscription until
//! the store is dropped. A watch ends with its session, and what happens while the connection is away is not told afterwards;
//! a watch may even stay deaf once it is back (seen with a server that was restarted). So after each of both a new session
//! is begun, and `Resync` tells that hints may have been lost: holders renew at once.
//!
//! Nothing depends on a hint, so nothing here is an error.

use std::sync::Arc;

use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState};

use super::fault::Fault;
use super::link::{Link, Session};
use super::nodes::Paths;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::{Wake, Wakeups};

/// What is watched and those who listen.
#[derive(Debug)]
pub(super) struct Listener {
    link: Arc<Link>,
    paths: Paths,
    hints: Hints,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(link: Link, paths: Paths) -> Self {
        Self { link: Arc::new(link), paths, hints: Hints::default() }
    }

    /// Hints from now on.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (link, paths) = (Arc::clone(&self.link), self.paths.clone());
        self.hints.subscribe(|hints| Watch { link, paths, hints }.listen())
    }

    /// Tells those who listen here.
    pub(super) fn tell(&self, wake: Wake) {
        self.hints.tell(wake);
    }
}

struct Watch {
    link: Arc<Link>,
    paths: Paths,
    hints: Teller,
}

impl Watch {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            match self.open().await {
                // The session is kept for as long as its watch: it ends when its client is dropped.
                Ok((session, events)) => {
                    again.connected();
                    self.hints.tell(Wake::Resync);
                    self.relay(events).await;
                    self.link.forget(session.generation);
                    tracing::debug!(session = ?session.client.session_id(), "the session for wake-ups ended");
                }
                Err(error) => {
                    tracing::debug!(%error, "no session for wake-ups");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    async fn open(&self) -> Result<(Session, PersistentWatcher), Fault> {
        let session = self.link.session().await?;
        self.link.prepare(&session.client).await?;
        let events = session.client.watch(&self.paths.wakes(), AddWatchMode::PersistentRecursive).await?;
        Ok((session, events))
    }

    /// Passes hints on until the connection is lost.
    async fn relay(&self, mut events: PersistentWatcher) {
        loop {
            let event = events.changed().await;
            match event.event_type {
                EventType::Session if event.session_state != SessionState::SyncConnected => return,
                EventType::NodeCreated => {
                    // What somebody else makes there is no hint.
                    if let Some(wake) = self.paths.wake_of(&event.path) {
                        self.hints.tell(wake);
                    }
                }
                _ => {}
            }
        }
    }
}
