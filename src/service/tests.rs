//! A service's guards on the executable specification, with a clock that the test moves.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, ManualClock, Now, SystemClock};
use crate::error::{ErrorKind, Op};
use crate::event::Event;
use crate::job::{Concurrency, OnLost};
use crate::observe::Observer;
use crate::service::{BuildError, Guard, GuardBuilder, GuardError, RunOutcome, Skipped, Standing, Stopped};
use crate::slot::{Audit, Decision, Outcome, Period, Slot, SlotRecord};
use crate::store::layer::{Call, Chaos, ChaosFault, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{JobEntry, JobOrigin, Store, StoreOptions};

type Answer = Result<RunOutcome<u32, io::Error>, GuardError>;

/// A loss is told by a renewal, after a third of it: before it is in doubt, also on a machine that stands still for seconds.
const BRIEF: Duration = Duration::from_secs(6);

/// The machine's clock, so that timers fire; the slot is a day around its start, so that it does not end meanwhile.
#[derive(Debug)]
struct Noon(Now);

impl Clock for Noon {
    fn now(&self) -> Now {
        let passed = SystemClock.now().mono.since(self.0.mono);
        Now { wall: "2026-11-21T12:00:00Z".parse().unwrap(), mono: self.0.mono }.plus(passed)
    }
}

struct Bench {
    store: Arc<MemoryStore>,
    clock: Arc<Noon>,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(Noon(SystemClock.now()));
        Self { store: Arc::new(MemoryStore::new(StoreOptions::default(), clock.clone())), clock }
    }

    fn builder(&self, node: &str) -> GuardBuilder {
        self.on(self.store.clone(), node)
    }

    fn on(&self, store: Arc<dyn Store>, node: &str) -> GuardBuilder {
        Guard::builder(store, "push", node).period(Period::Day).clock(self.clock.clone()).try_once()
    }

    async fn record(&self, slot: &Slot) -> SlotRecord {
        self.store.inspect(std::slice::from_ref(slot)).await.unwrap().1.remove(0)
    }

    async fn unlock(&self, slot: &Slot) {
        let word = || "x".to_owned();
        let at = self.clock.now().wall;
        let audit = Audit { verb: "unlock".to_owned(), who: word(), host: word(), why: word(), at };
        self.store.unlock(slot, &audit).await.unwrap();
    }
}

async fn done(guard: &Guard, slot: &Slot) -> Answer {
    guard.run(slot.clone(), |_| async { Ok(7) }).await
}

