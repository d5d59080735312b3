//! Acquire and release of locks that nobody else wants, beside other ways to do it, on one server and turn by turn.

use std::sync::Arc;
use std::time::Duration;

use cronward::lock::Locks;
use futures_util::future::{BoxFuture, FutureExt};
use redis::aio::MultiplexedConnection;

use super::other_clients::OtherClient;
use super::{Effort, TTL, client, served};
use crate::calls::Monitor;
use crate::redis_server::RedisServer;
use crate::sample::{Sample, median};
use crate::table::{Table, span};
use crate::work;

/// Turns of each.
const ROUNDS: usize = 7;
const CYCLES: usize = 300;
/// Cycles that are counted.
const COUNTED: usize = 100;

const THREE: [&str; 3] = ["one", "two", "three"];

/// What a careful hand writes for the release.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(super) type Cycle = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// How long each of so many took, one after the other.
pub(super) async fn cycles(cycle: &Cycle, count: usize) -> Vec<Duration> {
    let mut spans = Vec::with_capacity(count);
    for _ in 0..count {
        spans.push(work::timed(cycle()).await.0);
    }
    spans
}

/// How a cycle is done.
enum Way {
    Here(Cycle),
    Elsewhere(OtherClient),
    Missing(&'static str),
}

struct Contender {
    name: String,
    way: Way,
    /// What it sends.
    commands: &'static [&'static str],
    spans: Vec<Vec<Duration>>,
}

impl Contender {
    fn new(name: &str, commands: &'static [&'static str], way: Way) -> Self {
        Self { name: name.to_owned(), way, commands, spans: Vec::new() }
    }

    fn elsewhere(
        name: &str,
        commands: &'static [&'static str],
        other: Option<OtherClient>,
        missing: &'static str,
    ) -> Self {
        match other {
            Some(other) => Self::new(&format!("{name} {}", other.version), commands, Way::Elsewhere(other)),
            None => Self::new(name, commands, Way::Missing(missing)),
        }
    }

    async fn cycles(&mut self, count: usize) -> Vec<Duration> {
        match &mut self.way {
            Way::Here(cycle) => cycles(cycle, count).await,
            Way::Elsewhere(other) => other.cycles(count),
            Way::Missing(_) => Vec::new(),
        }
    }

    fn medians(&self) -> impl Iterator<Item = f64> {
        self.spans.iter().map(|spans| Sample::of(spans.iter().copied()).median().as_secs_f64())
    }
}

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    let mut contenders = contenders(redis).await;
    // The first ones connect, and teach the server the scripts.
    for contender in &mut contenders {
        drop(contender.cycles(20).await);
    }
    for _ in 0..ROUNDS {
        for contender in &mut contenders {
            let spans = contender.cycles(effort.times(CYCLES)).await;
            contender.spans.push(spans);
        }
    }
    let ours: [Vec<f64>; 2] = [contenders[0].medians().collect(), contenders[1].medians().collect()];
    for (index, contender) in contenders.iter_mut().enumerate() {
        let figure = format!("acquire and release, uncontended: {}", contender.name);
        if let Way::Missing(what) = contender.way {
            table.told(&figure, format!("not measured: {what}"));
            continue;
        }
        let sample = Sample::of(contender.spans.iter().flatten().copied());
        let (calls, micros) = counted(redis, contender).await;
        let times = format!("p50 {}, p99 {}", span(sample.median()), span(sample.p99()));
        let costs = format!("{calls:.1} calls, {micros:.0} µs of the server");
        if index < ours.len() {
            table.is_so(&figure, "≤ 2 calls", format!("{times}; {costs}"), calls <= 2.05);
            continue;
        }
        let ours = &ours[usize::from(contender.name.starts_with("three"))];
        let ratio = median(ours.iter().zip(contender.medians()).map(|(ours, theirs)| ours / theirs));
        table.told(&figure, format!("{times}; {costs}; cronward takes {ratio:.2} times as long"));
    }
}

