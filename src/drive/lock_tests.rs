//! Jobs that name locks, driven in virtual time over the store in memory: who runs when, what is counted, and what it costs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono, Now, RuntimeClock, later};
use crate::drive::{
    Account, Drive, Facts, Gate, Limits, Lost, Message, Once, Patience, Renewals, Started, Tools, Traces, Wait, Work,
    locks,
};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::event::{Event, LockGrant, LockLeave, LockLoss};
use crate::job::{NodeName, Policy, RetryPolicy};
use crate::machine::{Assignment, End, SlotMachine};
use crate::observe::Observer;
use crate::resource::{AcquireRequest, Acquired, Demand, Demands, LockRecord, LockRelease, OwnerId};
use crate::slot::{Audit, Exit, ExitStatus, Fence, Outcome, RunContext, Slot, SlotRecord, Token, Trigger, Verdict};
use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{Closing, Op, Store, StoreOptions, Wake};

const MINUTE: Duration = Duration::from_secs(60);

fn noon() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// Counts the calls of each operation, and loses or delays some.
#[derive(Clone, Debug, Default)]
struct Toll {
    calls: Arc<Mutex<BTreeMap<Op, usize>>>,
    releases_are_lost: Arc<AtomicBool>,
    /// The store does not answer.
    is_away: Arc<AtomicBool>,
    /// A request for locks takes so long.
    round_trip: Arc<Mutex<Duration>>,
    /// To keep a note takes so long.
    writes: Arc<Mutex<Duration>>,
}

#[async_trait]
impl Layer for Toll {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        *self.calls.lock().unwrap().entry(op).or_default() += 1;
        if op == Op::Release && self.releases_are_lost.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Timeout, Applied::Maybe, op, location, "no answer"));
        }
        if op == Op::Acquire {
            let round_trip = *self.round_trip.lock().unwrap();
            pass(round_trip).await;
        }
        if op == Op::Note {
            let writes = *self.writes.lock().unwrap();
            pass(writes).await;
        }
        call().await
    }
}

/// Commands that run for a while, and end with the next of their exit codes.
#[derive(Debug)]
struct Errand {
    clock: Arc<dyn Clock>,
    lasts: Duration,
    /// How long it takes to make their process.
    makes: Duration,
    codes: Mutex<Vec<i32>>,
    runs: Mutex<Vec<(Mono, RunContext)>>,
}

struct Lasting {
    until: Instant,
    code: i32,
}

#[async_trait]
impl Work for Errand {
    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn start(&self, run: RunContext, _lease: Renewals) -> Box<dyn Started> {
        self.runs.lock().unwrap().push((self.clock.now().mono, run));
        pass(self.makes).await;
        let code = self.codes.lock().unwrap().pop().unwrap_or(0);
        Box::new(Lasting { until: Instant::now() + self.lasts, code })
    }
}

#[async_trait]
impl Started for Lasting {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn terminate(&self) {
        panic!("nothing is stopped here");
    }

    fn kill(&self) {}

    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn wait(&mut self) -> Exit {
        tokio::time::sleep_until(self.until).await;
        Exit::of(ExitStatus::Code(self.code))
    }
}

/// What was told, in turn.
#[derive(Debug, Default)]
struct Diary(Mutex<Vec<(String, Event)>>);

impl Observer for Diary {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let slot = slot.map(ToString::to_string).unwrap_or_default();
        self.0.lock().unwrap().push((slot, event.clone()));
    }
}

/// One node and its store.
struct Floor {
    tools: Arc<Tools>,
    toll: Toll,
    diary: Arc<Diary>,
    makes: Duration,
    seeds: u128,
}

/// One slot that is driven.
struct Errands {
    work: Arc<Errand>,
    task: JoinHandle<End>,
    owner: mpsc::UnboundedSender<crate::drive::Message>,
}

impl Floor {
    fn new(limits: Limits) -> Self {
        Self::with_clocks(limits, noon(), noon())
    }