fn skipped(answer: Answer) -> Skipped {
    match answer.unwrap() {
        RunOutcome::Skipped(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_of_two_runs_and_the_other_is_told_who_does() {
    let bench = Bench::new();
    let (a, b) = (bench.builder("a").build().unwrap(), bench.builder("b").build().unwrap());
    let slot = a.current_slot().unwrap();
    let seen = a
        .run(slot.clone(), |hold| {
            let (b, slot) = (&b, &slot);
            async move {
                assert_eq!((hold.attempt(), hold.fence(), hold.standing()), (1, slot.fence(1), Standing::Held));
                Ok::<_, io::Error>(skipped(done(b, slot).await))
            }
        })
        .await
        .unwrap();
    let RunOutcome::Done { value, run } = seen else { panic!("{seen:?}") };
    assert_eq!(value, Skipped::Held { by: Some("a".parse().unwrap()) });
    assert_eq!((run.attempt, run.overlapped, run.recorded), (1, false, true));
    assert_eq!(skipped(done(&b, &slot).await), Skipped::Done { by: Some("a".parse().unwrap()) });
    assert_eq!(bench.store.jobs().await.unwrap().len(), 1, "listings know the job");
}

/// Breaks at the first thing that it hears.
#[derive(Debug)]
struct Broken;

impl Observer for Broken {
    fn event(&self, _slot: Option<&Slot>, _event: &Event) {
        panic!("full disk");
    }
}

#[tokio::test]
async fn a_panic_of_the_observer_reaches_the_caller() {
    let bench = Bench::new();
    let guard = bench.builder("a").observer(Arc::new(Broken)).build().unwrap();
    let slot = guard.current_slot().unwrap();
    let ended = tokio::spawn(async move { done(&guard, &slot).await }).await.unwrap_err();
    assert_eq!(ended.into_panic().downcast_ref(), Some(&"full disk"));
}

/// Tells that a claim was answered.
#[derive(Debug, Default)]
struct Heard(Arc<Notify>);

impl Observer for Heard {
    fn event(&self, _slot: Option<&Slot>, event: &Event) {
        if matches!(event, Event::ClaimAnswered { .. }) {
            self.0.notify_one();
        }
    }
}

#[tokio::test]
async fn who_waits_for_a_holder_that_succeeds_is_told_that_it_is_done() {
    let (bench, heard) = (Bench::new(), Arc::new(Notify::new()));
    let a = bench.builder("a").build().unwrap();
    let b = bench.builder("b").wait(Duration::MAX).observer(Arc::new(Heard(Arc::clone(&heard)))).build().unwrap();
    let slot = a.current_slot().unwrap();
    let (begun, its) = (Notify::new(), slot.clone());
    let holder = a.run(slot, |_| async {
        begun.notify_one();
        heard.notified().await;
        Ok::<_, io::Error>(())
    });
    let waiting = async {
        begun.notified().await;
        skipped(done(&b, &its).await)
    };
    let (held, told) = tokio::join!(holder, waiting);
    assert!(held.unwrap().is_done());
    assert_eq!(told, Skipped::Done { by: Some("a".parse().unwrap()) });
}

/// What the registry says of the job, once it knows it.
async fn entry(bench: &Bench) -> JobEntry {
    for _ in 0..100_000 {
        if let Some(entry) = bench.store.jobs().await.unwrap().pop() {
            return entry;
        }
        tokio::task::yield_now().await;
    }
    panic!("the registry never knows the job");
}

#[tokio::test]
async fn listings_know_a_job_while_its_first_work_runs() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let (store, read) = (&bench, guard.current_slot().unwrap());
    let answer = guard.run(read, |_| async move { Ok::<_, io::Error>(entry(store).await) }).await.unwrap();
    let known = answer.value().unwrap();
    assert_eq!((known.origin, known.enabled, known.period.as_str()), (JobOrigin::Service, false, "day"));
}

#[tokio::test]
async fn a_guard_puts_right_what_a_guard_said_and_leaves_what_a_file_says() {
    let bench = Bench::new();
    let guard = |most| bench.builder("a").max_attempts(most).retry_delay(Duration::ZERO).build().unwrap();
    let slot = guard(3).current_slot().unwrap();
    for most in [3, 5] {
        let failed: Answer = guard(most).run(slot.clone(), |_| async { Err(io::Error::other("no")) }).await;
        assert!(matches!(failed, Ok(RunOutcome::Failed { .. })), "{failed:?}");
        assert_eq!(entry(&bench).await.max_attempts, most);
    }
    let of_file = JobEntry { origin: JobOrigin::File, schedule: "7 * * * *".to_owned(), ..entry(&bench).await };
    bench.store.register(std::slice::from_ref(&of_file)).await.unwrap();
    assert!(done(&guard(9), &slot).await.unwrap().is_done());
    assert_eq!(entry(&bench).await, of_file);
}

/// Never answers when asked for the jobs, and tells that it was asked.
#[derive(Clone, Debug, Default)]
struct Mute(Arc<Notify>);

#[async_trait::async_trait]
impl Layer for Mute {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        if op == Op::Jobs {
            self.0.notify_one();
            return std::future::pending().await;
        }
        call().await
    }
}

#[tokio::test]
async fn a_registry_that_never_answers_neither_delays_nor_fails_a_run() {
    let (bench, mute) = (Bench::new(), Mute::default());
    let store = Arc::new(Layered::new(bench.store.clone(), mute.clone()));
    let guard = bench.on(store, "a").build().unwrap();
    let slot = guard.current_slot().unwrap();
    let answer = guard
        .run(slot.clone(), |_| async {
            // It is asked beside the work, not before it.
            mute.0.notified().await;
            Ok::<_, io::Error>(7)
        })
        .await;
    assert_eq!(answer.unwrap().value(), Some(7));
    assert_eq!(bench.store.notes(&slot).await.unwrap().len(), 1, "what was decided is noted all the same");
}

#[tokio::test]
async fn guards_with_other_limits_are_of_another_mind() {
    let bench = Bench::new();
    let slot = bench.builder("a").build().unwrap().current_slot().unwrap();
    for (node, most) in [("a", 3), ("b", 3), ("c", 4)] {
        let _ = done(&bench.builder(node).max_attempts(most).build().unwrap(), &slot).await.unwrap();
    }
    let pages = bench.store.notes(&slot).await.unwrap();
    let of = |node: &str| pages.iter().find(|page| page.node.as_str() == node).unwrap().job_hash.clone().unwrap();
    assert_eq!(of("a"), of("b"));
    assert_ne!(of("a"), of("c"));
}

#[tokio::test]
async fn what_each_caller_was_told_is_noted_for_those_who_ask_why() {
    let bench = Bench::new();
    let (a, b) = (bench.builder("a").build().unwrap(), bench.builder("b").build().unwrap());
    let slot = a.current_slot().unwrap();
    assert!(done(&a, &slot).await.unwrap().is_done());
    assert!(matches!(skipped(done(&b, &slot).await), Skipped::Done { .. }));
    let pages = bench.store.notes(&slot).await.unwrap();
    let of = |node: &str| {
        let page = pages.iter().find(|page| page.node.as_str() == node).unwrap();
        page.notes.iter().map(|note| note.decision.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("a")[..2], [Decision::Asked, Decision::Claimed { attempt: 1 }]);
    assert_eq!(of("b"), [Decision::Asked, Decision::Done { by: Some("a".parse().unwrap()) }]);
}

#[tokio::test]
async fn an_error_of_the_work_is_a_failed_attempt_with_its_words_and_may_be_tried_again() {
    let bench = Bench::new();
    let quick = |wait| bench.builder("a").max_attempts(2).retry_delay(Duration::ZERO).wait(wait).build().unwrap();
    let once = quick(Duration::ZERO);
    let slot = once.current_slot().unwrap();
    let failed: Answer = once.run(slot.clone(), |_| async { Err(io::Error::other("the disk is\nfull")) }).await;
    let RunOutcome::Failed { error, run, then } = failed.unwrap() else { panic!("it failed") };
    assert_eq!((error.to_string().as_str(), run.attempt, then), ("the disk is\nfull", 1, None));
    let record = bench.record(&slot).await;
    assert_eq!(record.runs[0].outcome, Some(Outcome::Failure));
    assert!(!record.runs[0].message.as_ref().unwrap().contains('\n'), "it is shown on one line");

    let waits = quick(Duration::MAX);
    let again: Answer = waits.run(slot.clone(), |_| async { Err(io::Error::other("still")) }).await;
    let RunOutcome::Failed { run, .. } = again.unwrap() else { panic!("it failed") };
    assert_eq!(run.attempt, 2, "the last of the two");
    assert_eq!(skipped(done(&once, &slot).await), Skipped::Exhausted);
}

#[tokio::test]
async fn a_guard_that_waits_calls_the_work_again_until_it_succeeds() {
    let bench = Bench::new();
    let guard = bench.builder("a").retry_delay(Duration::ZERO).wait(Duration::MAX).build().unwrap();
    // Borrowed, and no `Send`: the work runs in this task.
    let calls = Cell::new(0);
    let answer = guard.run(guard.current_slot().unwrap(), |hold| {
        calls.set(calls.get() + 1);
        async move { if hold.attempt() < 3 { Err(io::Error::other("not yet")) } else { Ok(hold.attempt()) } }
    });
    assert_eq!(answer.await.unwrap().value(), Some(3));
    assert_eq!(calls.get(), 3);
}

#[tokio::test]
async fn a_panic_is_recorded_as_a_failure_and_goes_on_in_the_caller() {
    let bench = Bench::new();
    let guard = Arc::new(bench.builder("a").build().unwrap());
    let slot = guard.current_slot().unwrap();
    let (inner, its) = (Arc::clone(&guard), slot.clone());
    let task = tokio::spawn(async move {
        let work = |_| async { if true { panic!("oh") } else { Ok::<u32, io::Error>(1) } };
        let _ = inner.run(its, work).await;
    });
    assert!(task.await.unwrap_err().is_panic());
    let run = bench.record(&slot).await.runs.remove(0);
    assert_eq!((run.outcome, run.message.as_deref()), (Some(Outcome::Failure), Some("the work panicked")));
}

#[tokio::test]
async fn dropping_the_future_drops_the_work_and_gives_the_attempt_back() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let slot = guard.current_slot().unwrap();
    let (up, ended) = (Notify::new(), Arc::new(Notify::new()));
    let mut wakeups = bench.store.subscribe();
    {
        let run = guard.run(slot.clone(), |hold| {
            let token = hold.token();
            let ended = Arc::clone(&ended);
            tokio::spawn(async move {
                token.cancelled().await;
                ended.notify_one();
            });
            up.notify_one();
            std::future::pending::<Result<u32, io::Error>>()
        });
        tokio::select! {
            _ = run => panic!("it never ends"),
            () = up.notified() => {}
        }
    }
    // What it had spawned is told.
    ended.notified().await;
    wakeups.recv().await.unwrap();
    let record = bench.record(&slot).await;
    assert_eq!((record.attempts, record.forgiven), (1, 1));
    assert_eq!(record.runs[0].outcome, Some(Outcome::GivenBack));
    assert!(done(&guard, &slot).await.unwrap().is_done());
}

#[tokio::test]
async fn a_work_that_goes_on_is_told_that_its_lease_is_lost() {
    let bench = Bench::new();
    let guard = bench.builder("a").lease_ttl(BRIEF).build().unwrap();
    let slot = guard.current_slot().unwrap();
    let answer = guard.run(slot.clone(), |hold| {
        let (bench, slot) = (&bench, &slot);
        async move {
            bench.unlock(slot).await;
            assert_eq!(hold.lost().await, Standing::Lost);
            assert!(!hold.is_cancelled());
            Ok::<_, io::Error>(1)
        }
    });
    let RunOutcome::Done { run, .. } = answer.await.unwrap() else { panic!("it went on") };
    assert!(run.overlapped && run.recorded, "{run:?}");
}

#[tokio::test]
async fn with_kill_a_work_is_dropped_when_its_lease_is_lost() {
    let bench = Bench::new();
    let guard = bench.builder("a").lease_ttl(BRIEF).on_lost(OnLost::Kill).build().unwrap();
    let slot = guard.current_slot().unwrap();
    let answer: Answer = guard
        .run(slot.clone(), |_| {
            let (bench, slot) = (&bench, &slot);
            async move {
                bench.unlock(slot).await;
                std::future::pending().await
            }
        })
        .await;
    let RunOutcome::Stopped { why, run } = answer.unwrap() else { panic!("it was stopped") };
    assert_eq!((why, run.overlapped), (Stopped::LeaseLost, true));
}

#[tokio::test]
async fn a_timeout_asks_first_and_what_ends_by_itself_is_stopped_all_the_same() {
    let bench = Bench::new();
    let guard = bench.builder("a").timeout(Duration::from_millis(50)).build().unwrap();
    let answer: Answer = guard
        .run(guard.current_slot().unwrap(), |hold| async move {
            hold.cancelled().await;
            Ok(1)
        })
        .await;
    assert!(matches!(answer, Ok(RunOutcome::Stopped { why: Stopped::Timeout, .. })), "{answer:?}");
}

#[tokio::test]
async fn a_store_that_is_away_starts_nothing_and_is_an_error() {
    let bench = Bench::new();
    let chaos = Chaos::scripted();
    for _ in 0..64 {
        chaos.next(Op::Claim, ChaosFault::LoseRequest);
    }
    let store = Arc::new(chaos.over(bench.store.clone()));
    let builder = bench.on(store, "a").lease_ttl(Duration::from_millis(500));
    let guard = builder.store_wait(Duration::from_millis(50)).build().unwrap();
    let answer = done(&guard, &guard.current_slot().unwrap()).await;
    let Err(GuardError::Store { kind, message, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(kind, ErrorKind::Timeout);
    assert!(message.contains("the request was lost"), "{message}");
}

#[tokio::test]
async fn a_slot_of_another_job_is_refused() {
    let bench = Bench::new();
    let guard = bench.builder("a").build().unwrap();
    let foreign = Slot::parse("pull", "2026-11-21T00Z", "2026-11-22T00Z").unwrap();
    assert!(matches!(done(&guard, &foreign).await, Err(GuardError::Foreign { .. })));
}

#[test]
fn what_cannot_be_used_is_named() {
    let clock = Arc::new(ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), clock));
    let builder = |job: &str| Guard::builder(store.clone(), job, "a");
    let told = |builder: GuardBuilder| builder.build().unwrap_err().to_string();
    assert!(matches!(builder("Not A Name").build(), Err(BuildError::Name(_))));
    assert_eq!(told(builder("a").max_attempts(0)), "max_attempts is out of its bounds: 1 to 999");
    assert_eq!(told(builder("a").lease_ttl(Duration::ZERO)), "lease_ttl is out of its bounds: 500 ms to a day");
    let second = Period::Fixed(Duration::from_secs(1));
    let long = || builder("a").period(second).lease_ttl(Duration::from_secs(2));
    assert!(told(long()).starts_with("lease_ttl of 2s is longer than the slot of 1s: after a crash"));
    assert!(long().concurrency(Concurrency::Allow).build().is_ok());
    let policy = |period| builder("a").period(period).build().unwrap().spec.policy;
    let paces =
        [second, Period::Minute, Period::Hour].map(|period| (policy(period).lease_ttl, policy(period).retry.delay));
    let expected = [(500, 166), (20_000, 10_000), (60_000, 10_000)];
    assert_eq!(paces.map(|(ttl, delay)| (ttl.as_millis(), delay.as_millis())), expected);
    assert!(told(builder("a").period(Period::Tick)).contains("GuardBuilder::schedule"));
    assert!(builder("a").period(Period::Tick).schedule("*/5 * * * *").build().is_ok());
}

#[tokio::test]
async fn a_guard_that_connects_goes_by_its_hosts_name_and_runs_the_slot_of_now() {
    let guard = Guard::connect("memory:", "push").await.unwrap();
    let outcome = guard.run_current(|hold| async move { Ok::<_, io::Error>(hold.context().node.clone()) }).await;
    let RunOutcome::Done { value, run } = outcome.unwrap() else { panic!("it was free") };
    assert_eq!((value.as_str(), run.attempt), (guard.node.as_str(), 1));
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    assert_eq!(value, crate::job::NodeName::nearest(&host));
}

#[tokio::test]
async fn what_cannot_be_connected_to_says_why() {
    let refused = async |url, job| Guard::connect(url, job).await.unwrap_err();
    assert!(matches!(refused("memory:", "Not A Name").await, BuildError::Name(_)));
    let error = refused("nowhere://u:hunter2@h", "push").await;
    assert!(matches!(error, BuildError::Open(_)), "{error:?}");
    assert!(error.to_string().contains("not a known scheme") && !error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn the_current_slot_is_run_once() {
    let bench = Bench::new();
    let (a, b) = (bench.builder("a").build().unwrap(), bench.builder("b").build().unwrap());
    let slot = a.run_current(|hold| async move { Ok::<_, io::Error>(hold.slot().clone()) }).await.unwrap().value();
    assert_eq!(slot, Some(a.current_slot().unwrap()));
    let again = b.run_current(|_| async { Ok::<_, io::Error>(()) }).await.unwrap();
    assert!(matches!(again, RunOutcome::Skipped(Skipped::Done { .. })), "{again:?}");
}

#[tokio::test]
async fn where_no_slot_has_begun_nothing_is_run() {
    let clock = Arc::new(ManualClock::at("1970-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), clock.clone()));
    let builder = Guard::builder(store, "push", "a").period(Period::Tick).schedule("0 0 29 2 *").clock(clock);
    let guard = builder.build().unwrap();
    let answer = guard.run_current(|_| async { Ok::<(), io::Error>(()) }).await;
    assert!(matches!(answer, Err(GuardError::NoSlot { .. })), "{answer:?}");
}
