//! The stores under chaos: one file each, its name in [`names`], and one line in [`ALL`].

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "mysql")]
mod mariadb;
#[allow(dead_code, reason = "without a store's feature nobody asks for its name")]
pub(in crate::chaos) mod names;
#[cfg(feature = "postgres")]
mod postgres;
pub(in crate::chaos) mod redis;
#[cfg(feature = "redis-cluster")]
mod redis_cluster;
#[cfg(feature = "redis-sentinel")]
mod redis_sentinel;
#[cfg(feature = "redis-redlock")]
mod redlock;
pub(in crate::chaos) mod sqlite;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use tokio::runtime::Runtime;

use super::backend::{Backend, Bears};

/// A store that can be struck.
pub(super) struct Store {
    /// Also the name of its file of figures.
    pub(super) name: &'static str,
    pub(super) bears: Bears,
    /// Starts it for so many nodes.
    pub(super) start: fn(usize) -> Box<dyn Backend>,
}

/// Every store that is a server, but for a single Redis, which has trials of its own.
pub(super) static ALL: &[Store] = &[
    #[cfg(feature = "redis-sentinel")]
    redis_sentinel::STORE,
    #[cfg(feature = "redis-cluster")]
    redis_cluster::STORE,
    #[cfg(feature = "redis-redlock")]
    redlock::STORE,
    #[cfg(feature = "postgres")]
    postgres::STORE,
    #[cfg(feature = "mysql")]
    mariadb::STORE,
    #[cfg(feature = "etcd")]
    etcd::STORE,
    #[cfg(feature = "zookeeper")]
    zookeeper::STORE,
];

/// For clients that are async, in trials that are not.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
