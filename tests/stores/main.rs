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

use support::{
    etcd_server, mariadb_server, postgres_server, proxy, redis_group, redis_server, tls_files, zookeeper_server,
};
