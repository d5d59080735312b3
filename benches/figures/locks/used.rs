//! What stays of locks that were used once: the server's memory, before and after the retention.

use std::time::Duration;

use cronward::lock::Locks;
use cronward::store::StoreOptions;

use super::{mono, store};
use crate::redis_server::RedisServer;
use crate::table::Table;

const LOCKS: usize = 10_000;
const TTL: Duration = Duration::from_secs(2);
/// Longer than they take.
const RETENTION: Duration = Duration::from_secs(20);
/// What the server itself needs now and then, such as its buffers.
const KEPT_MIB: f64 = 0.5;

pub(super) async fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    let options = StoreOptions::default().with_retention(RETENTION);
    let locks = Locks::builder(store(&redis.url(), options).await, "bench").ttl(TTL).build().unwrap();
    // The scripts and the connection are there.
    locks.mutex("first").unwrap().lock().await.unwrap().release().await.unwrap();
    let before = memory(&redis);
    for number in 0..LOCKS {
        locks.mutex(&format!("lock-{number}")).unwrap().lock().await.unwrap().release().await.unwrap();
    }
    let (used, after) = (memory(&redis) - before, mono());
    tokio::time::sleep(RETENTION + TTL + Duration::from_secs(2)).await;
    // Somebody uses one lock, as goes on in a cluster: what is over goes by that.
    while memory(&redis) - before > KEPT_MIB && mono().since(after) < RETENTION * 3 {
        locks.mutex("first").unwrap().lock().await.unwrap().release().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let kept = (memory(&redis) - before).max(0.0);
    table.at_most("memory of Redis for 10,000 locks that were used once, after the retention", KEPT_MIB, kept, "MiB");
    table.told("the same before the retention is over", format!("{used:.1} MiB"));
}

/// In MiB.
fn memory(redis: &RedisServer) -> f64 {
    let info = redis.text(&["INFO", "memory"]).unwrap_or_default();
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|bytes| bytes.trim().parse::<f64>().ok()).expect("used_memory") / (1024.0 * 1024.0)
}
