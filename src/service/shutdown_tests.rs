//! How a guard ends, on virtual time: what it holds is released before the shutdown returns.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, ManualClock, RuntimeClock};
use crate::error::Op;
use crate::service::{Guard, GuardBuilder, GuardError, RunOutcome, ShutdownError, Skipped, Stopped};
use crate::slot::{Outcome, Period, SlotRecord};
use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{Store, StoreOptions};

const GRACE: Duration = Duration::from_secs(20);

type Answer = Result<RunOutcome<u32, io::Error>, GuardError>;

struct Bench {
    store: Arc<MemoryStore>,
    clock: Arc<dyn Clock>,
}

impl Bench {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T12:00:00Z".parse().unwrap()));
        Self { store: Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock))), clock }
    }

    fn builder(&self, node: &str) -> GuardBuilder {
        self.on(self.store.clone(), node)
    }

    fn on(&self, store: Arc<dyn Store>, node: &str) -> GuardBuilder {
        Guard::builder(store, "push", node).clock(Arc::clone(&self.clock))
    }

    async fn record(&self, guard: &Guard) -> SlotRecord {
        self.store.inspect(&[guard.current_slot().unwrap()]).await.unwrap().1.remove(0)
    }

    async fn outcome(&self, guard: &Guard) -> Option<Outcome> {
        self.record(guard).await.runs.last().unwrap().outcome
    }
}

/// Answers one operation only after it was let; the others at once.
#[derive(Clone, Debug)]
struct Slow(Op, Arc<Notify>);

#[async_trait::async_trait]
impl Layer for Slow {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        if op == self.0 {
            self.1.notified().await;
        }
        call().await
    }
}