/// What one cycle sends, and the server's time in it.
async fn counted(redis: &RedisServer, contender: &mut Contender) -> (f64, f64) {
    redis.command(&["CONFIG", "RESETSTAT"]);
    let monitor = Monitor::start(redis.port());
    drop(contender.cycles(COUNTED).await);
    let calls = monitor.stop();
    let _ = redis.command(&["CONFIG", "RESETSTAT"]);
    // A server that is monitored takes longer for each command.
    drop(contender.cycles(COUNTED).await);
    let served = served(redis, contender.commands);
    (calls as f64 / COUNTED as f64, served.micros as f64 / COUNTED as f64)
}

async fn contenders(redis: &RedisServer) -> Vec<Contender> {
    let port = redis.port();
    let (script, both): (&[&str], &[&str]) = (&["eval", "evalsha"], &["set", "eval", "evalsha"]);
    let no_python = "no Python with redis-py";
    let no_node = "no Node.js with redlock and ioredis";
    let ours = client(redis, "bench", TTL).await;
    vec![
        Contender::new("one lock, cronward", script, Way::Here(of_ours(&ours, &THREE[..1]))),
        Contender::new("three locks in one request, cronward", script, Way::Here(of_ours(&ours, &THREE))),
        Contender::new("one lock, by hand", both, Way::Here(by_hand(&redis.url(), &THREE[..1]).await)),
        Contender::new(
            "three locks one after the other, by hand",
            both,
            Way::Here(by_hand(&redis.url(), &THREE).await),
        ),
        Contender::new("one lock, rslock", both, Way::Here(by_library(redis))),
        Contender::elsewhere("one lock, redis-py", both, OtherClient::redis_py(port), no_python),
        Contender::elsewhere("one lock, node-redlock", script, OtherClient::node_redlock(port, &["a"]), no_node),
        Contender::elsewhere(
            "three locks in one call, node-redlock",
            script,
            OtherClient::node_redlock(port, &["a", "b", "c"]),
            no_node,
        ),
    ]
}

/// A place in each queue, a lease that is renewed by a task, a fence; released with its answer.
pub(super) fn of_ours(locks: &Locks, names: &'static [&'static str]) -> Cycle {
    let locks = locks.clone();
    Arc::new(move || {
        let locks = locks.clone();
        async move {
            let request = names.iter().try_fold(locks.request(), |request, name| request.exclusive(name));
            request.unwrap().lock().await.unwrap().release().await.unwrap();
        }
        .boxed()
    })
}

/// SET NX PX, and a script that checks the owner and deletes: two calls for each lock. No queue, no renewal, no fence.
pub(super) async fn by_hand(url: &str, names: &'static [&'static str]) -> Cycle {
    let client = redis::Client::open(url).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let release = Arc::new(redis::Script::new(RELEASE));
    Arc::new(move || {
        let (mut connection, release) = (connection.clone(), Arc::clone(&release));
        async move {
            for name in names {
                assert!(take(&mut connection, name, "token").await, "{name} is taken");
            }
            for name in names {
                leave(&mut connection, &release, name, "token").await;
            }
        }
        .boxed()
    })
}

/// Whether it was free.
pub(super) async fn take(connection: &mut MultiplexedConnection, name: &str, token: &str) -> bool {
    let mut set = redis::cmd("SET");
    set.arg(format!("hand:{name}")).arg(token).arg("NX").arg("PX").arg(TTL.as_secs() * 1_000);
    set.query_async::<Option<String>>(connection).await.unwrap().is_some()
}

pub(super) async fn leave(connection: &mut MultiplexedConnection, release: &redis::Script, name: &str, token: &str) {
    let mut invocation = release.prepare_invoke();
    invocation.key(format!("hand:{name}")).arg(token);
    assert_eq!(invocation.invoke_async::<i64>(connection).await.unwrap(), 1, "{name} was lost");
}

/// The release of [`by_hand`].
pub(super) fn release_by_hand() -> redis::Script {
    redis::Script::new(RELEASE)
}

/// The crate's lock and unlock with one server.
fn by_library(redis: &RedisServer) -> Cycle {
    let manager = rslock::LockManager::new(vec![redis.url()]);
    Arc::new(move || {
        let manager = manager.clone();
        async move {
            let lock = manager.lock(b"rslock:one", TTL).await.unwrap();
            manager.unlock(&lock).await;
        }
        .boxed()
    })
}