    /// The store's clock shows one time, and the node's another.
    #[allow(clippy::disallowed_methods, reason = "the clocks of these tests")]
    fn with_clocks(limits: Limits, of_store: DateTime<Utc>, of_node: DateTime<Utc>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at(of_node));
        let (toll, diary) = (Toll::default(), Arc::new(Diary::default()));
        let of_store = Arc::new(RuntimeClock::at(of_store));
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(StoreOptions::default(), of_store));
        let tools = Arc::new(Tools {
            store: Arc::new(Layered::new(memory, toll.clone())),
            clock,
            observer: Arc::<Diary>::clone(&diary),
            facts: Facts::default(),
            gate: Gate::limited(limits),
        });
        Self { tools, toll, diary, makes: Duration::ZERO, seeds: 0 }
    }

    fn now(&self) -> Now {
        self.tools.clock.now()
    }

    /// Drives a job's slot, which begins now, until it has ended here.
    fn drive(&mut self, slot: Slot, policy: Policy, lasts: Duration, codes: &[i32]) -> Errands {
        self.seeds += 1;
        let work = self.errand(lasts, codes);
        let assignment = self.assignment(slot.clone(), policy);
        let machine = SlotMachine::waiting(assignment, self.now());
        let place = Some(self.tools.gate.enter(&slot));
        let (owner, inbox) = mpsc::unbounded_channel();
        let (tools, started) = (Arc::clone(&self.tools), Arc::<Errand>::clone(&work));
        let drive = Drive { machine, work: started, tools, holding: Arc::default(), place, inbox };
        let task = tokio::spawn(drive.until_ended());
        self.tools.gate.serve();
        Errands { work, task, owner }
    }

    fn errand(&self, lasts: Duration, codes: &[i32]) -> Arc<Errand> {
        let clock = Arc::clone(&self.tools.clock);
        let codes = Mutex::new(codes.iter().rev().copied().collect());
        Arc::new(Errand { clock, lasts, makes: self.makes, codes, runs: Mutex::default() })
    }

    fn assignment(&self, slot: Slot, policy: Policy) -> Assignment {
        let port = policy.locks.as_ref().and_then(|_| locks::port(&self.tools.store, Token::from_bits(7)));
        Assignment {
            scheduled_at: slot.start(),
            slot,
            policy,
            success_codes: vec![0],
            node: NodeName::new("n").unwrap(),
            trigger: Trigger::Schedule,
            past: false,
            audit: None,
            poll: None,
            seed: Token::from_bits(self.seeds << 64),
            locks: port,
        }
    }

    /// What `exec` drives.
    fn exec(&mut self, policy: Policy, wait: Wait) -> Once {
        self.seeds += 1;
        let assignment = self.assignment(hour("a"), policy);
        Once {
            assignment,
            work: self.errand(MINUTE, &[]),
            store: Arc::clone(&self.tools.store),
            clock: Arc::clone(&self.tools.clock),
            observer: Arc::<Diary>::clone(&self.diary),
            patience: Patience { wait, store: MINUTE, record: Some(MINUTE), drain: Duration::ZERO },
        }
    }

    /// Drives it as `exec` does, for a caller that cancels after so long.
    async fn once(&mut self, policy: Policy, wait: Wait, cancelled_after: Duration) -> Account {
        let once = self.exec(policy, wait);
        let cancel = CancellationToken::new();
        let mut account = tokio::spawn(once.until_ended(cancel.clone()));
        tokio::select! {
            account = &mut account => return account.unwrap(),
            () = pass(cancelled_after) => cancel.cancel(),
        }
        account.await.unwrap()
    }

    /// A stranger holds it for so long.
    async fn hold(&self, lock: &str, span: Duration) {
        let node = NodeName::new("stranger").unwrap();
        let token = Token::from_bits(99);
        let request = AcquireRequest::new(token, node, token, span, named(lock)).labelled("repair");
        let store = Arc::clone(&self.tools.store).lock_store().unwrap();
        assert!(matches!(store.acquire(&request).await.unwrap(), Acquired::Held { .. }));
    }

    async fn queue(&self, lock: &str) -> LockRecord {
        let store = Arc::clone(&self.tools.store).lock_store().unwrap();
        store.locks(&[lock.parse().unwrap()]).await.unwrap().1.remove(0)
    }

    async fn record(&self, slot: &Slot) -> SlotRecord {
        self.tools.store.inspect(std::slice::from_ref(slot)).await.unwrap().1.remove(0)
    }

    fn calls(&self) -> Vec<(Op, usize)> {
        self.toll.calls.lock().unwrap().iter().map(|(op, count)| (*op, *count)).collect()
    }
}

