//! Acquire and release of locks that nobody else wants, farther away and nearer than a server on this machine.

use std::sync::Arc;
use std::time::Duration;

use cronward::lock::Locks;
use cronward::store::{LockStore, StoreOptions};

use super::uncontended::{Cycle, by_hand, cycles, of_ours};
use super::{Effort, TTL, store};
use crate::proxy::{Mode, Proxy};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};

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
            let figure = format!("acquire and release over a line of {} ms each way: {name}", line.as_millis());
            tell(&figure, &cycle, effort, table).await;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("bench.sqlite").display());
    for (name, url) in [("a file of SQLite", file.as_str()), ("the process's own memory", "memory")] {
        let figure = format!("acquire and release, uncontended: one lock in {name}, cronward");
        tell(&figure, &of_ours(&locks(url).await, &THREE[..1]), effort, table).await;
    }
}

async fn tell(figure: &str, cycle: &Cycle, effort: Effort, table: &mut Table) {
    // The first one connects.
    cycle().await;
    let sample = Sample::of(cycles(cycle, effort.times(CYCLES)).await);
    table.told(figure, format!("p50 {}, p99 {}", span(sample.median()), span(sample.p99())));
}

async fn locks(url: &str) -> Locks {
    let store: Arc<dyn LockStore> = store(url, StoreOptions::default()).await;
    Locks::builder(store, "bench").ttl(TTL).build().unwrap()
}
