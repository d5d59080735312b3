//! Many slots of one node at once, in virtual time: a machine that is too slow for them, and a store that is away.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::clock::{Clock, RuntimeClock, later};
use crate::drive::{Drive, Facts, Gate, Limits, Renewals, Started, Tools, Work};
use crate::event::Event;
use crate::job::{Concurrency, NodeName, OnStoreError, Policy};
use crate::machine::{Assignment, End, SlotMachine};
use crate::observe::Observer;
use crate::slot::{Exit, ExitStatus, RunContext, Slot, Token, Trigger};
use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{Applied, Claim, ClaimRequest, ErrorKind, Op, Store, StoreError, StoreOptions};

const SECOND: Duration = Duration::from_secs(1);
/// What one start takes of the machine's only processor.
const START: Duration = Duration::from_millis(10);
/// When a claim that is not answered is given up.
const OP_TIMEOUT: Duration = Duration::from_millis(500);

/// A store that does not answer claims while it is away, and refuses them while it is full.
#[derive(Clone, Debug, Default)]
struct Link {
    away: Arc<AtomicBool>,
    full: Arc<AtomicBool>,
    unanswered: Arc<AtomicUsize>,
}

#[async_trait]
impl Layer for Link {
    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        if op == Op::Claim && self.away.load(Ordering::Relaxed) {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(OP_TIMEOUT).await;
            return Err(StoreError::new(ErrorKind::Timeout, Applied::Maybe, op, location, "no answer"));
        }
        if op == Op::Claim && self.full.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Denied, Applied::No, op, location, "no room"));
        }
        call().await
    }
}

/// A machine that starts one command at a time; commands end at once.
#[derive(Debug)]
struct Machine(Semaphore);

/// A machine on which commands hang before they have begun.
#[derive(Debug)]
struct Hung;

/// A machine that lacks a resource for every start while this is set.
#[derive(Debug, Default)]
struct Starved(AtomicBool);

struct Unstarted;

#[async_trait]
impl Work for Starved {
    async fn start(&self, _run: RunContext, _lease: Renewals) -> Box<dyn Started> {
        if self.0.load(Ordering::Relaxed) { Box::new(Unstarted) } else { Box::new(Command) }
    }
}

#[async_trait]
impl Started for Unstarted {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn terminate(&self) {}

    fn kill(&self) {}

    async fn wait(&mut self) -> Exit {
        Exit::of(ExitStatus::NoResources { message: "no descriptor is free".to_owned() })
    }
}

struct Command;

struct HungCommand;

#[async_trait]
impl Work for Hung {
    async fn start(&self, _run: RunContext, _lease: Renewals) -> Box<dyn Started> {
        Box::new(HungCommand)
    }
}

#[async_trait]
impl Started for HungCommand {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn terminate(&self) {}

    fn kill(&self) {}

    async fn wait(&mut self) -> Exit {
        std::future::pending().await
    }
}

#[async_trait]
impl Work for Machine {
    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn start(&self, _run: RunContext, _lease: Renewals) -> Box<dyn Started> {
        let _processor = self.0.acquire().await;
        tokio::time::sleep(START).await;
        Box::new(Command)
    }
}

#[async_trait]
impl Started for Command {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn terminate(&self) {}

    fn kill(&self) {}

    async fn wait(&mut self) -> Exit {
        Exit::of(ExitStatus::Code(0))
    }
}

/// What was told.
#[derive(Debug, Default)]
struct Heard {
    runs: Mutex<BTreeMap<String, u32>>,
    unguarded: AtomicUsize,
    shed: AtomicUsize,
    /// Granted and not over, and the most of them at once.
    granted: Mutex<(usize, usize)>,
    /// Pauses of the starts, and their ends.
    pauses: Mutex<Vec<Event>>,
}

