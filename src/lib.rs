//! A guard for cron jobs on a cluster: of all the nodes that run the same schedule, one does each slot's work.
//!
//! For each slot of a job (the hour, by default) one node claims the slot in a shared store, runs the job, and marks the
//! slot done. If the run fails or its node dies, another node tries again within the same slot, at most `max_attempts`
//! times in all. A repeat, an overlap or a miss is never silent.
//!
//! **What it is not.** Not exactly-once: a lease cannot stop a paused process, so two runs can overlap; the fence number
//! lets the resource refuse the older one. Not a workflow engine: no dependencies between jobs, no queues.
//!
//! - [`protocol`] is the contract in words; [`store::Store`] is its half for stores, [`guard::SlotMachine`] its half for
//!   nodes.
//! - [`slot`] and [`job`] have the words, [`event`] those for what happens; [`schedule`] turns cron expressions into ticks and slots.
//! - [`store::open()`] opens a store by its url.
//!
//! With `default-features = false` this library has no store client, no file format and no command line; each store is
//! a feature: `redis` (and `redis-sentinel`, `redis-cluster`, `redis-redlock`), `sqlite`, `postgres`, `mysql`, `etcd`, `zookeeper`.

#[cfg(feature = "daemon")]
pub mod cli;
pub mod clock;
#[cfg(feature = "daemon")]
pub mod config;
pub mod drive;
pub mod error;
pub mod event;
#[cfg(feature = "daemon")]
pub mod exec;
#[cfg(feature = "daemon")]
mod file;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod guard;
pub mod job;
pub mod node;
pub mod observe;
pub mod reply;
pub mod schedule;
pub mod service;
pub mod slot;
pub mod store;
mod text;
pub mod verify;
pub mod wake;

#[doc = include_str!("../docs/PROTOCOL.md")]
pub mod protocol {}