/// Runs a work until it has begun, and drops the run then.
async fn begin_and_drop(guard: &Guard) {
    let begun = Notify::new();
    let run = guard.run_current(|_| {
        begun.notify_one();
        std::future::pending::<Result<u32, io::Error>>()
    });
    tokio::select! {
        _ = run => panic!("it never ends"),
        () = begun.notified() => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_asks_the_work_to_end_and_what_it_leaves_undone_is_given_back() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let begun = Notify::new();
    let run = guard.run_current(|hold| {
        begun.notify_one();
        async move {
            hold.cancelled().await;
            Err::<u32, _>(io::Error::other("interrupted"))
        }
    });
    let end = async {
        begun.notified().await;
        guard.shutdown(GRACE).await
    };
    let (outcome, ended) = tokio::join!(run, end);
    assert_eq!(ended, Ok(()));
    let Ok(RunOutcome::Stopped { why, run }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((why, run.recorded), (Stopped::ShutDown, true));
    let record = bench.record(&guard).await;
    assert_eq!((record.attempts, record.forgiven), (1, 1));
    assert_eq!(record.runs[0].outcome, Some(Outcome::GivenBack));
}

#[tokio::test(start_paused = true)]
async fn a_work_that_succeeds_within_the_grace_is_done() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let begun = Notify::new();
    let run = guard.run_current(|hold| {
        begun.notify_one();
        async move {
            hold.cancelled().await;
            tokio::time::advance(GRACE / 2).await;
            Ok::<_, io::Error>(7)
        }
    });
    let end = async {
        begun.notified().await;
        guard.shutdown(GRACE).await
    };
    let (outcome, ended) = tokio::join!(run, end);
    assert_eq!((outcome.unwrap().value(), ended), (Some(7), Ok(())));
    assert_eq!(bench.outcome(&guard).await, Some(Outcome::Success));
}

#[tokio::test(start_paused = true)]
async fn a_work_that_outlasts_the_grace_is_dropped_and_given_back() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let begun = Notify::new();
    let run = guard.run_current(|_| {
        begun.notify_one();
        std::future::pending::<Result<u32, io::Error>>()
    });
    let end = async {
        begun.notified().await;
        let from = bench.clock.now().mono;
        let ended = guard.shutdown(GRACE).await;
        (ended, bench.clock.now().mono.since(from) >= GRACE)
    };
    let (outcome, ended) = tokio::join!(run, end);
    assert_eq!(ended, (Ok(()), true));
    assert!(matches!(outcome, Ok(RunOutcome::Stopped { why: Stopped::ShutDown, .. })), "{outcome:?}");
    assert_eq!(bench.outcome(&guard).await, Some(Outcome::GivenBack));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_dropped_before_is_given_back_by_the_time_the_shutdown_returns() {
    let (bench, confirmed) = (Bench::new(), Arc::new(Notify::new()));
    let store = Arc::new(Layered::new(bench.store.clone(), Slow(Op::GiveBack, Arc::clone(&confirmed))));
    let guard = bench.on(store, "a").build().unwrap();
    begin_and_drop(&guard).await;
    let end = guard.shutdown(GRACE);
    tokio::pin!(end);
    tokio::select! {
        biased;
        ended = &mut end => panic!("the store has not answered: {ended:?}"),
        () = std::future::ready(()) => {}
    }
    assert_ne!(bench.outcome(&guard).await, Some(Outcome::GivenBack));
    confirmed.notify_one();
    assert_eq!(end.await, Ok(()));
    assert_eq!(bench.outcome(&guard).await, Some(Outcome::GivenBack));
}

/// The work ends well, but only after its timeout: the attempt failed, and a retry is waited for.
#[tokio::test(start_paused = true)]
async fn a_guard_that_waits_for_the_retry_of_a_work_that_timed_out_leaves_at_once() {
    let bench = Bench::new();
    let guard =
        bench.builder("a").timeout(Duration::from_secs(1)).retry_delay(Duration::from_secs(600)).build().unwrap();
    let seen = guard.run_current(|hold| async move {
        hold.cancelled().await;
        Ok::<u32, io::Error>(1)
    });
    let end = async {
        for _ in 0..50 {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        guard.shutdown(GRACE).await
    };
    let (answer, ended): (Answer, _) = tokio::join!(seen, end);
    assert_eq!(ended, Ok(()));
    assert!(matches!(answer, Ok(RunOutcome::Stopped { why: Stopped::Timeout, .. })), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_confirm_the_release_is_reported() {
    let bench = Bench::new();
    let store = Arc::new(Layered::new(bench.store.clone(), Slow(Op::GiveBack, Arc::default())));
    let guard = bench.on(store, "a").build().unwrap();
    begin_and_drop(&guard).await;
    assert_eq!(guard.shutdown(GRACE).await, Err(ShutdownError { left: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_shut_down_starts_nothing_and_one_that_waits_leaves() {
    let bench = Bench::new();
    let (a, b) = (bench.builder("a").build().unwrap(), bench.builder("b").wait(Duration::MAX).build().unwrap());
    let seen = a.run_current(|_| async {
        let waits = b.run_current(|_| async { Ok::<u32, io::Error>(0) });
        let end = async {
            // It stands there, and has asked.
            tokio::time::advance(Duration::from_secs(1)).await;
            b.shutdown(GRACE).await
        };
        let (waited, ended) = tokio::join!(waits, end);
        assert_eq!(ended, Ok(()));
        assert!(matches!(waited, Ok(RunOutcome::Skipped(Skipped::Held { .. }))), "{waited:?}");
        Ok::<u32, io::Error>(1)
    });
    assert!(seen.await.unwrap().is_done());
    let answer: Answer = b.run_current(|_| async { Ok(0) }).await;
    assert!(matches!(answer, Err(GuardError::ShutDown { .. })), "{answer:?}");
}

/// Answers a claim only once the slot is over: this machine stood still, or the store was slow.
#[derive(Clone, Debug)]
struct Late(Arc<ManualClock>);

#[async_trait::async_trait]
impl Layer for Late {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let reply = call().await;
        if op == Op::Claim {
            self.0.advance(Duration::from_secs(1));
        }
        reply
    }
}

#[tokio::test]
async fn a_grant_that_is_learnt_of_after_the_slots_end_is_too_late_in_a_runtime_that_lives() {
    let clock = Arc::new(ManualClock::at("2026-11-21T12:00:09.500Z".parse().unwrap()));
    let memory = Arc::new(MemoryStore::new(StoreOptions::default(), clock.clone()));
    let store = Arc::new(Layered::new(memory.clone(), Late(clock.clone())));
    let period = Period::Fixed(Duration::from_secs(10));
    let guard = Guard::builder(store, "push", "a").period(period).clock(clock).try_once().build().unwrap();
    let slot = guard.current_slot().unwrap();
    let answer: Answer = guard.run(slot.clone(), |_| async { Ok(0) }).await;
    assert!(matches!(answer, Ok(RunOutcome::Skipped(Skipped::TooLate))), "{answer:?}");
    let record = memory.inspect(&[slot]).await.unwrap().1.remove(0);
    assert_eq!((record.attempts, record.forgiven), (1, 1), "given back");
}
