//! When the store is read for those who look, and what they are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::board::{Board, BoardSetting, CellState, Concern, ConcernKind, Patch, Snapshot};
use crate::clock::{Clock, RuntimeClock};
use crate::drive::timers;
use crate::error::{Applied, ErrorKind, Op, Reply, StoreError};
use crate::event::Event;
use crate::job::{JobName, JobSpec, NodeName, Program};
use crate::message::{Delivery, MessageKey, Topic};
use crate::observe::Observer;
use crate::slot::{Audit, Outcome, OutputTail, Period, RunRecord, Slot, Token, Verdict};
use crate::store::layer::{Call, Layer, Layered, Timeout};
use crate::store::memory::MemoryStore;
use crate::store::{Claim, ClaimRequest, JobEntry, NodeReport, Store, StoreOptions};

/// Counts the calls, and lets none through while it is down, and answers none while it hangs.
#[derive(Debug, Default)]
struct Meter {
    calls: AtomicU64,
    inspected: AtomicU64,
    down: AtomicBool,
    refuses: AtomicBool,
    /// As a server does whose writes are taken by another now.
    read_only: AtomicBool,
    hangs: AtomicBool,
}

#[async_trait]
impl Layer for Arc<Meter> {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.inspected.fetch_add(u64::from(op == Op::Inspect), Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.down.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Unavailable, Applied::No, op, location, "down"));
        }
        if self.read_only.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::ReadOnly, Applied::No, op, location, "a replica"));
        }
        if self.refuses.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Denied, Applied::No, op, location, "wrong password"));
        }
        call().await
    }
}

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(2);

struct Stage {
    board: Arc<Board>,
    memory: MemoryStore,
    meter: Arc<Meter>,
    clock: Arc<RuntimeClock>,
    specs: Vec<Arc<JobSpec>>,
}

impl Stage {
    /// With jobs of these names and schedules, known for long, and a board that is driven; at 14:10.
    async fn with(jobs: &[(&str, &str)]) -> Self {
        let clock = Arc::new(RuntimeClock::at("2026-11-20T12:00:00Z".parse().unwrap()));
        let memory = MemoryStore::new(StoreOptions::default(), Arc::clone(&clock) as Arc<dyn Clock>);
        let spec = |(name, schedule): &(&str, &str)| {
            let period = match *schedule {
                "* * * * * *" => Period::Tick,
                "* * * * *" => Period::Minute,
                _ => Period::Hour,
            };
            let spec = JobSpec::new(JobName::new(name).unwrap(), *schedule, Program::Direct(Vec::new()));
            Arc::new(JobSpec { period, ..spec })
        };
        let specs: Vec<Arc<JobSpec>> = jobs.iter().map(spec).collect();
        let entries: Vec<JobEntry> = specs.iter().map(|spec| JobEntry::of(spec, clock.now().wall)).collect();
        memory.register(&entries).await.unwrap();
        let boot = "boot".to_owned();
        let retention = Duration::from_secs(7 * 86_400);
        let board = Board::new(BoardSetting { clock: Arc::clone(&clock) as Arc<dyn Clock>, boot, retention });
        board.plan(&specs, "c0ffee");
        let meter = Arc::<Meter>::default();
        let stage = Self { board, memory, meter, clock, specs };
        stage.pass(26 * 3_600 + 600).await;
        let store = Layered::new(Arc::new(stage.memory.clone()), Arc::clone(&stage.meter));
        let store = Layered::new(Arc::new(store), Timeout::after(PATIENCE));
        let followed = Arc::clone(&stage.board);
        tokio::spawn(async move { followed.follow(&store).await });
        stage
    }

    async fn pass(&self, seconds: u64) {
        self.pass_ms(seconds * 1_000).await;
    }

    async fn pass_ms(&self, millis: u64) {
        timers::until(&*self.clock, Some(self.clock.now().mono + Duration::from_millis(millis))).await;
    }

    fn calls(&self) -> u64 {
        self.meter.calls.load(Ordering::Relaxed)
    }

    /// What is shown once everything was read.
    async fn filled(&self) -> Arc<Snapshot> {
        self.board.look(24);
        self.pass(12).await;
        let shown = self.board.look(24);
        assert_eq!(shown.filled, shown.hours.len());
        shown
    }

    async fn claim(&self, slot: &Slot, token: u128) -> crate::slot::Lease {
        self.claim_for(slot, token, 60).await
    }

    async fn claim_for(&self, slot: &Slot, token: u128, seconds: u64) -> crate::slot::Lease {
        let (node, ttl) = (NodeName::new("a").unwrap(), Duration::from_secs(seconds));
        let request =
            ClaimRequest { past: true, ..ClaimRequest::new(slot.clone(), Token::from_bits(token), node, ttl, 3) };
        match self.memory.claim(&request).await.unwrap() {
            Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
            other => panic!("{other:?}"),
        }
    }

    async fn succeed(&self, slot: &Slot, token: u128) {
        let lease = self.claim(slot, token).await;
        let run = RunRecord::ended(&lease, Outcome::Success);
        self.memory.complete(&lease, &run, Duration::from_secs(86_400)).await.unwrap();
    }

