//! When the store is read for those who scrape, and when it is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;

use super::*;
use crate::clock::{Clock, RuntimeClock};
use crate::error::{Applied, ErrorKind, Op, StoreError};
use crate::job::{JobSelection, JobSpec, Namespace, NodeName, Program};
use crate::metrics::Setting;
use crate::node::Health;
use crate::observe::Observer;
use crate::slot::{Audit, Slot};
use crate::store::layer::{Call, Layer, Layered};
use crate::store::memory::MemoryStore;
use crate::store::{NodeReport, StoreOptions};

/// Counts the calls, and lets none through while it is down.
#[derive(Debug, Default)]
struct Gauge {
    calls: AtomicU64,
    down: AtomicBool,
}

#[async_trait]
impl Layer for Arc<Gauge> {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.down.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Unavailable, Applied::No, op, location, "down"));
        }
        call().await
    }
}

struct Bench {
    metrics: Arc<Metrics>,
    memory: MemoryStore,
    gauge: Arc<Gauge>,
    clock: Arc<RuntimeClock>,
}

impl Bench {
    /// With the job `push`, and somebody who follows.
    fn start() -> Self {
        let clock = Arc::new(RuntimeClock::at("2026-11-21T14:10:00Z".parse().unwrap()));
        let memory = MemoryStore::new(StoreOptions::default(), Arc::clone(&clock) as Arc<dyn Clock>);
        let setting = Setting {
            namespace: Namespace::default(),
            jobs: JobSelection::All,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            health: watch::channel(Health::default()).1,
            journal: None,
            notifications: None,
        };
        let metrics = Metrics::new(setting);
        let job = JobSpec::new(JobName::new("push").unwrap(), "*/15 * * * *", Program::Direct(Vec::new()));
        metrics.plan(&[Arc::new(job)], "c0ffee");
        let gauge = Arc::<Gauge>::default();
        let store = Layered::new(Arc::new(memory.clone()), Arc::clone(&gauge));
        let following = Arc::clone(&metrics);
        tokio::spawn(async move { following.follow(&store).await });
        Self { metrics, memory, gauge, clock }
    }

    fn scrape(&self) -> String {
        let mut text = String::new();
        self.metrics.write(self.clock.now(), &mut text).unwrap();
        text
    }

    /// The value of a series of the job, or of the node.
    fn value(&self, name: &str) -> Option<String> {
        let text = self.scrape();
        let line = text.lines().find(|line| line.starts_with(&format!("cronward_{name}{{")))?;
        Some(line.rsplit(' ').next().unwrap().to_owned())
    }

    fn calls(&self) -> u64 {
        self.gauge.calls.load(Ordering::Relaxed)
    }

    async fn pass(&self, seconds: u64) {
        timers::until(&*self.clock, Some(self.clock.now().mono + Duration::from_secs(seconds))).await;
    }
}

fn audit() -> Audit {
    let [verb, who, host, why] = [(); 4].map(|()| String::new());
    Audit { verb, who, host, why, at: DateTime::UNIX_EPOCH }
}

fn slot(hour: u32) -> Slot {
    Slot::parse("push", &format!("2026-11-21T{hour:02}Z"), &format!("2026-11-21T{:02}Z", hour + 1)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_store_is_read_only_while_somebody_scrapes_and_never_by_a_scrape() {
    let bench = Bench::start();
    bench.pass(3_600).await;
    assert_eq!(bench.calls(), 0, "nobody has scraped");
    for _ in 0..50 {
        bench.scrape();
    }
    assert_eq!(bench.calls(), 0, "a scrape reads nothing");
    bench.pass(1).await;
    assert_eq!(bench.calls(), 3, "nodes, pauses, latest");
    bench.pass(600).await;
    assert_eq!(bench.calls(), 3 * 7, "each 10 s, for a minute");
}

#[tokio::test(start_paused = true)]
async fn what_the_store_knows_is_told_soon_and_stays_while_the_store_is_away() {
    let bench = Bench::start();
    let node = NodeName::new("a").unwrap();
    bench.memory.close(&slot(12), 3, &node).await.unwrap();
    bench.memory.mark_done(&slot(11), &audit(), Duration::from_secs(7_200)).await.unwrap();
    bench.memory.pause(&JobName::new("push").unwrap(), None, &audit()).await.unwrap();
    bench.memory.heartbeat(&NodeReport::new(node, "i", bench.clock.now().wall)).await.unwrap();
    assert_eq!(bench.value("job_failing_since_timestamp_seconds"), None, "not known yet");
    bench.pass(1).await;
    let told = |name| bench.value(name).unwrap();
    assert_eq!(told("job_failing_since_timestamp_seconds"), slot(12).start().timestamp().to_string());
    assert_eq!(
        told("job_last_success_timestamp_seconds"),
        bench.metrics.started.millis().map_or(0, |at| at / 1_000).to_string()
    );
    assert_eq!(told("job_paused"), "1");
    assert_eq!(told("job_next_tick_timestamp_seconds"), slot(14).start().timestamp().saturating_add(900).to_string());
    assert_eq!(told("nodes"), "1", "one is alive");
    bench.gauge.down.store(true, Ordering::Relaxed);
    for _ in 0..10 {
        bench.pass(60).await;
        bench.scrape();
    }
    bench.pass(11).await;
    assert_eq!(bench.value("nodes"), None);
    assert_eq!(told("job_failing_since_timestamp_seconds"), slot(12).start().timestamp().to_string());
}

#[tokio::test(start_paused = true)]
async fn what_was_read_long_ago_is_not_told() {
    let bench = Bench::start();
    bench.scrape();
    bench.pass(1).await;
    assert_eq!(bench.value("job_failing_since_timestamp_seconds").as_deref(), Some("0"));
    bench.pass(250).await;
    assert_eq!(
        bench.value("job_failing_since_timestamp_seconds").as_deref(),
        Some("0"),
        "scrapes may be minutes apart"
    );
    bench.pass(400).await;
    assert_eq!(bench.value("job_failing_since_timestamp_seconds"), None, "it may have failed since");
}
