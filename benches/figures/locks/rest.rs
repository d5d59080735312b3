//! What those cost who only wait: calls in a second, and the server's time of a beat behind few and behind many.

use std::time::Duration;

use super::{Effort, client, served, until_queued};
use crate::redis_server::RedisServer;
use crate::table::Table;

const MANY: usize = 1_000;
const FEW: usize = 8;
const TTL: Duration = Duration::from_secs(30);
/// So short that few beat often enough to be counted.
const SHORT_TTL: Duration = Duration::from_secs(1);
/// Whole beats of the many.
const WATCHED: Duration = Duration::from_secs(20);
/// Waiters come one by one, as they do: their beats are spread.
const APART: Duration = Duration::from_millis(8);
const CALLS: f64 = 101.0;
const RATIO: f64 = 1.5;

pub(super) async fn measure(effort: Effort, table: &mut Table) {
    let (many, few) = (RedisServer::start(), RedisServer::start());
    wait(&many, MANY, TTL).await;
    wait(&few, FEW, SHORT_TTL).await;
    // The first look after the subscription is that of a newcomer.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for redis in [&many, &few] {
        redis.command(&["CONFIG", "RESETSTAT"]);
    }
    let watched = effort.span(WATCHED);
    tokio::time::sleep(watched).await;
    let [behind_many, behind_few] = [&many, &few].map(|redis| served(redis, &["evalsha"]));
    let rate = behind_many.calls as f64 / watched.as_secs_f64();
    table.at_most("calls in a second of 1,000 waiters at rest, TTL 30 s", CALLS, rate, "");
    let [slow, quick] = [behind_many, behind_few].map(|served| served.micros as f64 / served.calls as f64);
    table.is_so(
        "server time of a beat: 1,000 waiters against 8",
        "≤ 1.5 times",
        format!("{:.2} times: {slow:.0} µs against {quick:.0} µs", slow / quick),
        slow / quick <= RATIO,
    );
}

/// So many wait behind one that holds, until the runtime ends.
async fn wait(redis: &RedisServer, waiters: usize, ttl: Duration) {
    let locks = client(redis, "bench", ttl).await;
    let mutex = locks.mutex("rest").unwrap();
    let held = mutex.lock().await.unwrap();
    for _ in 0..waiters {
        let mutex = mutex.clone();
        tokio::spawn(async move { mutex.lock().await.unwrap().release().await });
        tokio::time::sleep(APART).await;
    }
    until_queued(&locks, "rest", 1 + waiters).await;
    tokio::spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
}