impl Errands {
    /// When each run began, after noon.
    fn starts(&self) -> Vec<Duration> {
        self.work.runs.lock().unwrap().iter().map(|(at, _)| at.since(Mono::from_origin(Duration::ZERO))).collect()
    }

    fn contexts(&self) -> Vec<RunContext> {
        self.work.runs.lock().unwrap().iter().map(|(_, run)| run.clone()).collect()
    }
}

fn audit(verb: &str) -> Audit {
    let [who, host] = ["alice", "ops"].map(str::to_owned);
    Audit { verb: verb.to_owned(), who, host, why: String::new(), at: noon() }
}

fn named(lock: &str) -> Demands {
    Demands::from(lock.parse::<Demand>().unwrap())
}

fn locking(lock: &str) -> Policy {
    Policy { locks: Some(named(lock)), ..Policy::default() }
}

/// The hour after noon.
fn hour(job: &str) -> Slot {
    Slot::parse(job, "2026-11-21T12Z", "2026-11-21T13Z").unwrap()
}

fn many() -> Limits {
    Limits { starts: 32, runs: 100 }
}

#[allow(clippy::disallowed_methods, reason = "time is virtual")]
async fn pass(span: Duration) {
    tokio::time::sleep(span).await;
}

#[tokio::test(start_paused = true)]
async fn two_jobs_that_name_one_lock_run_one_after_the_other() {
    let mut floor = Floor::new(many());
    let a = floor.drive(hour("a"), locking("x"), MINUTE * 10, &[]);
    let b = floor.drive(hour("b"), locking("x"), MINUTE * 10, &[]);
    let starts = {
        let (ends, runs) = (tokio::join!(a.task, b.task), [&a.work, &b.work]);
        assert_eq!((ends.0.unwrap(), ends.1.unwrap()), (End::Done, End::Done));
        let mut starts: Vec<Mono> =
            runs.iter().flat_map(|work| work.runs.lock().unwrap().clone()).map(|(at, _)| at).collect();
        starts.sort();
        starts
    };
    let between = starts[1].since(starts[0]);
    assert!(between >= MINUTE * 10 && between < MINUTE * 10 + Duration::from_secs(1), "{between:?}");
    for job in ["a", "b"] {
        let record = floor.record(&hour(job)).await;
        assert_eq!((record.attempts, record.forgiven), (1, 0), "{job}");
    }
    assert_eq!(floor.queue("x").await.entries, []);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_ends_while_it_waits_uses_no_attempt_and_is_missed_with_the_reason() {
    let mut floor = Floor::new(many());
    floor.hold("x", MINUTE * 120).await;
    let a = floor.drive(hour("a"), locking("x"), MINUTE, &[]);
    assert_eq!(a.task.await.unwrap(), End::Closed);
    let record = floor.record(&hour("a")).await;
    assert_eq!((record.used(), record.forgiven), (0, 1));
    let run = &record.runs[0];
    assert_eq!((run.outcome, run.started_at, run.exit_code), (Some(Outcome::GivenBack), None, None));
    assert_eq!(run.message.as_deref(), Some("the slot ended while it waited for x"));
    let closing = floor.tools.store.close(&hour("a"), 3, &NodeName::new("n").unwrap()).await.unwrap();
    assert!(closing == Closing::First(Verdict::Missed), "{closing:?}");
    assert_eq!(floor.queue("x").await.entries.len(), 1, "the stranger's");
    let told = floor.diary.0.lock().unwrap();
    let waits = told.iter().filter(|(_, event)| matches!(event, Event::LockWaiting(wait) if wait.by_label == "repair"));
    assert_eq!(waits.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_counts_from_the_start_and_not_from_the_wait() {
    let mut floor = Floor::new(many());
    floor.hold("x", MINUTE * 20).await;
    let policy = Policy { timeout: Some(MINUTE * 10), ..locking("x") };
    let a = floor.drive(hour("a"), policy, MINUTE * 9, &[]);
    let (work, end) = (Arc::<Errand>::clone(&a.work), a.task.await.unwrap());
    assert_eq!(end, End::Done);
    let (at, run) = work.runs.lock().unwrap()[0].clone();
    let waited = at.since(Mono::from_origin(Duration::ZERO));
    assert!(waited >= MINUTE * 20 && waited < MINUTE * 20 + Duration::from_secs(1), "{waited:?}");
    assert_eq!(run.deadline, Some(later(noon(), waited + MINUTE * 10)));
    assert_eq!(run.locks.map(|locks| locks.names).as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_free_while_its_job_waits_for_a_retry() {
    let mut floor = Floor::new(many());
    let retry = RetryPolicy { delay: MINUTE * 10, ..Policy::default().retry };
    let a = floor.drive(hour("a"), Policy { retry, ..locking("x") }, MINUTE, &[1, 0]);
    pass(MINUTE * 2).await;
    let b = floor.drive(hour("b"), locking("x"), MINUTE, &[]);
    pass(MINUTE * 3).await;
    assert_eq!(b.starts(), [MINUTE * 2], "at once");
    assert!(b.task.is_finished() && !a.task.is_finished());
    pass(MINUTE * 20).await;
    assert!(a.task.is_finished());
    let fences = |errands: &Errands| -> Vec<u64> {
        errands.contexts().into_iter().filter_map(|run| run.locks).map(|locks| locks.fence.0).collect()
    };
    let (of_a, of_b) = (fences(&a), fences(&b));
    assert!(of_a[0] < of_b[0] && of_b[0] < of_a[1], "{of_a:?} {of_b:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_waits_for_the_one_before_it_does_not_stand_in_the_queue_of_its_locks() {
    let mut floor = Floor::new(many());
    let ten = |minute: u64| {
        let start = later(noon(), MINUTE * u32::try_from(minute).unwrap());
        Slot::new("a".parse().unwrap(), start, later(start, MINUTE * 10)).unwrap()
    };
    let first = floor.drive(ten(0), locking("x"), MINUTE * 15, &[]);
    pass(MINUTE * 10).await;
    let second = floor.drive(ten(10), locking("x"), MINUTE, &[]);
    pass(MINUTE * 4).await;
    assert_eq!(floor.queue("x").await.entries.len(), 1);
    assert_eq!((first.starts().len(), second.starts().len()), (1, 0));
    pass(MINUTE * 5).await;
    assert!(first.task.is_finished() && second.task.is_finished());
    assert_eq!(second.starts().len(), 1);
    assert_eq!(floor.queue("x").await.entries, []);
}

#[tokio::test(start_paused = true)]
async fn a_job_without_locks_costs_not_one_call_more_and_one_with_a_lock_two() {
    let mut floor = Floor::new(many());
    let plain = floor.drive(hour("a"), Policy::default(), Duration::from_secs(5), &[]);
    assert_eq!(plain.task.await.unwrap(), End::Done);
    assert_eq!(floor.calls(), [(Op::Claim, 1), (Op::Complete, 1)]);
    let locked = floor.drive(hour("b"), locking("x"), Duration::from_secs(5), &[]);
    assert_eq!(locked.task.await.unwrap(), End::Done);
    assert_eq!(floor.calls(), [(Op::Claim, 2), (Op::Complete, 2), (Op::Acquire, 1), (Op::Release, 1)]);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_wait_for_a_lock_hold_up_the_start_of_no_other() {
    let mut floor = Floor::new(Limits { starts: 8, runs: 100 });
    floor.hold("x", MINUTE * 30).await;
    let waiting: Vec<Errands> =
        (0..40).map(|job| floor.drive(hour(&format!("w{job}")), locking("x"), Duration::from_secs(1), &[])).collect();
    pass(MINUTE).await;
    assert_eq!(floor.queue("x").await.entries.len(), 41);
    let other = floor.drive(hour("other"), Policy::default(), Duration::from_secs(1), &[]);
    pass(Duration::from_secs(2)).await;
    assert!(other.task.is_finished());
    pass(MINUTE * 31).await;
    assert!(waiting.iter().all(|errands| errands.task.is_finished()));
    let mut starts: Vec<Duration> = waiting.iter().flat_map(Errands::starts).collect();
    starts.sort();
    assert!(starts.windows(2).all(|two| two[1] - two[0] >= Duration::from_secs(1)), "one at a time: {starts:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_whose_locks_come_free_at_once_keep_the_node_busy_until_their_commands_have_begun() {
    let mut floor = Floor::new(Limits { starts: 2, runs: 100 });
    floor.hold("x", MINUTE * 10).await;
    floor.makes = Duration::from_secs(4);
    let shared = |job| hour(&format!("w{job}"));
    let waiting: Vec<Errands> = (0..5).map(|job| floor.drive(shared(job), locking("x:shared"), MINUTE, &[])).collect();
    pass(MINUTE * 9).await;
    assert_eq!(floor.queue("x").await.entries.len(), 6);
    while waiting.iter().all(|errands| errands.starts().is_empty()) {
        pass(Duration::from_millis(100)).await;
    }
    let other = floor.drive(hour("other"), Policy::default(), MINUTE, &[]);
    pass(MINUTE).await;
    let last = waiting.iter().flat_map(Errands::starts).max().unwrap();
    assert!(other.starts()[0] > last + Duration::from_secs(3), "{:?} {last:?}", other.starts());
}

#[tokio::test(start_paused = true)]
async fn a_request_for_locks_that_is_on_its_way_counts_as_a_start() {
    let mut floor = Floor::new(Limits { starts: 2, runs: 100 });
    *floor.toll.round_trip.lock().unwrap() = Duration::from_secs(10);
    let errands: Vec<Errands> =
        (0..5).map(|job| floor.drive(hour(&format!("w{job}")), locking(&format!("x{job}")), MINUTE, &[])).collect();
    pass(Duration::from_secs(5)).await;
    assert_eq!(floor.calls(), [(Op::Claim, 2), (Op::Acquire, 2)]);
    pass(MINUTE).await;
    assert!(errands.iter().all(|errands| errands.starts().len() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_notes_slowly_holds_nobody_up_for_long() {
    let mut floor = Floor::new(many());
    floor.hold("x", Duration::from_secs(2)).await;
    *floor.toll.writes.lock().unwrap() = Duration::from_secs(120);
    let once = floor.exec(locking("x"), Wait::TakeOver);
    let traces = Traces { instance: "exec".to_owned(), job_hash: "c0ffee".to_owned(), introduction: None };
    let noted = once.until_noted(traces, CancellationToken::new());
    let account = tokio::time::timeout(MINUTE * 50, noted).await.expect("it comes to an end");
    assert_eq!(account.end, Some(End::Done));
    let passed = floor.now().mono.since(Mono::from_origin(Duration::ZERO));
    assert!(passed <= MINUTE + Duration::from_secs(6), "2 s of waiting, the command, and two last words: {passed:?}");
}

#[test]
fn the_loss_of_a_lease_and_of_locks_are_two_and_what_is_held_again_of_one_is_not_the_other() {
    let begun = |attempt| Event::RunStarted {
        attempt,
        fence: Fence(1),
        trigger: Trigger::Exec,
        guarded: true,
        late: Duration::ZERO,
    };
    let lease = Event::LeaseLost { attempt: 1, to: None, to_attempt: None, killing: false, unstarted: false };
    let locks = Event::LockLost(LockLoss::in_doubt(1, false));
    let locks_back = Event::LockHeld(LockGrant::after(1, Vec::new(), Fence(2), MINUTE, true));
    let lease_back = Event::LeaseRestored { attempt: 1 };
    let lost = |events: &[&Event]| {
        let mut account = Account::new(hour("a"));
        account.hear(&begun(1));
        events.iter().for_each(|event| account.hear(event));
        account.runs[0].lost.clone()
    };
    assert_eq!(lost(&[&lease, &locks, &lease, &locks]), [Lost::Lease, Lost::Locks(None)]);
    assert_eq!(lost(&[&lease, &locks, &locks_back]), [Lost::Lease]);
    assert_eq!(lost(&[&lease, &locks, &lease_back]), [Lost::Locks(None)]);
    assert_eq!(lost(&[&locks, &lease, &lease_back]), [Lost::Locks(None)]);
    assert_eq!(lost(&[&locks, &lease, &lease_back, &locks_back]), []);
}

#[test]
fn what_happens_to_an_attempt_that_only_waits_is_booked_on_no_other() {
    let mut account = Account::new(hour("a"));
    let runs = |attempt| {
        let trigger = Trigger::Exec;
        Event::RunStarted { attempt, fence: Fence(1), trigger, guarded: true, late: Duration::ZERO }
    };
    account.hear(&runs(1));
    account.hear(&Event::Settled { attempt: 1, outcome: Outcome::Failure });
    account.hear(&Event::LeaseLost { attempt: 2, to: None, to_attempt: None, killing: false, unstarted: true });
    account.hear(&Event::LockLost(LockLoss::in_doubt(2, false)));
    assert_eq!(account.runs[0].lost, []);
    account.hear(&runs(3));
    let overtaken = Some(LockRelease::Overtaken { by: None });
    account.hear(&Event::LockLeft(LockLeave::answered(1, overtaken, None)));
    assert_eq!(account.runs.iter().map(|run| !run.lost.is_empty()).collect::<Vec<_>>(), [true, false], "however late");
    account.hear(&Event::LockLost(LockLoss::in_doubt(3, false)));
    account.hear(&Event::LockHeld(LockGrant::after(2, Vec::new(), Fence(2), MINUTE, true)));
    assert!(matches!(account.runs[1].lost[..], [Lost::Locks(_)]));
}

#[test]
fn an_account_says_why_locks_were_waited_for_in_vain_and_forgets_an_error_once_they_are_held() {
    let mut account = Account::new(hour("a"));
    let failed = Event::StoreFailed { op: Op::Acquire, kind: ErrorKind::Timeout, error: "no answer".to_owned() };
    account.hear(&failed);
    account.hear(&Event::LockHeld(LockGrant::after(1, Vec::new(), Fence(2), MINUTE, false)));
    assert_eq!(account.store_error, None);
    let unstarted = |locks| Event::Unstarted { attempt: 1, why: "db: the queue is full".to_owned(), locks };
    account.hear(&unstarted(Vec::new()));
    assert_eq!(account.queued, None, "the grant came too late");
    account.hear(&unstarted(vec!["db".parse().unwrap()]));
    assert_eq!(account.queued.as_deref(), Some("db: the queue is full"));
}

#[tokio::test(start_paused = true)]
async fn the_slot_of_a_job_that_is_paused_leaves_the_queue_and_is_back_in_it_after_the_pause() {
    let mut floor = Floor::new(many());
    floor.hold("x", MINUTE * 30).await;
    let a = floor.drive(hour("a"), locking("x"), MINUTE, &[]);
    pass(MINUTE).await;
    assert_eq!(floor.queue("x").await.entries.len(), 2);
    let job = hour("a").job().clone();
    floor.tools.store.pause(&job, None, &audit("pause")).await.unwrap();
    // Nobody tells this drive of it.
    pass(MINUTE).await;
    assert_eq!(floor.queue("x").await.entries.len(), 1, "the stranger's");
    assert_eq!(floor.record(&hour("a")).await.forgiven, 1);
    floor.tools.store.resume(&job, &audit("resume")).await.unwrap();
    a.owner.send(Message::Wake(Wake::Job(job))).unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(floor.queue("x").await.entries.len(), 2, "it is back as soon as it hears of that");
    pass(MINUTE * 35).await;
    assert!(a.task.is_finished());
    let record = floor.record(&hour("a")).await;
    assert_eq!((a.starts().len(), record.attempts, record.forgiven), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn whether_a_pause_is_over_is_said_by_the_stores_clock_and_not_by_the_nodes() {
    let at = |minutes| later(noon(), MINUTE * minutes);
    // The pause is over at ten past: by the store's clock, or by that of the node alone.
    for (of_store, of_node, is_paused) in [(at(5), at(20), true), (at(20), at(5), false)] {
        let mut floor = Floor::with_clocks(many(), of_store, of_node);
        floor.hold("x", MINUTE * 30).await;
        let a = floor.drive(hour("a"), locking("x"), MINUTE, &[]);
        pass(Duration::from_secs(1)).await;
        assert_eq!(floor.queue("x").await.entries.len(), 2);
        let others = (0..20).map(|job| format!("other{job}").parse().unwrap());
        for job in others.chain([hour("a").job().clone()]) {
            floor.tools.store.pause(&job, Some(at(10)), &audit("pause")).await.unwrap();
        }
        pass(MINUTE).await;
        let (entries, forgiven) = (floor.queue("x").await.entries.len(), floor.record(&hour("a")).await.forgiven);
        assert_eq!((entries, forgiven), if is_paused { (1, 1) } else { (2, 0) }, "the store at {of_store}");
        a.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_attempt_still_holds_of_two_locks_costs_its_successor_no_attempt() {
    let look = Policy::default().lease_ttl / 3;
    // While the dead one's entry stands its successor is beside it, in front of the stranger; after that, behind the stranger.
    for (of_y, earliest, late) in [(MINUTE / 2, MINUTE / 2, look), (MINUTE * 3, MINUTE * 5, Duration::ZERO)] {
        let mut floor = Floor::new(many());
        let store = Arc::clone(&floor.tools.store).lock_store().unwrap();
        let ask = |name: &str, bits, span| {
            let token = Token::from_bits(bits);
            AcquireRequest::new(token, NodeName::new(name).unwrap(), token, span, named("x"))
        };
        let dead = AcquireRequest { owner: OwnerId::of_text(&hour("a").to_string()), ..ask("dead", 98, MINUTE) };
        assert!(matches!(store.acquire(&dead).await.unwrap(), Acquired::Held { .. }));
        floor.hold("y", of_y).await;
        let behind = store.acquire(&ask("stranger", 97, MINUTE * 5)).await.unwrap();
        assert!(matches!(behind, Acquired::Waiting { .. }));
        let both = Demands::new(vec!["x".parse().unwrap(), "y".parse().unwrap()]).unwrap();
        let a = floor.drive(hour("a"), Policy { locks: Some(both), ..Policy::default() }, MINUTE, &[]);
        pass(MINUTE * 10).await;
        assert!(a.task.is_finished());
        let start = a.starts()[0];
        assert!(start >= earliest && start < earliest + late + Duration::from_secs(1), "{start:?}");
        let record = floor.record(&hour("a")).await;
        assert_eq!((record.attempts, record.forgiven), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_before_its_locks_are_granted_starts_nothing() {
    let mut floor = Floor::new(many());
    *floor.toll.round_trip.lock().unwrap() = Duration::from_millis(300);
    let account = floor.once(locking("x"), Wait::TakeOver, Duration::from_millis(100)).await;
    assert_eq!((account.end, account.runs), (Some(End::Left), vec![]));
    let record = floor.record(&hour("a")).await;
    assert_eq!((record.used(), record.forgiven), (0, 1));
    assert_eq!(floor.queue("x").await.entries, []);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_the_queue_of_a_store_that_is_away_is_gone_soon() {
    let mut floor = Floor::new(many());
    floor.hold("x", MINUTE * 30).await;
    let away = Arc::clone(&floor.toll.is_away);
    let falls = tokio::spawn(async move {
        pass(Duration::from_secs(5)).await;
        away.store(true, Ordering::Relaxed);
    });
    let account = floor.once(locking("x"), Wait::TakeOver, Duration::from_secs(10)).await;
    falls.await.unwrap();
    let passed = floor.now().mono.since(Mono::from_origin(Duration::ZERO));
    assert!(passed <= Duration::from_secs(11), "{passed:?}");
    assert_eq!((account.end, account.runs), (Some(End::Unrecorded), vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_ends_in_the_queue_of_a_store_that_is_away_is_given_up_as_after_a_run() {
    let mut floor = Floor::new(many());
    floor.hold("x", MINUTE * 90).await;
    let away = Arc::clone(&floor.toll.is_away);
    let falls = tokio::spawn(async move {
        pass(MINUTE * 59).await;
        away.store(true, Ordering::Relaxed);
    });
    let account = floor.once(locking("x"), Wait::TakeOver, MINUTE * 62).await;
    falls.await.unwrap();
    let passed = floor.now().mono.since(Mono::from_origin(Duration::ZERO));
    assert!(passed < MINUTE * 61 + Duration::from_secs(5), "a minute for the record: {passed:?}");
    assert_eq!((account.end, account.runs), (Some(End::Unrecorded), vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_answered_holds_nobody_up_for_long() {
    let mut floor = Floor::new(many());
    floor.toll.releases_are_lost.store(true, Ordering::Relaxed);
    let a = floor.drive(hour("a"), locking("x"), MINUTE, &[]);
    assert_eq!(a.task.await.unwrap(), End::Done);
    let passed = floor.now().mono.since(Mono::from_origin(Duration::ZERO));
    assert!(passed <= MINUTE + Duration::from_secs(3), "{passed:?}");
}