impl Observer for Heard {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let Some(slot) = slot else { return self.pauses.lock().unwrap().push(event.clone()) };
        let mut granted = self.granted.lock().unwrap();
        match event {
            Event::Granted { .. } => *granted = (granted.0 + 1, granted.1.max(granted.0 + 1)),
            // A run without a guard was never granted.
            Event::Settled { .. } => granted.0 = granted.0.saturating_sub(1),
            Event::RunStarted { guarded: false, .. } => drop(self.unguarded.fetch_add(1, Ordering::Relaxed)),
            Event::RunEnded { .. } => {
                *self.runs.lock().unwrap().entry(slot.job().to_string()).or_default() += 1;
            }
            Event::Shed => drop(self.shed.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

struct Crowd {
    tools: Arc<Tools>,
    heard: Arc<Heard>,
    link: Link,
    work: Arc<dyn Work>,
    tasks: JoinSet<End>,
    ends: Vec<End>,
    policy: Policy,
    seeds: u128,
}

impl Crowd {
    #[allow(clippy::disallowed_methods, reason = "the clock of these tests")]
    fn new(policy: Policy) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T12:00:00Z".parse().unwrap()));
        let (link, heard) = (Link::default(), Arc::new(Heard::default()));
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
        let tools = Arc::new(Tools {
            store: Arc::new(Layered::new(memory, link.clone())),
            clock,
            observer: Arc::<Heard>::clone(&heard),
            facts: Facts::default(),
            gate: Gate::limited(Limits { starts: 8, runs: 100 }),
        });
        let work = Arc::new(Machine(Semaphore::new(1)));
        Self { tools, heard, link, work, tasks: JoinSet::new(), ends: Vec::new(), policy, seeds: 0 }
    }

    /// The tick of so many jobs, with a slot of this length.
    fn tick(&mut self, jobs: usize, length: Duration) {
        let now = self.tools.clock.now();
        for job in 0..jobs {
            self.seeds += 1;
            let slot = Slot::new(format!("j{job}").parse().unwrap(), now.wall, later(now.wall, length)).unwrap();
            let assignment = Assignment {
                slot,
                policy: self.policy.clone(),
                success_codes: vec![0],
                node: NodeName::new("n").unwrap(),
                trigger: Trigger::Schedule,
                scheduled_at: now.wall,
                past: false,
                audit: None,
                poll: None,
                seed: Token::from_bits(self.seeds << 64),
                locks: None,
            };
            let (tools, work) = (Arc::clone(&self.tools), Arc::clone(&self.work));
            let place = Some(self.tools.gate.enter(&assignment.slot));
            self.tasks.spawn(async move {
                let (_owner, inbox) = mpsc::unbounded_channel();
                let machine = SlotMachine::waiting(assignment, now);
                Drive { machine, work, tools, holding: Arc::default(), place, inbox }.until_ended().await
            });
        }
        self.tools.gate.serve();
    }

    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    async fn pass(&mut self, span: Duration) {
        tokio::time::sleep(span).await;
        while let Some(ended) = self.tasks.try_join_next() {
            self.ends.push(ended.unwrap());
        }
    }

    /// Another node takes the slots that [`Crowd::tick`] is about to begin, and runs each until after its end.
    async fn hold(&mut self, jobs: usize, length: Duration) {
        let now = self.tools.clock.now();
        for job in 0..jobs {
            self.seeds += 1;
            let request = ClaimRequest {
                slot: Slot::new(format!("j{job}").parse().unwrap(), now.wall, later(now.wall, length)).unwrap(),
                token: Token::from_bits(self.seeds << 64),
                node: NodeName::new("other").unwrap(),
                lease_ttl: length * 2,
                max_attempts: 1,
                trigger: Trigger::Schedule,
                exclusive: false,
                past: false,
                audit: None,
            };
            let claim = self.tools.store.claim(&request).await.unwrap();
            assert!(matches!(claim, Claim::Claimed { .. }), "{claim:?}");
        }
    }

    fn shed(&self) -> usize {
        self.heard.shed.load(Ordering::Relaxed)
    }

    fn runs(&self) -> u32 {
        self.heard.runs.lock().unwrap().values().sum()
    }
}

fn policy(concurrency: Concurrency) -> Policy {
    Policy { concurrency, ..Policy::default() }
}

#[tokio::test(start_paused = true)]
async fn a_node_with_three_times_the_jobs_that_it_can_start_works_at_its_full_rate_and_forgets_none() {
    for concurrency in [Concurrency::Allow, Concurrency::Forbid] {
        let mut crowd = Crowd::new(policy(concurrency));
        for _ in 0..30 {
            crowd.tick(300, SECOND);
            crowd.pass(SECOND).await;
            assert!(crowd.tasks.len() <= 310, "{} slots are driven", crowd.tasks.len());
        }
        let runs = crowd.runs();
        assert!((2_900..=3_030).contains(&runs), "{runs} runs in 30 s at 10 ms each");
        let (fewest, most) = {
            let runs = crowd.heard.runs.lock().unwrap();
            assert_eq!(runs.len(), 300);
            (runs.values().min().copied().unwrap(), runs.values().max().copied().unwrap())
        };
        assert!(fewest >= 9 && most <= 11, "between {fewest} and {most} runs of a job");
        let granted = crowd.heard.granted.lock().unwrap().1;
        assert!(granted <= 8, "{granted} leases were held at once, and one command starts at a time");
        crowd.pass(SECOND).await;
        assert!(crowd.tasks.is_empty(), "the load has ended");
        let before = crowd.runs();
        crowd.tick(80, SECOND);
        crowd.pass(SECOND).await;
        assert_eq!(crowd.runs() - before, 80, "the full rate is there at once");
        let (runs, shed) = (crowd.runs(), crowd.heard.shed.load(Ordering::Relaxed));
        assert_eq!(usize::try_from(runs).unwrap() + shed, 30 * 300 + 80, "each slot was run or told of");
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_jobs_a_second_and_a_store_that_is_away_for_75_seconds_neither_grow_nor_hammer() {
    let mut crowd = Crowd::new(policy(Concurrency::Forbid));
    crowd.work = Arc::new(Machine(Semaphore::new(1_000)));
    crowd.tick(200, SECOND);
    crowd.pass(SECOND).await;
    assert_eq!(crowd.runs(), 200);
    crowd.link.away.store(true, Ordering::Relaxed);
    let mut most = 0;
    for _ in 0..75 {
        crowd.tick(200, SECOND);
        crowd.pass(SECOND).await;
        most = most.max(crowd.tasks.len());
    }
    assert!(most <= 220, "{most} slots are driven");
    let sent = crowd.link.unanswered.load(Ordering::Relaxed);
    // Eight that may be held, each asked about again once a second at the most until its lease has lapsed.
    assert!(sent <= 8 * 62, "{sent} claims were sent");
    crowd.link.away.store(false, Ordering::Relaxed);
    crowd.tools.gate.answered();
    let before = crowd.runs();
    crowd.tick(200, SECOND);
    crowd.pass(SECOND).await;
    assert!(crowd.runs() - before >= 200, "{} runs in the first second", crowd.runs() - before);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_a_job_that_says_so_runs_without_a_guard_also_when_nobody_asks_any_more() {
    let policy =
        Policy { on_store_error: OnStoreError::Run, lease_ttl: Duration::from_secs(5), ..policy(Concurrency::Forbid) };
    let mut crowd = Crowd::new(policy);
    crowd.link.away.store(true, Ordering::Relaxed);
    crowd.tick(50, Duration::from_secs(3_600));
    crowd.pass(Duration::from_secs(4)).await;
    assert_eq!(crowd.heard.unguarded.load(Ordering::Relaxed), 0);
    crowd.pass(Duration::from_secs(12)).await;
    assert_eq!(crowd.heard.unguarded.load(Ordering::Relaxed), 50);
}

#[tokio::test(start_paused = true)]
async fn commands_that_hang_before_they_have_begun_do_not_hold_up_the_others_for_ever() {
    let mut crowd = Crowd::new(policy(Concurrency::Allow));
    let healthy = std::mem::replace(&mut crowd.work, Arc::new(Hung));
    crowd.tick(8, Duration::from_secs(3_600));
    crowd.pass(SECOND).await;
    crowd.work = healthy;
    crowd.tick(40, Duration::from_secs(60));
    crowd.pass(SECOND).await;
    assert_eq!(crowd.runs(), 0, "as many starts as there may be");
    crowd.pass(Duration::from_secs(5)).await;
    assert_eq!(crowd.runs(), 40);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_start_commands_claims_next_to_nothing_says_so_once_and_recovers() {
    let mut crowd = Crowd::new(Policy { max_attempts: 1, ..policy(Concurrency::Allow) });
    let machine = Arc::new(Starved(AtomicBool::new(true)));
    crowd.work = Arc::<Starved>::clone(&machine);
    crowd.tick(50, Duration::from_secs(3_600));
    crowd.pass(SECOND * 20).await;
    assert!(
        (9..=12).contains(&crowd.runs()),
        "{} claims: eight at once, then one after 1, 3, 7 and 15 s",
        crowd.runs()
    );
    let paused = Event::StartsPaused { error: "no descriptor is free".to_owned() };
    assert_eq!(*crowd.heard.pauses.lock().unwrap(), std::slice::from_ref(&paused));
    machine.0.store(false, Ordering::Relaxed);
    crowd.pass(SECOND * 60).await;
    assert_eq!(crowd.ends, [End::Done; 50], "no slot has lost its only attempt");
    assert_eq!(*crowd.heard.pauses.lock().unwrap(), [paused, Event::StartsResumed]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_asks_once_more_about_a_slot_that_another_held_until_its_end_and_sheds_none() {
    let mut crowd = Crowd::new(policy(Concurrency::Allow));
    for _ in 0..5 {
        crowd.hold(8, SECOND * 5).await;
        crowd.tick(8, SECOND * 5);
        crowd.pass(SECOND * 6).await;
    }
    assert_eq!(crowd.shed(), 0);
    assert_eq!(crowd.ends, [End::Closed; 40]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_whose_claims_the_store_refused_until_its_end_is_not_shed() {
    let mut crowd = Crowd::new(policy(Concurrency::Allow));
    crowd.link.full.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        crowd.tick(8, SECOND * 5);
        crowd.pass(SECOND * 6).await;
    }
    assert_eq!(crowd.shed(), 0);
    assert_eq!(crowd.ends, [End::Unknown; 40]);
}

#[tokio::test(start_paused = true)]
async fn a_full_node_sheds_what_waited_for_its_room_and_not_what_another_held_until_its_end() {
    let mut crowd = Crowd::new(policy(Concurrency::Allow));
    crowd.hold(6, SECOND * 4).await;
    crowd.tick(6, SECOND * 4);
    crowd.pass(SECOND).await;
    let healthy = std::mem::replace(&mut crowd.work, Arc::new(Hung));
    crowd.tick(8, Duration::from_secs(3_600));
    crowd.pass(SECOND).await;
    crowd.work = healthy;
    crowd.tick(5, SECOND * 2);
    crowd.pass(SECOND * 3).await;
    assert_eq!(crowd.shed(), 5);
    crowd.ends.sort_by_key(|end| *end == End::Shed);
    assert_eq!(crowd.ends, [vec![End::Unknown; 6], vec![End::Shed; 5]].concat());
}
