//! Each store on real servers: what only that one can do to it. That all of them keep the contract is shown by the conformance
//! suite; here are lost answers, failovers, full disks, missing rights, servers that stop and come back.

#![allow(missing_docs, reason = "a test says what it expects")]
#![allow(clippy::duplicate_mod, reason = "what is alike for two stores is tried on the bench of each")]

#[path = "../support/etcd_server.rs"]
mod etcd_server;
#[path = "../support/mariadb_server.rs"]
mod mariadb_server;
#[cfg(feature = "daemon")]
#[path = "../support/doctor.rs"]
mod patient;
#[path = "../support/postgres_server.rs"]
mod postgres_server;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/redis_group.rs"]
mod redis_group;
#[path = "../support/redis_server.rs"]
mod redis_server;
#[path = "../support/rotating.rs"]
mod rotating;
#[path = "../support/round_trips.rs"]
mod round_trips;
#[path = "../support/tls_files.rs"]
mod tls_files;
#[path = "../support/store_words.rs"]
mod words;
#[path = "../support/zookeeper_server.rs"]
mod zookeeper_server;

mod etcd;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod redlock;
mod sql_server;
mod sqlite;
mod zookeeper;
