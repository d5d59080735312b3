//! From a release to the next one's `Held`: everybody a client with connections of its own, who asks again at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cronward::clock::Mono;
use cronward::lock::Locks;

use super::{Effort, TTL, client_at, mono, served};
use crate::proxy::{Mode, Proxy};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};

const WAITERS: [usize; 3] = [2, 8, 64];
const HOLD: Duration = Duration::from_millis(1);
/// How long each holds, in milliseconds, and how many hand-offs are looked at.
const HOLDS: [(u64, usize); 3] = [(1, 1_000), (0, 1_000), (10, 300)];
const BOUND: Duration = Duration::from_millis(10);
/// Whoever hears of nothing looks after a third of it.
const SHORT_TTL: Duration = Duration::from_secs(3);
/// One in so many hints is lost.
const LOST: usize = 10;

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    for (hold, count) in HOLDS {
        let hold = Duration::from_millis(hold);
        for waiters in WAITERS {
            let clients = clients(&redis.url(), waiters + 1, TTL).await;
            let name = format!("hand-off-{waiters}-{}", hold.as_millis());
            let (spans, costs) = handed_on(redis, &clients, &name, hold, effort.times(count)).await;
            let sample = Sample::of(spans);
            let figure = format!("release → next `Held`, {waiters} waiters, hold {} ms, p99", hold.as_millis());
            table.within(&figure, BOUND, sample.p99(), &format!("{}; {costs}", sample.words()));
        }
    }
    let proxy = Proxy::before(redis.port()).await;
    let clients = clients(&format!("redis://127.0.0.1:{}", proxy.port()), 9, SHORT_TTL).await;
    // Only of a message to who listens: what a script answers names no channel.
    proxy.set(Mode::LoseSome("wake", LOST));
    let (spans, _) = handed_on(redis, &clients, "hand-off-lost", HOLD, effort.times(300)).await;
    let sample = Sample::of(spans);
    table.told(
        "release → next `Held`, 8 waiters, TTL 3 s, a tenth of the hints is lost",
        format!("{}, p99 {}", sample.words(), span(sample.p99())),
    );
}

async fn clients(url: &str, count: usize, ttl: Duration) -> Vec<Locks> {
    let mut clients = Vec::new();
    for number in 0..count {
        clients.push(client_at(url, &format!("client-{number}"), ttl).await);
    }
    clients
}

/// How long each of so many hand-offs took, and what one cost.
async fn handed_on(
    redis: &RedisServer,
    clients: &[Locks],
    name: &str,
    hold: Duration,
    count: usize,
) -> (Vec<Duration>, String) {
    let track = Track::default();
    let tasks: Vec<_> = clients
        .iter()
        .map(|locks| tokio::spawn(hold_in_turn(locks.clone(), name.to_owned(), hold, track.clone())))
        .collect();
    // Until each has held once the queue grows.
    track.until(2 * clients.len() + 18).await;
    redis.command(&["CONFIG", "RESETSTAT"]);
    let first = track.spans().len();
    track.until(first + count).await;
    let (calls, hints) = (served(redis, &["evalsha"]).calls, served(redis, &["publish"]).calls);
    let spans = track.spans().split_off(first);
    track.over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let number = spans.len() as f64;
    let costs = format!("{:.1} calls, {:.1} hints for each", calls as f64 / number, hints as f64 / number);
    (spans, costs)
}

/// When it was released last, and how long each hand-off took.
#[derive(Clone, Default)]
struct Track {
    released: Arc<Mutex<Option<Mono>>>,
    spans: Arc<Mutex<Vec<Duration>>>,
    over: Arc<AtomicBool>,
}

impl Track {
    fn spans(&self) -> Vec<Duration> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until(&self, count: usize) {
        while self.spans().len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn hold_in_turn(locks: Locks, name: String, hold: Duration, track: Track) {
    let mutex = locks.mutex(&name).unwrap();
    while !track.over.load(Ordering::Relaxed) {
        let held = mutex.lock().await.unwrap();
        let now = mono();
        if let Some(released) = track.released.lock().unwrap().take() {
            track.spans.lock().unwrap().push(now.since(released));
        }
        if !hold.is_zero() {
            tokio::time::sleep(hold).await;
        }
        *track.released.lock().unwrap() = Some(mono());
        held.release().await.unwrap();
    }
}