    async fn fail(&self, slot: &Slot, token: u128) {
        let lease = self.claim(slot, token).await;
        let output = OutputTail {
            text: "tried\nNo space left on device \u{1b}[2J\n\n".to_owned(),
            dropped_bytes: 0,
            loss: None,
        };
        let run = RunRecord { exit_code: Some(1), output: Some(output), ..RunRecord::ended(&lease, Outcome::Failure) };
        self.memory.fail(&lease, &run, Duration::ZERO).await.unwrap();
    }
}

fn slot(job: &str, hour: u32) -> Slot {
    Slot::parse(job, &format!("2026-11-21T{hour:02}Z"), &format!("2026-11-21T{:02}Z", hour + 1)).unwrap()
}

fn cell(shown: &Snapshot, job: &str, back: usize) -> CellState {
    shown.row(job).unwrap().cells[shown.hours.len() - 1 - back].state
}

fn audit() -> Audit {
    let [verb, who, host, why] = [(); 4].map(|()| String::new());
    Audit { verb, who, host, why, at: chrono::DateTime::UNIX_EPOCH }
}

#[tokio::test(start_paused = true)]
async fn a_board_that_nobody_looks_at_asks_nothing_and_is_forgotten_a_minute_after_the_last_look() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.pass(3_600).await;
    assert_eq!(stage.calls(), 0);
    let first = stage.board.look(24);
    assert!(!first.is_read() && first.rows.is_empty());
    stage.pass(30).await;
    assert!(stage.board.look(24).is_read());
    stage.pass(70).await;
    let calls = stage.calls();
    stage.pass(3_600).await;
    assert_eq!(stage.calls(), calls, "nobody has looked for a minute");
    assert!(!stage.board.look(24).is_read(), "what was known then is not shown");
}

