//! From a release to the next one's `Held`: everybody a client with connections of its own, who asks again at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cronward::clock::Mono;
use cronward::lock::Locks;

use super::{Effort, TTL, client, mono, served};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::Table;

const WAITERS: [usize; 3] = [2, 8, 64];
const HAND_OFFS: usize = 1_000;
const HOLD: Duration = Duration::from_millis(1);
const BOUND: Duration = Duration::from_millis(10);

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    for waiters in WAITERS {
        let name = format!("hand-off-{waiters}");
        let mut clients = Vec::new();
        for number in 0..=waiters {
            clients.push(client(redis, &format!("client-{number}"), TTL).await);
        }
        let track = Track::default();
        let tasks: Vec<_> = clients
            .iter()
            .map(|locks| tokio::spawn(hold_in_turn(locks.clone(), name.clone(), track.clone())))
            .collect();
        // Until each has held once the queue grows.
        track.until(2 * waiters + 20).await;
        redis.command(&["CONFIG", "RESETSTAT"]);
        let first = track.spans().len();
        track.until(first + effort.times(HAND_OFFS)).await;
        let (calls, hints) = (served(redis, &["evalsha"]).calls, served(redis, &["publish"]).calls);
        let spans = track.spans();
        track.over.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
        let count = (spans.len() - first) as f64;
        let sample = Sample::of(spans.into_iter().skip(first));
        let costs = format!("{:.1} calls, {:.1} hints for each", calls as f64 / count, hints as f64 / count);
        let figure = format!("release → next `Held`, {waiters} waiters, p99");
        table.within(&figure, BOUND, sample.p99(), &format!("{}; {costs}", sample.words()));
    }
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

async fn hold_in_turn(locks: Locks, name: String, track: Track) {
    let mutex = locks.mutex(&name).unwrap();
    while !track.over.load(Ordering::Relaxed) {
        let held = mutex.lock().await.unwrap();
        let now = mono();
        if let Some(released) = track.released.lock().unwrap().take() {
            track.spans.lock().unwrap().push(now.since(released));
        }
        tokio::time::sleep(HOLD).await;
        *track.released.lock().unwrap() = Some(mono());
        held.release().await.unwrap();
    }
}
