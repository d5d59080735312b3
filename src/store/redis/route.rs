//! Whom a call is sent to: one server, or the one of many that keeps its key.

use redis::{Cmd, Value};

#[cfg(feature = "redis-cluster")]
use super::cluster::Cluster;
use super::link::{Link, LinkError};

/// Whom calls are sent to.
#[derive(Debug)]
pub(super) enum Route {
    /// One server at a time.
    One(Box<Link>),
    /// Whoever keeps the key.
    #[cfg(feature = "redis-cluster")]
    Many(Cluster),
}

impl Route {
    /// Sends a command about this key, or about none in particular.
    pub(super) async fn call(&self, key: Option<&str>, command: &Cmd) -> Result<Value, LinkError> {
        match self {
            Self::One(link) => {
                let _ = key;
                link.call(command).await
            }
            #[cfg(feature = "redis-cluster")]
            Self::Many(cluster) => cluster.call(key, command).await,
        }
    }

    /// Looks in the background whether a server was replaced, where no call would tell.
    pub(super) fn look_again(&self) {
        match self {
            Self::One(_) => {}
            #[cfg(feature = "redis-cluster")]
            Self::Many(cluster) => cluster.look_again(),
        }
    }

    /// Whether another server is found by itself when the one that was asked is the master no more.
    pub(super) const fn finds_masters(&self) -> bool {
        match self {
            Self::One(link) => link.finds_masters(),
            #[cfg(feature = "redis-cluster")]
            Self::Many(_) => true,
        }
    }

    /// Whether keys of two jobs may be kept by two servers.
    pub(super) const fn is_shared(&self) -> bool {
        !matches!(self, Self::One(_))
    }
}