#[tokio::test(start_paused = true)]
async fn fifty_viewers_cost_the_store_what_one_costs() {
    let mut counts = Vec::new();
    for viewers in [1, 50] {
        let stage = Stage::with(&[("push", "0 * * * *"), ("mail", "30 * * * *")]).await;
        stage.filled().await;
        let before = stage.calls();
        let watching: Vec<_> = (0..viewers).map(|_| stage.board.watch()).collect();
        for _ in 0..60 {
            (0..viewers).for_each(|_| {
                stage.board.look(24);
            });
            stage.pass(1).await;
        }
        drop(watching);
        counts.push(stage.calls() - before);
    }
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0] <= 30, "{counts:?} calls in a quiet minute");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_claims_many_slots_goes_first_and_one_that_always_does_is_looked_at_all_the_same() {
    let mut counts = Vec::new();
    for always in [false, true] {
        let stage = Stage::with(&[("push", "0 * * * *")]).await;
        stage.board.look(24);
        let mut calls = Vec::new();
        for second in 0..2 {
            for _ in 0..95 {
                let events = if second == 0 || always { 15 } else { 1 };
                (0..events).for_each(|_| stage.board.event(Some(&slot("push", 14)), &Event::Shed));
                stage.pass_ms(10).await;
            }
            calls.push(stage.calls());
        }
        counts.push((calls[0], calls[1] - calls[0]));
    }
    assert!(counts.iter().all(|(first, then)| *first <= 2 && *then > 10), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_newest_hour_is_read_first_and_no_call_asks_for_more_than_a_hundred_slots() {
    let names: Vec<String> = (0..150).map(|place| format!("job-{place:03}")).collect();
    let jobs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "0 * * * *")).collect();
    let stage = Stage::with(&jobs).await;
    let mut watching = stage.board.watch();
    stage.board.look(24);
    stage.pass(8).await;
    assert_eq!(stage.board.look(24).filled, 24);
    assert_eq!(stage.meter.inspected.load(Ordering::Relaxed), 2 + 23 * 2 + 2, "current; each hour; current once more");
    let mut hours = Vec::new();
    while let Ok(patch) = watching.try_recv() {
        if patch.event == "cells" {
            let data: Value = serde_json::from_str(&patch.data).unwrap();
            hours.push(data["hour"].as_str().unwrap().to_owned());
        }
    }
    assert!(hours.windows(2).all(|pair| pair[0] >= pair[1]), "{hours:?}");
    assert!(hours.len() >= 23, "{hours:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_slot_has_come_to_stands_in_its_hour() {
    let stage = Stage::with(&[("push", "0 * * * *"), ("daily", "0 3 * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    for token in 2..5 {
        stage.fail(&slot("daily", 14), token).await;
    }
    let missed = slot("push", 13);
    stage.memory.close(&missed, 3, &NodeName::new("a").unwrap()).await.unwrap();
    let shown = stage.filled().await;
    assert_eq!(
        [0, 1, 2].map(|back| cell(&shown, "push", back)),
        [CellState::Done, CellState::Missed, CellState::Missed]
    );
    assert_eq!(cell(&shown, "daily", 11), CellState::Missed, "03:00, which nobody ran");
    assert_eq!(cell(&shown, "daily", 0), CellState::Failed, "a slot without a tick that somebody ran");
    assert_eq!(cell(&shown, "daily", 5), CellState::NotDue);
    let row = shown.row("push").unwrap();
    assert_eq!(row.view.current.as_ref().unwrap().slot, "2026-11-21T14Z");
    let oldest = shown.row("push").unwrap().cells[0];
    assert_eq!(oldest.state, CellState::Missed, "the job was known by then");
}

#[tokio::test(start_paused = true)]
async fn what_happens_is_shown_within_half_a_second_and_read_in_one_call() {
    let names: Vec<String> = (0..20).map(|place| format!("job-{place:03}")).collect();
    let jobs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "0 * * * *")).collect();
    let stage = Stage::with(&jobs).await;
    stage.filled().await;
    stage.pass_ms(300).await;
    let before = stage.meter.inspected.load(Ordering::Relaxed);
    let mut watching = stage.board.watch();
    for (token, name) in (1..).zip(&names) {
        stage.succeed(&slot(name, 14), token).await;
    }
    stage.pass_ms(450).await;
    assert_eq!(stage.meter.inspected.load(Ordering::Relaxed), before + 1);
    assert!(names.iter().all(|name| cell(&stage.board.look(24), name, 0) == CellState::Done));
    let patch: Arc<Patch> = watching.recv().await.unwrap();
    let data: Value = serde_json::from_str(&patch.data).unwrap();
    assert_eq!((patch.event, data["rows"].as_array().unwrap().len()), ("rows", 20));
    assert_eq!(data["rows"][0]["cells"][0]["state"], "done");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_leaves_what_was_known_with_its_age_and_comes_back() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    let known = stage.filled().await;
    stage.meter.down.store(true, Ordering::Relaxed);
    stage.pass(12).await;
    let away = stage.board.look(24);
    assert!(away.store.error.as_ref().unwrap().contains("down"));
    assert!(matches!(away.concerns[0].what, ConcernKind::StoreAway { .. }));
    assert_eq!(away.rows.len(), known.rows.len());
    assert!(away.age().unwrap() >= Duration::from_secs(2), "{:?}", away.age());
    let calls = stage.calls();
    stage.pass(20).await;
    stage.board.look(24);
    assert!(stage.calls() - calls <= 5, "a store that is away is not pressed");
    stage.succeed(&slot("push", 14), 1).await;
    stage.meter.down.store(false, Ordering::Relaxed);
    stage.pass(7).await;
    let back = stage.board.look(24);
    assert_eq!((back.store.error.as_deref(), cell(&back, "push", 0)), (None, CellState::Done));
}

#[tokio::test(start_paused = true)]
async fn what_a_disabled_job_did_not_run_is_disabled_until_the_job_runs_again() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let shown = stage.filled().await;
    assert_eq!([0, 1].map(|ago| cell(&shown, "push", ago)), [CellState::Done, CellState::Missed]);
    for (enabled, before) in [(false, CellState::Disabled), (true, CellState::Missed)] {
        let spec = Arc::new(JobSpec { enabled, ..(*stage.specs[0]).clone() });
        stage.memory.register(&[JobEntry::of(&spec, stage.clock.now().wall)]).await.unwrap();
        stage.board.plan(&[spec], "c0ffee");
        stage.pass(15).await;
        let shown = stage.filled().await;
        assert_eq!([0, 1].map(|ago| cell(&shown, "push", ago)), [CellState::Done, before], "enabled: {enabled}");
        assert_eq!(shown.row("push").unwrap().cells[22].due, u16::from(enabled), "nobody was to run it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_told_from_one_that_is_away_and_each_becomes_the_other() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    stage.filled().await;
    let seen = async || {
        stage.pass(12).await;
        let shown = stage.board.look(24);
        (shown.store.refuses, shown.store.away_since.is_some(), shown.concerns.first().map(|first| first.what.clone()))
    };
    stage.meter.refuses.store(true, Ordering::Relaxed);
    assert!(
        matches!(seen().await, (true, true, Some(ConcernKind::StoreRefuses { error })) if error.contains("password"))
    );
    stage.meter.down.store(true, Ordering::Relaxed);
    assert!(matches!(seen().await, (false, true, Some(ConcernKind::StoreAway { .. }))));
    stage.meter.down.store(false, Ordering::Relaxed);
    assert!(matches!(seen().await, (true, true, Some(ConcernKind::StoreRefuses { .. }))));
    stage.meter.read_only.store(true, Ordering::Relaxed);
    assert!(matches!(seen().await, (false, true, Some(ConcernKind::StoreAway { .. }))), "a failover ends that");
    stage.meter.read_only.store(false, Ordering::Relaxed);
    stage.meter.refuses.store(false, Ordering::Relaxed);
    assert_eq!(seen().await, (false, false, None));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_away_is_told_within_twelve_seconds_with_the_age_of_what_is_shown() {
    for (phase, hangs) in (0..10).flat_map(|phase| [(phase, false), (phase, true)]) {
        let stage = Stage::with(&[("push", "0 * * * *")]).await;
        stage.filled().await;
        stage.pass(phase).await;
        if hangs { &stage.meter.hangs } else { &stage.meter.down }.store(true, Ordering::Relaxed);
        stage.pass(12).await;
        let away = stage.board.look(24);
        assert!(
            away.store.error.is_some() && away.store.away_since.is_some(),
            "{phase} s after a look, hangs: {hangs}"
        );
        assert!(matches!(away.concerns[0].what, ConcernKind::StoreAway { .. }), "{:?}", away.concerns);
        assert!((12..=22).contains(&away.age().unwrap().as_secs()), "{phase}, {hangs}: {:?}", away.age());
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_the_node_lost_before_anybody_looked_is_away_since_then() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.meter.down.store(true, Ordering::Relaxed);
    stage.pass(5).await;
    let since = stage.board.look(24).store_time;
    stage.board.event(None, &Event::StoreLost { error: "connection refused".to_owned(), kind: ErrorKind::Unavailable });
    stage.pass(600).await;
    stage.board.look(24);
    stage.pass(20).await;
    let away = stage.board.look(24);
    assert_eq!((away.store.away_since, away.concerns[0].since), (Some(since), since), "{:?}", away.store);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_answers_and_that_the_node_cannot_use_is_a_concern_until_it_can() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    // Nobody looks yet.
    let error = "OOM command not allowed when used memory > 'maxmemory'".to_owned();
    let full = Event::StoreLost { error, kind: ErrorKind::Overloaded };
    stage.board.event(None, &full);
    stage.pass(30).await;
    let shown = stage.filled().await;
    assert_eq!(shown.store.away_since, None);
    let ConcernKind::StoreUnusable { error } = &shown.concerns[0].what else { panic!("{:?}", shown.concerns) };
    assert!(error.contains("OOM"), "{error}");
    stage.pass(12).await;
    assert_eq!(stage.board.look(24).concerns, shown.concerns, "since then, not since now");
    // Away is worse.
    stage.meter.down.store(true, Ordering::Relaxed);
    stage.pass(12).await;
    let away = stage.board.look(24);
    assert!(matches!(away.concerns[..], [Concern { what: ConcernKind::StoreAway { .. }, .. }]), "{:?}", away.concerns);
    stage.meter.down.store(false, Ordering::Relaxed);
    stage.pass(7).await;
    assert_eq!(stage.board.look(24).concerns.len(), 0, "the node may not have tried it again");
    stage.pass(12).await;
    assert_eq!(stage.board.look(24).concerns, shown.concerns);
    stage.board.event(None, &Event::StoreReached { away: Some(Duration::from_secs(31)) });
    stage.pass(1).await;
    assert_eq!(stage.board.look(24).concerns.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn slots_that_ended_and_whose_verdict_nobody_could_record_need_somebody_once_each() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 11), 1).await;
    let failing = |shown: &Arc<Snapshot>| -> Vec<(String, u32)> {
        let failing = shown.concerns.iter().filter_map(|concern| match &concern.what {
            ConcernKind::Failing { slot, slots, .. } => Some((slot.to_string(), *slots)),
            _ => None,
        });
        failing.collect()
    };
    let told = |slot: &str, slots| vec![(slot.to_owned(), slots)];
    let owes = async |hour: Option<u32>| {
        let job = stage.specs[0].name.clone();
        let behind = hour.map(|hour| (job.clone(), slot("push", hour).start())).into_iter().collect();
        let job_hashes = [(job, String::new())].into();
        let report = NodeReport::new(NodeName::new("a").unwrap(), "i1", stage.clock.now().wall);
        stage.memory.heartbeat(&NodeReport { behind, job_hashes, ..report }).await.unwrap();
    };
    owes(None).await;
    assert_eq!(failing(&stage.filled().await), [], "nobody owes a verdict: the job may have been disabled then");
    owes(Some(12)).await;
    stage.pass(15).await;
    assert_eq!(failing(&stage.board.look(24)), told("2026-11-21T13Z", 2), "the slot of 14:00 lasts");
    let node = NodeName::new("a").unwrap();
    stage.memory.close(&slot("push", 12), 3, &node).await.unwrap();
    owes(Some(12)).await;
    stage.pass(15).await;
    assert_eq!(failing(&stage.board.look(24)), told("2026-11-21T13Z", 2), "one is counted by the store now");
    stage.memory.close(&slot("push", 13), 3, &node).await.unwrap();
    owes(None).await;
    stage.pass(15).await;
    assert_eq!(failing(&stage.board.look(24)), told("2026-11-21T13Z", 2));
    stage.succeed(&slot("push", 14), 2).await;
    stage.pass(15).await;
    assert!(failing(&stage.board.look(24)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_was_heard_until_the_store_took_nothing_more_is_not_lost() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    let beat = async |name: &str| {
        let report = NodeReport::new(NodeName::new(name).unwrap(), "i1", stage.clock.now().wall);
        stage.memory.heartbeat(&report).await.unwrap();
    };
    beat("gone").await;
    stage.pass(60).await;
    beat("here").await;
    stage.pass(10).await;
    let full = Event::StoreLost { error: "OOM".to_owned(), kind: ErrorKind::Overloaded };
    stage.board.event(None, &full);
    let lost = |shown: &Snapshot| -> Vec<String> {
        let lost = shown.concerns.iter().filter_map(|concern| match &concern.what {
            ConcernKind::NodeLost { node, .. } => Some(node.to_string()),
            _ => None,
        });
        lost.collect()
    };
    stage.filled().await;
    stage.pass(120).await;
    stage.board.look(24);
    stage.pass(12).await;
    assert_eq!(lost(&stage.board.look(24)), ["gone"]);
    stage.board.event(None, &Event::StoreReached { away: None });
    stage.pass(1).await;
    assert_eq!(lost(&stage.board.look(24)), ["gone"], "nobody has had the time to be heard");
    stage.pass(12).await;
    assert_eq!(lost(&stage.board.look(24)), ["gone"]);
    stage.pass(12).await;
    assert_eq!(lost(&stage.board.look(24)), ["here", "gone"], "who is not heard by now is");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_no_node_starts_again_because_its_start_deadline_has_passed_needs_somebody_before_it_is_over() {
    let stage = Stage::with(&[("push", "0 * * * *"), ("sweep", "15 * * * *")]).await;
    let limited = |spec: &Arc<JobSpec>| {
        let mut spec = (**spec).clone();
        spec.policy.start_deadline = Some(Duration::from_secs(900));
        Arc::new(spec)
    };
    stage.board.plan(&stage.specs.iter().map(limited).collect::<Vec<_>>(), "c0ffee");
    for job in ["push", "sweep"] {
        stage.memory.close(&slot(job, 13), 3, &NodeName::new("a").unwrap()).await.unwrap();
        stage.succeed(&slot(job, 13), 1).await;
    }
    stage.fail(&slot("push", 14), 2).await;
    let late = |shown: &Snapshot| -> Vec<String> {
        let late = shown.concerns.iter().filter_map(|concern| match &concern.what {
            ConcernKind::Failing { job, slot, too_late: true, trying: false, .. } => Some(format!("{job} {slot}")),
            _ => None,
        });
        late.collect()
    };
    let shown = stage.filled().await;
    assert_eq!((late(&shown), shown.row("push").unwrap().is_too_late()), (vec![], false), "at 14:10");
    stage.pass(300).await;
    stage.board.look(24);
    stage.pass(12).await;
    let shown = stage.board.look(24);
    assert_eq!(
        (late(&shown), shown.row("push").unwrap().is_too_late()),
        (vec!["push 2026-11-21T14Z".to_owned()], true)
    );
    stage.pass(900).await;
    stage.board.look(24);
    stage.pass(12).await;
    let shown = stage.board.look(24);
    assert!(shown.row("sweep").unwrap().is_too_late(), "at 14:30, from its tick on");
}

#[tokio::test(start_paused = true)]
async fn what_the_store_says_itself_is_a_concern_at_once() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    stage.filled().await;
    stage.board.event(None, &Event::StoreLost { error: "full".to_owned(), kind: ErrorKind::Overloaded });
    stage.pass(1).await;
    let concerns = Arc::clone(&stage.board.look(24).concerns);
    assert!(matches!(concerns[..], [Concern { what: ConcernKind::StoreUnusable { .. }, .. }]), "{concerns:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_not_said_to_answer_though_the_node_knows_first() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    stage.filled().await;
    stage.meter.down.store(true, Ordering::Relaxed);
    stage.board.event(None, &Event::StoreLost { error: "down".to_owned(), kind: ErrorKind::Unavailable });
    for _ in 0..30 {
        stage.pass(1).await;
        let concerns = Arc::clone(&stage.board.look(24).concerns);
        let is_away = |concern: &Concern| matches!(concern.what, ConcernKind::StoreAway { .. });
        assert!(concerns.iter().all(is_away), "{concerns:?}");
    }
    assert_eq!(stage.board.look(24).concerns.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_concern_with_how_it_ended_until_it_is_mended() {
    let stage = Stage::with(&[("push", "0 * * * *"), ("mail", "0 * * * *")]).await;
    stage.succeed(&slot("mail", 14), 9).await;
    for token in 1..4 {
        stage.fail(&slot("push", 14), token).await;
    }
    let shown = stage.filled().await;
    assert_eq!(shown.concerns.len(), 1, "{:?}", shown.concerns);
    let ConcernKind::Failing { job, slot: key, verdict, fault, trying, .. } = &shown.concerns[0].what else {
        panic!("{:?}", shown.concerns)
    };
    assert_eq!(
        (job.as_str(), &*key.to_string(), *verdict, *trying),
        ("push", "2026-11-21T14Z", Verdict::Failed, false)
    );
    let fault = fault.as_ref().unwrap();
    assert_eq!((fault.attempts, fault.exit_code), (3, Some(1)));
    assert_eq!(fault.last_line.as_deref(), Some("No space left on device \\x1b[2J"), "fit to be shown");
    stage.memory.reset(&slot("push", 14), &audit()).await.unwrap();
    stage.succeed(&slot("push", 14), 7).await;
    stage.pass(11).await;
    assert!(stage.board.look(24).concerns.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_look_tells_how_each_job_fares_and_so_does_the_first_after_a_minute_in_which_nobody_looked() {
    let stage = Stage::with(&[("mail", "0 * * * *"), ("push", "0 * * * *")]).await;
    let alert_after = Some(Duration::from_secs(2 * 3_600));
    let specs = [Arc::clone(&stage.specs[0]), Arc::new(JobSpec { alert_after, ..(*stage.specs[1]).clone() })];
    stage.board.plan(&specs, "c0ffee");
    // One fails hour after hour, and is running once more; the other did well this very hour, and runs no more.
    let last_hour = slot("mail", 13);
    stage.fail(&last_hour, 1).await;
    stage.memory.close(&last_hour, 1, &NodeName::new("a").unwrap()).await.unwrap();
    stage.claim(&slot("mail", 14), 2).await;
    stage.succeed(&slot("push", 14), 3).await;
    for look in ["the first", "the first after a minute"] {
        let shown = stage.board.read(24).await;
        assert!(shown.is_read(), "{look}");
        let told: Vec<_> = shown.concerns.iter().filter_map(Concern::job).map(JobName::as_str).collect();
        assert_eq!(told, ["mail"], "{look}: {:?}", shown.concerns);
        let latest = |job| shown.row(job).unwrap().view.latest.clone();
        assert_eq!(latest("mail").failing.unwrap().last.to_string(), "2026-11-21T13Z", "{look}");
        assert!(latest("push").success.is_some() && !shown.row("push").unwrap().late, "{look}");
        stage.pass(90).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_lost_or_differ_are_concerns_and_one_that_was_stopped_is_none() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let report = |name: &str, version: &str| NodeReport {
        version: version.to_owned(),
        ..NodeReport::new(NodeName::new(name).unwrap(), "i", stage.clock.now().wall)
    };
    stage.memory.heartbeat(&report("lost", "0.1.0")).await.unwrap();
    stage.memory.heartbeat(&NodeReport { stopped: true, ..report("stopped", "0.1.0") }).await.unwrap();
    stage.board.look(24);
    stage.pass(25).await;
    let off = NodeReport { clock_offset_ms: -3_000, ..report("b", "0.2.0") };
    for report in [report("a", "0.1.0"), off] {
        stage.memory.heartbeat(&report).await.unwrap();
    }
    stage.pass(11).await;
    let shown = stage.board.look(24);
    let words: Vec<Value> = shown.concerns.iter().map(|concern| serde_json::to_value(concern).unwrap()).collect();
    let words: Vec<&str> = words.iter().map(|concern| concern["concern"].as_str().unwrap()).collect();
    assert_eq!(words, ["node_lost", "clock_off", "versions_differ"]);
}

#[tokio::test(start_paused = true)]
async fn another_hour_moves_the_columns_and_a_job_with_many_slots_an_hour_counts_them() {
    let stage = Stage::with(&[("tick", "* * * * *"), ("push", "0 * * * *")]).await;
    let done = Slot::parse("tick", "2026-11-21T14:10Z", "2026-11-21T14:11Z").unwrap();
    stage.succeed(&done, 1).await;
    let shown = stage.filled().await;
    let cells = &shown.row("tick").unwrap().cells;
    assert_eq!((cells[23].done, cells[23].due, cells[23].state), (1, 11, CellState::Missed));
    assert!(cells[..23].iter().all(|cell| (cell.state, cell.due) == (CellState::Missed, 60)), "{cells:?}");
    let first = shown.hours[0];
    stage.pass(50 * 60).await;
    let next = stage.filled().await;
    assert_eq!((next.hours.len(), next.hours[0]), (24, first + chrono::TimeDelta::hours(1)));
    assert_eq!(cell(&next, "push", 0), CellState::Pending);
    let cells = &next.row("tick").unwrap().cells;
    assert_eq!((cells[22].done, cells[22].due), (1, 60));
    assert!(cells[23].due <= 1, "{cells:?}");
}

#[tokio::test(start_paused = true)]
async fn one_who_comes_back_goes_on_where_it_was_or_begins_anew() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    let shown = stage.filled().await;
    stage.succeed(&slot("push", 14), 1).await;
    stage.pass(1).await;
    let (_, since) = stage.board.watch_after(Some(&shown.version));
    assert!(since.unwrap().iter().any(|patch| patch.event == "rows"));
    for unknown in ["other-1", "boot-9999999", "boot-x", ""] {
        assert!(stage.board.watch_after(Some(unknown)).1.is_none(), "{unknown}");
    }
    let now = stage.board.look(24);
    assert_eq!(stage.board.watch_after(Some(&now.version)).1.map(|patches| patches.len()), Some(0));
    stage.pass(70).await;
    stage.pass(1).await;
    assert!(stage.board.watch_after(Some(&now.version)).1.is_none(), "it was forgotten meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_given_up_is_a_concern() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let spec = JobSpec { notify: vec!["ops".to_owned()], ..(*stage.specs[0]).clone() };
    stage.board.plan(&[Arc::new(spec)], "c0ffee");
    let key = MessageKey::new(JobName::new("push").unwrap(), "2026-11-21T13Z missed", "ops").unwrap();
    let node = NodeName::new("a").unwrap();
    stage.memory.tell(&key, &node, Token::from_bits(1), Duration::from_secs(60)).await.unwrap();
    let gave_up = Delivery::GaveUp { error: "410 Gone".to_owned() };
    stage.memory.told(&key, Token::from_bits(1), &gave_up).await.unwrap();
    let again = MessageKey::new(JobName::new("push").unwrap(), "2026-11-21T14Z failed", "ops").unwrap();
    stage.memory.tell(&again, &node, Token::from_bits(2), Duration::from_secs(60)).await.unwrap();
    stage.memory.told(&again, Token::from_bits(2), &gave_up).await.unwrap();
    let shown = stage.filled().await;
    assert_eq!(shown.concerns.len(), 1, "one for a sink and a reason: {:?}", shown.concerns);
    let ConcernKind::Undelivered { job, sink, error, messages: 2 } = &shown.concerns[0].what else {
        panic!("{:?}", shown.concerns)
    };
    assert_eq!((job.as_ref().unwrap().as_str(), &**sink, &**error), ("push", "ops", "410 Gone"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_is_told_within_a_second_though_nobody_says_so() {
    // One whose tick was, and one that an operator started before its own.
    let stage = Stage::with(&[("push", "0 * * * *"), ("long", "59 * * * *")]).await;
    stage.filled().await;
    for (job, token) in [("push", 1), ("long", 2)] {
        stage.claim_for(&slot(job, 14), token, 6).await;
        stage.pass_ms(500).await;
        assert_eq!(cell(&stage.board.look(24), job, 0), CellState::Running, "{job}");
        stage.pass_ms(5_000).await;
        assert_eq!(cell(&stage.board.look(24), job, 0), CellState::Running, "{job}");
        stage.pass_ms(1_500).await;
        assert_eq!(cell(&stage.board.look(24), job, 0), CellState::Retrying, "{job}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_a_concern_and_everything_else_is_shown_until_it_can() {
    let stage = Stage::with(&[("bad", "0 * * * *"), ("push", "0 * * * *")]).await;
    for job in ["bad", "push"] {
        stage.succeed(&slot(job, 14), 1).await;
    }
    stage.memory.spoil(&["bad@2026-11-21T14Z", "bad@2026-11-21T12Z", "bad"]);
    let shown = stage.filled().await;
    assert_eq!((&shown.store.error, shown.takes_changes()), (&None, true));
    assert_eq!([0, 1].map(|back| cell(&shown, "push", back)), [CellState::Done, CellState::Missed]);
    assert_eq!(
        [0, 1, 2].map(|back| cell(&shown, "bad", back)),
        [CellState::Unknown, CellState::Missed, CellState::Unknown]
    );
    assert!(shown.row("bad").unwrap().view.current.is_none());
    let what = |shown: &Snapshot| -> Vec<String> {
        let told = shown.concerns.iter().filter_map(|concern| match &concern.what {
            ConcernKind::Unreadable { job, slot, records, error } => {
                Some(format!("{} {} {records}: {error}", job.as_ref()?, slot.as_ref()?))
            }
            _ => None,
        });
        told.collect()
    };
    let error = "memory:: inspect: bad@2026-11-21T14Z: a key of another type";
    assert_eq!(what(&shown), [format!("bad 2026-11-21T14Z 3: {error}")]);
    // Each round looks whether they can be read by now: each by itself, and the rest together.
    let before = stage.meter.inspected.load(Ordering::Relaxed);
    stage.pass(60).await;
    let looks = stage.meter.inspected.load(Ordering::Relaxed) - before;
    assert!((12..=32).contains(&looks), "{looks} looks in a minute");
    assert_eq!(what(&stage.board.look(24)).len(), 1);
    stage.memory.spoil(&[]);
    stage.pass(12).await;
    let shown = stage.board.look(24);
    assert_eq!([0, 2].map(|back| cell(&shown, "bad", back)), [CellState::Done, CellState::Missed]);
    assert_eq!(what(&shown), [""; 0], "within a round");
    assert!(shown.row("bad").unwrap().view.current.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_costs_no_more_than_a_look_for_each_renewal() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.filled().await;
    let lease = stage.claim_for(&slot("push", 14), 1, 6).await;
    stage.pass(1).await;
    let before = stage.meter.inspected.load(Ordering::Relaxed);
    for _ in 0..15 {
        stage.pass(2).await;
        stage.memory.renew(&lease).await.unwrap();
        stage.board.look(24);
    }
    stage.pass(1).await;
    let looks = stage.meter.inspected.load(Ordering::Relaxed) - before;
    assert!((1..=20).contains(&looks), "{looks} looks at 15 renewals in half a minute");
    assert_eq!(cell(&stage.board.look(24), "push", 0), CellState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_slot_each_second_shows_what_those_of_this_hour_have_come_to_the_worst_first() {
    let stage = Stage::with(&[("tick", "* * * * * *")]).await;
    let second = |at: i64| {
        let start = stage.clock.now().wall + chrono::TimeDelta::seconds(at);
        let name = JobName::new("tick").unwrap();
        Slot::new(name, start, start + chrono::TimeDelta::seconds(1)).unwrap()
    };
    for back in 1..=200 {
        stage.succeed(&second(-back), u128::from(back.unsigned_abs())).await;
    }
    let shown = stage.filled().await;
    let of = |shown: &Snapshot| shown.row("tick").unwrap().cells[23];
    let first = of(&shown);
    assert_eq!(first.state, CellState::Missed, "since somebody looks nobody runs it: {first:?}");
    assert!(first.done >= 100 && first.due > first.done, "{first:?}");
    let watching = stage.board.watch();
    stage.pass(130).await;
    drop(watching);
    let later = of(&stage.board.look(24));
    assert!(
        later.due + later.unread >= first.due + first.unread + 115,
        "{first:?} {later:?}: those that came meanwhile count"
    );
    let current = stage.board.look(24).row("tick").unwrap().view.current.clone().unwrap();
    let age = stage.clock.now().wall - current.start;
    assert!(age.num_seconds() <= 12, "{age}");
    for token in 1_000..1_003 {
        stage.fail(&second(-30), token).await;
    }
    stage.pass(1).await;
    let failed = of(&stage.board.look(24));
    assert_eq!((failed.state, failed.attempts), (CellState::Failed, 3), "the worst first");
}

#[tokio::test(start_paused = true)]
async fn a_message_about_the_cluster_that_waits_for_long_is_a_concern_too() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let key = MessageKey::new(Topic::Cluster, "b silent", "ops").unwrap();
    let node = NodeName::new("a").unwrap();
    stage.memory.tell(&key, &node, Token::from_bits(1), Duration::from_secs(60)).await.unwrap();
    assert!(stage.filled().await.concerns.is_empty(), "it was begun just now");
    let mut watching = stage.board.watch();
    stage.pass(6 * 60).await;
    while watching.try_recv().is_ok() {}
    let shown = stage.board.look(24);
    let concern = serde_json::to_value(&shown.concerns[..]).unwrap();
    assert_eq!((&concern[0]["concern"], &concern[0]["sink"]), (&Value::from("undelivered"), &Value::from("ops")));
    assert!(concern[0]["job"].is_null(), "{concern}");
}

#[tokio::test(start_paused = true)]
async fn what_was_over_before_the_job_was_known_is_missed_by_nobody() {
    // Known since noon of the day before, that is after its last tick.
    let stage = Stage::with(&[("early", "0 6 20 11 *"), ("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let shown = stage.filled().await;
    assert!(shown.row("early").unwrap().view.current.is_none(), "{:?}", shown.row("early"));
    assert!(shown.row("push").unwrap().view.current.is_some() && shown.concerns.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_is_late_from_alert_after_its_last_success_on_until_the_next_one_and_not_while_it_is_paused() {
    let stage = Stage::with(&[("push", "0 * * * *"), ("never", "0 * * * *"), ("mail", "0 * * * *")]).await;
    let alert_after = Some(Duration::from_secs(2 * 3_600));
    let watched = |spec: &Arc<JobSpec>| Arc::new(JobSpec { alert_after, ..(**spec).clone() });
    let specs = [watched(&stage.specs[0]), watched(&stage.specs[1]), Arc::clone(&stage.specs[2])];
    stage.board.plan(&specs, "c0ffee");
    stage.succeed(&slot("push", 14), 1).await;
    let _watching = stage.board.watch();
    let late = || {
        let shown = stage.board.look(24);
        let is_late = |concern: &&Concern| matches!(concern.what, ConcernKind::Late { .. });
        let told: Vec<Concern> = shown.concerns.iter().filter(is_late).cloned().collect();
        let rows: Vec<&str> = shown.rows.iter().filter(|row| row.late).map(|row| row.view.job.as_str()).collect();
        let names: Vec<&str> = told.iter().filter_map(|concern| concern.job().map(JobName::as_str)).collect();
        assert_eq!(names.iter().rev().copied().collect::<Vec<_>>(), rows, "and the filter finds them");
        serde_json::to_value(told).unwrap()
    };
    let never = serde_json::json!({
        // Known since noon of the day before.
        "since": "2026-11-20T14:00:00Z", "concern": "late", "job": "never", "last_success": null, "alert_after_s": 7200.0,
    });
    stage.filled().await;
    stage.pass(2 * 3_600 - 30).await;
    assert_eq!(late(), serde_json::json!([never]), "two hours are not over for the other");
    stage.pass(30).await;
    let push = serde_json::json!({
        "since": "2026-11-21T16:10:00Z", "concern": "late", "job": "push", "last_success": "2026-11-21T14:10:00Z",
        "alert_after_s": 7200.0,
    });
    assert_eq!(late(), serde_json::json!([push, never]), "of a job without alert_after nothing is said");
    stage.memory.pause(&stage.specs[1].name, None, &audit()).await.unwrap();
    stage.succeed(&slot("push", 16), 2).await;
    stage.pass(11).await;
    assert_eq!(late(), serde_json::json!([]));
    stage.memory.resume(&stage.specs[1].name, &audit()).await.unwrap();
    stage.pass(11).await;
    assert_eq!(late(), serde_json::json!([never]));
}

#[tokio::test(start_paused = true)]
async fn a_node_with_another_file_is_a_concern_with_its_jobs_since_that_was_seen_and_until_it_has_the_others() {
    let stage = Stage::with(&[("push", "0 * * * *")]).await;
    stage.succeed(&slot("push", 14), 1).await;
    let beat = async |of_b: &[(&str, &str)]| {
        for (name, jobs) in [("a", &[("push", "1")][..]), ("b", of_b), ("c", &[("push", "1")])] {
            let hash = |(job, hash): &(&str, &str)| (JobName::new(job).unwrap(), (*hash).to_owned());
            let report = NodeReport {
                job_hashes: jobs.iter().map(hash).collect(),
                ..NodeReport::new(NodeName::new(name).unwrap(), "i", stage.clock.now().wall)
            };
            stage.memory.heartbeat(&report).await.unwrap();
        }
    };
    beat(&[("push", "1")]).await;
    assert_eq!(stage.filled().await.concerns.len(), 0);
    let before = stage.clock.now().wall;
    beat(&[("push", "2"), ("own", "1")]).await;
    stage.pass(11).await;
    let found = stage.board.look(24).concerns.to_vec();
    let [Concern { since, what: ConcernKind::FilesDiffer { node, jobs } }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((node.as_str(), jobs.iter().map(JobName::as_str).collect::<Vec<_>>()), ("b", vec!["own", "push"]));
    assert!(*since > before && *since <= stage.clock.now().wall, "{since}");
    beat(&[("push", "2"), ("own", "1")]).await;
    stage.pass(11).await;
    assert_eq!(*stage.board.look(24).concerns, found, "since then, not since now");
    beat(&[("push", "1")]).await;
    stage.pass(11).await;
    assert_eq!(stage.board.look(24).concerns.len(), 0);
}
