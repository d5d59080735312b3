//! The store in one Redis server (5 or later; users and TLS since 6).
//!
//! - Each operation is one Lua script in `lua/`, one file each, run by hash; nobody else's clock judges but the server's.
//! - `link` is the one connection that all calls share; `wake` the other one, which listens.
//! - `decode` and `records` read answers and are total; `fault` is the table of errors.
//!
//! What it can lose is in docs/stores.md: a Redis that restarts without its data, evicts keys or fails over forgets
//! leases and done markers. The guard then repeats work rather than miss it, and says so.

mod adapter;
mod decode;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod keys;
mod link;
mod records;
mod script;
mod store;
mod target;
mod wake;

pub use store::RedisStore;
