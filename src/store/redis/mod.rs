//! The store in Redis (5 or later; users and TLS since 6): one server, the master that sentinels name, a cluster, or a
//! majority of masters that know nothing of each other (`redlock`).
//!
//! - Each operation is one Lua script, put together from the files in `lua/`, run by hash; nobody else's clock judges but the server's.
//! - `link` is the one connection to a server that all calls share; `wake` the other one, which listens; where they
//!   lead is asked of `sentinel` where that may change.
//! - `dial` makes a connection, and `tls` an encrypted one.
//! - `route` sends a call to the server that keeps its key: there is only one, or `cluster` knows.
//! - `decode` and `records` read answers and are total; `fault` is the table of errors.
//!
//! What it can lose is in docs/stores.md: a Redis that restarts without its data, evicts keys or fails over forgets
//! leases and done markers. The guard then repeats work rather than miss it, and says so.

mod adapter;
mod backend;
mod changes;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod decode;
mod dial;
mod examine;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod keys;
mod link;
mod locks;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster", feature = "redis-redlock"))]
mod members;
mod messages;
mod processes;
mod records;
#[cfg(feature = "redis-redlock")]
mod redlock;
mod remote;
#[cfg(feature = "redis-sentinel")]
mod replicas;
mod route;
mod script;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod store;
mod subscription;
mod target;
mod tls;
mod wake;

#[cfg(feature = "redis-cluster")]
pub(super) use backend::CLUSTER;
pub(super) use backend::ONE_SERVER;
#[cfg(feature = "redis-redlock")]
pub(super) use backend::RedlockBackend;
#[cfg(feature = "redis-sentinel")]
pub(super) use backend::SENTINEL;
#[cfg(feature = "redis-redlock")]
pub use redlock::RedlockStore;
pub use store::RedisStore;
