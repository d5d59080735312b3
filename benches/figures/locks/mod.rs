//! Locks on one Redis server: what they cost without contention beside other clients, how they are handed on, how fairly, and what
//! waiting and dying cost.

mod crash;
mod distant;
mod fairness;
mod hand_off;
mod other_clients;
mod readers;
mod rest;
mod uncontended;
mod used;

use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, Mono, SystemClock};
use cronward::lock::{LockName, Locks};
use cronward::store::{LockStore, StoreOptions, open_locks};

use crate::block_on;
use crate::redis_server::RedisServer;
use crate::table::Table;

/// Set to anything, everything is measured for ten times as long.
const LONG: &str = "CRONWARD_BENCH_LONG";

const TTL: Duration = Duration::from_secs(30);

/// A machine that does other things as well may stall for longer than the usual time limit: that is to be seen in the figures, not to end them.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn measure(table: &mut Table) {
    let effort = Effort(if std::env::var_os(LONG).is_some() { 10 } else { 1 });
    let redis = RedisServer::start();
    block_on(uncontended::measure(&redis, effort, table));
    block_on(distant::measure(&redis, effort, table));
    block_on(hand_off::measure(&redis, effort, table));
    block_on(fairness::measure(&redis, effort, table));
    block_on(readers::measure(&redis, effort, table));
    crash::measure(&redis, effort, table);
    block_on(rest::measure(effort, table));
    block_on(used::measure(table));
}

/// How much is measured: once, or so many times as much.
#[derive(Clone, Copy)]
struct Effort(u32);

impl Effort {
    const fn times(self, count: usize) -> usize {
        count * self.0 as usize
    }

    fn span(self, span: Duration) -> Duration {
        span * self.0
    }
}

/// A client with a connection of its own, as a process has it.
async fn client(redis: &RedisServer, node: &str, ttl: Duration) -> Locks {
    client_at(&redis.url(), node, ttl).await
}

async fn client_at(url: &str, node: &str, ttl: Duration) -> Locks {
    Locks::builder(store(url, StoreOptions::default()).await, node).ttl(ttl).build().unwrap()
}

async fn store(url: &str, options: StoreOptions) -> Arc<dyn LockStore> {
    open_locks(url, options.with_op_timeout(PATIENCE)).await.unwrap()
}

/// Waits until so many stand in the queue, holders among them.
async fn until_queued(locks: &Locks, name: &str, entries: usize) {
    let name = [LockName::new(name).unwrap()];
    while locks.show(&name).await.unwrap()[0].entries.len() != entries {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn mono() -> Mono {
    SystemClock.now().mono
}

/// Calls of commands, and the server's time in them, since the last reset.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    calls: u64,
    micros: u64,
}

/// What the server has done of these commands. Those that a script calls inside are counted under their own names, too.
fn served(redis: &RedisServer, commands: &[&str]) -> Served {
    let info = redis.text(&["INFO", "commandstats"]).unwrap_or_default();
    let mut all = Served::default();
    for line in info.lines() {
        let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else { continue };
        if commands.contains(&name) {
            let number = |what: &str| -> u64 {
                let field = rest.split(',').find_map(|field| field.strip_prefix(what)?.strip_prefix('='));
                field.and_then(|field| field.trim().parse().ok()).unwrap_or_default()
            };
            all.calls += number("calls");
            all.micros += number("usec");
        }
    }
    all
}
