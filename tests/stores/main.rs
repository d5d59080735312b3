//! Each store on real servers: what only that one can do to it. That all of them keep the contract is shown by the conformance
//! suite; here are lost answers, failovers, full disks, missing rights, servers that stop and come back.

#![allow(missing_docs, reason = "a test says what it expects")]
#![allow(clippy::duplicate_mod, reason = "what is alike for two stores is tried on the bench of each")]

#[cfg(feature = "daemon")]
#[path = "../support/doctor.rs"]
mod patient;
#[path = "../support/rotating.rs"]
mod rotating;
#[path = "../support/round_trips.rs"]
mod round_trips;
#[path = "../support/store_words.rs"]
mod words;

#[cfg(feature = "redis")]
#[path = "../support/lock_words.rs"]
mod lock_words;

mod etcd;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod redlock;
mod sql_server;
mod sqlite;
#[path = "../support/mod.rs"]
mod support;
mod zookeeper;

#[cfg(feature = "etcd")]
use support::etcd_server;
#[cfg(feature = "mysql")]
use support::mariadb_server;
#[cfg(feature = "postgres")]
use support::postgres_server;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use support::redis_group;
#[cfg(feature = "redis")]
use support::redis_server;
#[cfg(feature = "zookeeper")]
use support::zookeeper_server;
use support::{proxy, tls_files};
