//! A guarded cycle against the same by hand and against a lock library, on one server, turn by turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cronward::store::Store;
use futures_util::future::{BoxFuture, FutureExt};
use redis::aio::MultiplexedConnection;

use crate::redis_server::RedisServer;
use crate::sample::median;
use crate::table::Table;
use crate::{block_on, work};

/// Rounds of each, in turn: what else the machine does then falls on all of them.
const ROUNDS: usize = 7;
/// How many cycles at once, and how many in one round.
const SHAPES: [(usize, usize); 2] = [(1, 2_000), (64, 10_000)];
const LEASE: Duration = Duration::from_secs(60);
const DONE: Duration = Duration::from_secs(2 * 3_600);

/// The check of the owner that a careful hand writes.
const EXTEND: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

type Cycle = Arc<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    block_on(compare(&redis, table));
}

async fn compare(redis: &RedisServer, table: &mut Table) {
    let ways = [guarded(redis).await, by_hand(redis).await, by_library(redis)];
    for (at_once, cycles) in SHAPES {
        let mut rates: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (way, rates) in ways.iter().zip(&mut rates) {
                redis.command(&["FLUSHALL", "SYNC"]);
                rates.push(rate(way, at_once, cycles).await);
            }
        }
        let ratio = |other: usize| median(rates[0].iter().zip(&rates[other]).map(|(ours, theirs)| ours / theirs));
        let shown = rates.each_ref().map(|rates| format!("{:.0}", median(rates.iter().copied())));
        let [ours, hand, library] = shown;
        let figure = format!("cycles per second, {at_once} at once");
        table.told(&figure, format!("cronward {ours}, by hand {hand}, rslock {library}"));
        let ratios = format!("{:.2} of by hand, {:.2} of rslock", ratio(1), ratio(2));
        table.told(&format!("cronward's share of the others' rate, {at_once} at once"), ratios);
    }
}

/// Claim and complete, with everything that they record.
async fn guarded(redis: &RedisServer) -> Cycle {
    let store: Arc<dyn Store> = work::open(&redis.url()).await;
    Arc::new(move |number| {
        let store = Arc::clone(&store);
        async move { work::guard(&*store, number).await }.boxed()
    })
}

/// SET NX PX, INCR, and an extension to the long TTL by its owner: three calls. It records nothing else, its counter never
/// expires, and a lost reply burns an attempt.
async fn by_hand(redis: &RedisServer) -> Cycle {
    let client = redis::Client::open(redis.url()).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let extend = Arc::new(redis::Script::new(EXTEND));
    Arc::new(move |number| hand(connection.clone(), Arc::clone(&extend), number).boxed())
}

async fn hand(mut connection: MultiplexedConnection, extend: Arc<redis::Script>, number: usize) {
    let (key, token) = (format!("hand:{{job-{number}}}"), format!("{number:032x}"));
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(&token).arg("NX").arg("PX").arg(LEASE.as_secs() * 1_000);
    let won: Option<String> = set.query_async(&mut connection).await.unwrap();
    assert!(won.is_some(), "{key} is taken");
    let mut incr = redis::cmd("INCR");
    let _: i64 = incr.arg(format!("{key}:attempts")).query_async(&mut connection).await.unwrap();
    let mut invocation = extend.prepare_invoke();
    invocation.key(&key).arg(&token).arg(DONE.as_secs() * 1_000);
    let extended: i64 = invocation.invoke_async(&mut connection).await.unwrap();
    assert_eq!(extended, 1);
}

/// Lock, and extend to the long TTL: two calls. It counts no attempts.
fn by_library(redis: &RedisServer) -> Cycle {
    let manager = rslock::LockManager::new(vec![redis.url()]);
    Arc::new(move |number| {
        let manager = manager.clone();
        async move {
            let key = format!("rslock:{{job-{number}}}");
            let lock = manager.lock(key.as_bytes(), LEASE).await.unwrap();
            manager.extend(&lock, DONE).await.unwrap();
        }
        .boxed()
    })
}

/// Cycles per second with so many under way at any time.
async fn rate(cycle: &Cycle, at_once: usize, cycles: usize) -> f64 {
    // The flush has taken nothing that a cycle needs, but the first one may have to connect.
    cycle(cycles).await;
    let next = Arc::new(AtomicUsize::new(0));
    let (took, ()) = work::timed(async {
        let tasks = (0..at_once).map(|_| {
            let (next, cycle) = (Arc::clone(&next), Arc::clone(cycle));
            tokio::spawn(async move {
                while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < cycles) {
                    cycle(number).await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    })
    .await;
    cycles as f64 / took.as_secs_f64()
}
