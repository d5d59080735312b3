//! Listens for wake-ups by a watch on a connection of its own: in the background, from the first subscription until the
//! store is dropped. A watch ends with its connection; the next one goes on at the revision after the last that was heard,
//! so that nothing is missed. Where that is compacted away, `Resync` tells that hints were lost.
//!
//! Nothing depends on a hint, so nothing here is an error.

use std::sync::Arc;

use futures_util::stream;
use tonic::Streaming;

use super::api::{DELETE, WatchCreateRequest, WatchEvent, WatchOrder, WatchRequest, WatchResponse, end_of, method};
use super::fault::Fault;
use super::keys::Keys;
use super::link::Link;
use crate::slot::Token;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::locks::{LockHints, LockWakeups};
use crate::store::{Wake, WakeKind, Wakeups};

/// What is watched and those who listen.
#[derive(Debug)]
pub(super) struct WatchListener {
    link: Arc<Link>,
    keys: Keys,
    hints: Hints,
    lock_hints: Arc<LockHints>,
}

impl WatchListener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(link: Link, keys: Keys) -> Self {
        Self { link: Arc::new(link), keys, hints: Hints::default(), lock_hints: Arc::default() }
    }

    /// Hints from now on.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (link, keys) = (Arc::clone(&self.link), self.keys.clone());
        let lock_hints = Arc::clone(&self.lock_hints);
        self.hints.subscribe(|hints| Watch { link, keys, hints, lock_hints }.listen())
    }

    /// Hints on locks to this instance from now on.
    pub(super) fn listen_locks(&self, instance: Token) -> LockWakeups {
        // Before anything is heard: what comes first is that hints may have been lost.
        let wakeups = self.lock_hints.listen(instance);
        drop(self.subscribe());
        wakeups
    }
}

struct Watch {
    link: Arc<Link>,
    keys: Keys,
    hints: Teller,
    lock_hints: Arc<LockHints>,
}

/// Begins a watch.
pub(super) async fn open_watch(link: &Link, create: WatchCreateRequest) -> Result<Streaming<WatchResponse>, Fault> {
    let request = WatchRequest { order: Some(WatchOrder::Create(create)) };
    // The stream of requests stays open: its end would end the watch.
    let requests = stream::unfold(Some(request), |request| async move {
        match request {
            Some(request) => Some((request, None)),
            None => std::future::pending().await,
        }
    });
    link.stream(method::WATCH, requests).await
}

/// Why a watch ended.
enum WatchEnd {
    /// The connection broke, or the member lost its leader.
    Broken,
    /// What was asked for is compacted away.
    Compacted,
}

impl Watch {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let (mut again, mut heard) = (Reconnection::default(), None);
        loop {
            match self.open(heard).await {
                Ok(answers) => {
                    again.connected();
                    match self.relay(answers, &mut heard).await {
                        WatchEnd::Broken => self.link.leave(),
                        WatchEnd::Compacted => heard = None,
                    }
                    tracing::debug!(heard, "the watch for wake-ups ended");
                }
                Err(error) => {
                    tracing::debug!(%error, "no watch for wake-ups");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    async fn open(&self, heard: Option<i64>) -> Result<Streaming<WatchResponse>, Fault> {
        let watched = self.keys.watched();
        let create = WatchCreateRequest {
            range_end: end_of(&watched),
            key: watched.into_bytes(),
            // 0 is from now on.
            start_revision: heard.map_or(0, |revision| revision + 1),
            // Also what is not watched is told now and then, so that the next watch need not begin long ago.
            progress_notify: true,
        };
        open_watch(&self.link, create).await
    }

    /// Passes hints on until the watch ends.
    async fn relay(&self, mut answers: Streaming<WatchResponse>, heard: &mut Option<i64>) -> WatchEnd {
        while let Ok(Some(answer)) = answers.message().await {
            if answer.canceled {
                tracing::debug!(reason = answer.cancel_reason, "the cluster ended the watch");
                return if answer.compact_revision > 0 { WatchEnd::Compacted } else { WatchEnd::Broken };
            }
            if answer.created && heard.is_none() {
                self.hints.tell(Wake::Resync);
                self.lock_hints.resync();
            }
            self.tell_all(&answer.events);
            let revision = answer.header.map(|header| header.revision).filter(|revision| *revision > 0);
            // A watch that goes on where another was is told of its creation with today's revision: that is not heard yet.
            if !answer.created || heard.is_none() {
                *heard = revision.max(*heard);
            }
        }
        WatchEnd::Broken
    }

    fn tell_all(&self, events: &[WatchEvent]) {
        let changes = || events.iter().filter_map(|event| Some((event.kind, event.kv.as_ref()?)));
        let is_hint = |key: &[u8]| key == self.keys.wake().as_bytes();
        let told: Vec<i64> = changes().filter(|(_, kv)| is_hint(&kv.key)).map(|(_, kv)| kv.mod_revision).collect();
        for (kind, kv) in changes() {
            if is_hint(&kv.key) {
                // What somebody else writes there is no hint.
                if let Ok(wake) = String::from_utf8_lossy(&kv.value).parse() {
                    self.hints.tell(wake);
                }
            } else if kv.key == self.keys.lock_wake().as_bytes() {
                for message in String::from_utf8_lossy(&kv.value).lines() {
                    self.lock_hints.hear(message);
                }
            } else if kind == DELETE && !told.contains(&kv.mod_revision) {
                // A lease that lapsed: nobody else tells of it.
                if let Some((job, key)) = self.keys.slot_key_of(&kv.key) {
                    self.hints.tell(Wake::Slot { job, key, what: WakeKind::Released });
                }
            }
        }
    }
}
