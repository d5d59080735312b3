//! Where a connection leads: one address for ever, the master that the sentinels name, or any server of a cluster.

use std::time::Duration;

use redis::RedisError;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use std::sync::Arc;

#[cfg(feature = "redis-sentinel")]
use super::sentinel::Sentinels;
use super::target::Target;

/// Where a connection leads.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// One address, whatever answers there.
    Fixed(Box<Target>),
    /// The master that the sentinels name.
    #[cfg(feature = "redis-sentinel")]
    Master(Arc<Sentinels>),
    /// One after the other: all of them know what one is told.
    #[cfg(feature = "redis-cluster")]
    AnyOf(Arc<AnyOf>),
}

/// The servers that a url of a cluster names.
#[cfg(feature = "redis-cluster")]
#[derive(Debug)]
pub(super) struct AnyOf {
    targets: Vec<Target>,
    turn: std::sync::atomic::AtomicUsize,
    /// Rises when a server that kept something keeps nothing any more.
    replaced: tokio::sync::watch::Sender<u64>,
}

#[cfg(feature = "redis-cluster")]
impl AnyOf {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self { targets, turn: std::sync::atomic::AtomicUsize::new(0), replaced: tokio::sync::watch::Sender::new(0) }
    }

    /// A server was replaced: what it had not passed on is lost, and hints with it.
    pub(super) fn was_replaced(&self) {
        self.replaced.send_modify(|version| *version += 1);
    }
}

impl Source {
    /// Where to connect now. Waits for it no longer than `limit`.
    #[allow(clippy::unused_async, reason = "some wait for an answer; which depends on the features")]
    pub(super) async fn target(&self, limit: Duration) -> Result<Target, RedisError> {
        match self {
            Self::Fixed(target) => {
                let _ = limit;
                Ok((**target).clone())
            }
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.master(limit).await,
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(targets) => {
                let turn = targets.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let target = targets.targets.get(turn % targets.targets.len().max(1));
                target.cloned().ok_or_else(|| RedisError::from(std::io::Error::other("no server is named")))
            }
        }
    }

    /// Changes when connections that stand lead to the wrong server by now, and when a server of a cluster was replaced by one
    /// that may know less: the wake-ups are then subscribed to anew, and `Resync` is told.
    pub(super) fn version(&self) -> u64 {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.version(),
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(servers) => *servers.replaced.borrow(),
            Self::Fixed(_) => 0,
        }
    }

    /// Ends when [`Self::version`] is another than this.
    pub(super) async fn moved(&self, version: u64) {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.moved(version).await,
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(servers) => {
                // The sender lives as long as this does.
                let _ = servers.replaced.subscribe().wait_for(|now| *now != version).await;
            }
            Self::Fixed(_) => {
                let _ = version;
                std::future::pending::<()>().await;
            }
        }
    }

    /// Something failed that a change of master explains.
    pub(super) fn doubt(&self) {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.ask_again(),
            _ => {}
        }
    }

    /// Whether whoever answers must say that it is the master.
    pub(super) const fn wants_master(&self) -> bool {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(_) => true,
            _ => false,
        }
    }
}
