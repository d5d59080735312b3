//! A service without a daemon: what became of a slot that nobody finished is recorded and reported by the next claim.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::admin::fixture;
use crate::clock::ManualClock;
use crate::event::Event;
use crate::observe::Observer;
use crate::service::{Guard, GuardBuilder};
use crate::slot::{Slot, Verdict};
use crate::store::memory::MemoryStore;
use crate::store::{NodeReport, Store, StoreOptions};

/// Keeps the verdicts that were reported, with the hour of their slot.
#[derive(Clone, Debug, Default)]
struct Verdicts(Arc<Mutex<Vec<(String, Verdict)>>>);

impl Observer for Verdicts {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        if let (Some(slot), Event::Closed { verdict }) = (slot, event) {
            self.0.lock().unwrap().push((slot.key().to_string(), *verdict));
        }
    }
}

struct Bench {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    verdicts: Verdicts,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), clock.clone()));
        Self { clock, store, verdicts: Verdicts::default() }
    }

    fn builder(&self, node: &str) -> GuardBuilder {
        let builder = Guard::builder(self.store.clone(), "push", node).clock(self.clock.clone()).try_once();
        builder.observer(Arc::new(self.verdicts.clone()))
    }

    fn pass(&self, hours: u64) {
        self.clock.advance(Duration::from_secs(3_600 * hours));
    }

    fn reported(&self) -> Vec<(String, Verdict)> {
        std::mem::take(&mut *self.verdicts.0.lock().unwrap())
    }
}

async fn push(guard: &Guard) {
    assert!(guard.run_current(|_| async { Ok::<_, io::Error>(()) }).await.unwrap().is_done());
}

/// A process that is killed in the middle of the work: its lease lapses.
fn die(bench: &Bench) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guard = bench.builder("a").build().unwrap();
    runtime.block_on(async {
        let begun = tokio::sync::Notify::new();
        let run = guard.run_current(|_| {
            begun.notify_one();
            std::future::pending::<Result<(), io::Error>>()
        });
        let run = std::pin::pin!(run);
        tokio::select! {
            _ = run => panic!("it never ends"),
            // The drive is dropped with its runtime, before it has had another turn.
            () = begun.notified() => {}
        }
    });
    drop(runtime);
}

fn hour(key: &str, verdict: Verdict) -> Vec<(String, Verdict)> {
    vec![(key.to_owned(), verdict)]
}

#[test]
fn a_slot_whose_holder_died_is_closed_and_reported_by_the_next_claim() {
    let bench = Bench::new();
    die(&bench);
    bench.pass(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let other = bench.builder("b").build().unwrap();
        push(&other).await;
        assert_eq!(bench.reported(), hour("2026-11-21T14Z", Verdict::Missed));
        bench.pass(1);
        push(&bench.builder("c").build().unwrap()).await;
        assert_eq!(bench.reported(), [], "it was closed before");
    });
}

#[tokio::test]
async fn a_slot_whose_attempts_all_failed_is_closed_once() {
    let bench = Bench::new();
    let guard = bench.builder("a").max_attempts(1).build().unwrap();
    let failed = guard.run_current(|_| async { Err::<(), _>(io::Error::other("no")) }).await.unwrap();
    assert_eq!(failed.last_run().map(|run| run.recorded), Some(true));
    bench.pass(1);
    push(&guard).await;
    assert_eq!(bench.reported(), hour("2026-11-21T14Z", Verdict::Failed));
    bench.pass(1);
    push(&bench.builder("b").build().unwrap()).await;
    assert_eq!(bench.reported(), [], "it was closed before");
}

#[tokio::test]
async fn the_slots_of_a_job_that_daemons_plan_are_left_to_them() {
    let bench = Bench::new();
    bench.store.register(&[fixture::entry("push")]).await.unwrap();
    let heartbeat = async || {
        let job_hashes = BTreeMap::from([("push".parse().unwrap(), "c0ffee".to_owned())]);
        let daemon = NodeReport { job_hashes, ..fixture::report("d", fixture::at("2026-11-21T14:00:00Z")) };
        bench.store.heartbeat(&daemon).await.unwrap();
    };
    let guard = bench.builder("a").max_attempts(1).build().unwrap();
    let failed = guard.run_current(|_| async { Err::<(), _>(io::Error::other("no")) }).await.unwrap();
    assert!(!failed.is_done());
    let slot = guard.current_slot().unwrap();
    bench.pass(1);
    heartbeat().await;
    push(&guard).await;
    assert_eq!(bench.reported(), []);
    assert_eq!(bench.store.inspect(&[slot]).await.unwrap().1.remove(0).verdict, None);
    // The daemon is gone: nobody else closes them.
    bench.pass(1);
    push(&bench.builder("b").max_attempts(1).build().unwrap()).await;
    assert_eq!(bench.reported(), hour("2026-11-21T14Z", Verdict::Failed));
}

#[tokio::test]
async fn a_slot_that_was_done_is_not_missed_when_its_marker_has_expired() {
    let bench = Bench::new();
    push(&bench.builder("a").done_ttl(Duration::from_secs(60)).build().unwrap()).await;
    let slot = bench.builder("a").build().unwrap().current_slot().unwrap();
    bench.pass(3);
    push(&bench.builder("b").build().unwrap()).await;
    assert_eq!(bench.reported(), []);
    let record = bench.store.inspect(&[slot]).await.unwrap().1.remove(0);
    assert_eq!(record.verdict.map(|record| record.verdict), Some(Verdict::Done));
}

#[tokio::test]
async fn with_its_schedule_a_guard_reports_the_slots_that_no_process_ran_since_it_was_called_last() {
    for (schedule, reported) in [(Some("0 * * * *"), 2), (None, 0)] {
        let bench = Bench::new();
        let builder = bench.builder("a");
        let builder = if let Some(schedule) = schedule { builder.schedule(schedule) } else { builder };
        let guard = builder.build().unwrap();
        push(&guard).await;
        bench.pass(3);
        push(&guard).await;
        let missed = bench.reported();
        assert_eq!(missed.len(), reported, "{missed:?}");
        assert!(missed.iter().all(|(_, verdict)| *verdict == Verdict::Missed), "{missed:?}");
    }
}
