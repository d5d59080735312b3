//! How grants are spread over 64 clients of which each asks again at once, beside clients that poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cronward::lock::Locks;

use super::uncontended::{leave, release_by_hand, take};
use super::{Effort, TTL, client};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};
use crate::work;

const CLIENTS: usize = 64;
const WATCHED: Duration = Duration::from_secs(8);
const HOLD: Duration = Duration::from_millis(1);
/// How often who polls looks.
const POLL: Duration = Duration::from_millis(50);
const BOUND: f64 = 0.99;

/// How long each wait of one client was.
type Waits = Vec<Duration>;

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    let watched = effort.span(WATCHED);
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for number in 0..CLIENTS {
        let locks = client(redis, &format!("client-{number}"), TTL).await;
        tasks.push(tokio::spawn(in_turn(locks, Arc::clone(&over))));
    }
    let told = told(&grants(tasks, &over, watched).await, watched);
    let figure = "Jain index of grants, 64 clients that ask again at once";
    table.is_so(figure, "≥ 0.99", told.words, told.jain >= BOUND);

    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for number in 0..CLIENTS {
        tasks.push(tokio::spawn(by_polling(redis.url(), number, Arc::clone(&over))));
    }
    let polled = self::told(&grants(tasks, &over, watched).await, watched);
    table.told("the same by hand, SET NX each 50 ms", polled.words);
    table.told("grants in a second against by hand, 64 clients", format!("{:.2} of it", told.rate / polled.rate));
}

async fn grants(tasks: Vec<tokio::task::JoinHandle<Waits>>, over: &AtomicBool, watched: Duration) -> Vec<Waits> {
    tokio::time::sleep(watched).await;
    over.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    all
}

async fn in_turn(locks: Locks, over: Arc<AtomicBool>) -> Waits {
    let (mutex, mut waits) = (locks.mutex("fairness").unwrap(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let (wait, held) = work::timed(mutex.lock()).await;
        let held = held.unwrap();
        waits.push(wait);
        tokio::time::sleep(HOLD).await;
        held.release().await.unwrap();
    }
    waits
}

async fn by_polling(url: String, number: usize, over: Arc<AtomicBool>) -> Waits {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let (release, token, mut waits) = (release_by_hand(), number.to_string(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let (wait, held) = work::timed(async {
            while !take(&mut connection, "fairness", &token).await {
                if over.load(Ordering::Relaxed) {
                    return false;
                }
                tokio::time::sleep(POLL).await;
            }
            true
        })
        .await;
        if held {
            waits.push(wait);
            tokio::time::sleep(HOLD).await;
            leave(&mut connection, &release, "fairness", &token).await;
        }
    }
    waits
}

struct Told {
    jain: f64,
    rate: f64,
    words: String,
}

fn told(all: &[Waits], watched: Duration) -> Told {
    let counts: Vec<f64> = all.iter().map(|waits| waits.len() as f64).collect();
    let (sum, squares) = (counts.iter().sum::<f64>(), counts.iter().map(|count| count * count).sum::<f64>());
    let jain = sum * sum / (counts.len() as f64 * squares);
    let rate = sum / watched.as_secs_f64();
    let sample = Sample::of(all.iter().flatten().copied());
    let most = sample.percentile(100);
    let (least, best) =
        counts.iter().fold((f64::MAX, 0.0_f64), |(low, high), count| (low.min(*count), high.max(*count)));
    let words = format!(
        "{jain:.4}: {least:.0} to {best:.0} grants each, {rate:.0} in a second; wait p50 {}, longest {}",
        span(sample.median()),
        span(most)
    );
    Told { jain, rate, words }
}
