//! Acquire and release of locks that nobody else wants, farther away and nearer than a server on this machine.

use std::sync::Arc;
use std::time::Duration;

use cronward::lock::Locks;
use cronward::store::{LockStore, StoreOptions};

use super::uncontended::{by_hand, of_ours};
use super::{Effort, TTL, store};
use crate::proxy::{Mode, Proxy};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};
use crate::work;

const THREE: [&str; 3] = ["one", "two", "three"];
const CYCLES: usize = 100;
/// A line between two places of a region, and one between regions: so late each way.
const LINES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    for line in LINES {
        let proxy = Proxy::before(redis.port()).await;
        proxy.set_new(Mode::Delay(line));
        let url = format!("redis://127.0.0.1:{}", proxy.port());
        let ways = [
            ("one lock, cronward", of_ours(&locks(&url).await, &THREE[..1])),
            ("one lock, by hand", by_hand(&url, &THREE[..1]).await),
            ("three locks in one request, cronward", of_ours(&locks(&url).await, &THREE)),
            ("three locks one after the other, by hand", by_hand(&url, &THREE).await),
        ];
        for (name, cycle) in ways {
            cycle().await;
            let mut spans = Vec::new();
            for _ in 0..effort.times(CYCLES) {
                spans.push(work::timed(cycle()).await.0);
            }
            let sample = Sample::of(spans);
            let figure = format!("acquire and release over a line of {} ms each way: {name}", line.as_millis());
            table.told(&figure, format!("p50 {}, p99 {}", span(sample.median()), span(sample.p99())));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("bench.sqlite").display());
    for (name, url) in [("a file of SQLite", file.as_str()), ("the process's own memory", "memory")] {
        let cycle = of_ours(&locks(url).await, &THREE[..1]);
        cycle().await;
        let mut spans = Vec::new();
        for _ in 0..effort.times(CYCLES) {
            spans.push(work::timed(cycle()).await.0);
        }
        let sample = Sample::of(spans);
        let figure = format!("acquire and release, uncontended: one lock in {name}, cronward");
        table.told(&figure, format!("p50 {}, p99 {}", span(sample.median()), span(sample.p99())));
    }
}

async fn locks(url: &str) -> Locks {
    let store: Arc<dyn LockStore> = store(url, StoreOptions::default()).await;
    Locks::builder(store, "bench").ttl(TTL).build().unwrap()
}
