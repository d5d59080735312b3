//! For tests: records made by hand, and a cluster in miniature with a store in memory, a clock that is moved by hand, and nodes that claim
//! and fail.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use crate::admin::AdminSession;
use crate::clock::{Clock, ManualClock};
use crate::job::{JobName, NodeName};
use crate::schedule::Timetable;
use crate::slot::{
    Audit, DoneMark, Holder, Lease, Mark, Outcome, OutputTail, RunRecord, Slot, SlotRecord, Token, Trigger, Verdict,
    VerdictRecord,
};
use crate::store::memory::MemoryStore;
use crate::store::{Claim, ClaimRequest, JobEntry, JobOrigin, LockStore, NodeReport, Pause, Store, StoreOptions};

/// Twelve minutes into the slot of every record here.
pub(crate) const NOON: &str = "2026-11-21T12:12:00Z";

/// How long records are kept.
pub(crate) const KEPT: Duration = Duration::from_secs(7 * 86_400);

pub(crate) fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(crate) fn entry(name: &str) -> JobEntry {
    JobEntry {
        name: JobName::new(name).unwrap(),
        schedule: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        command: None,
        origin: JobOrigin::File,
        first_seen: at("2026-11-01T00:00:00Z"),
    }
}

/// What a node without jobs says of itself.
pub(crate) fn report(name: &str, started_at: DateTime<Utc>) -> NodeReport {
    NodeReport {
        version: "0.1.0".to_owned(),
        config_hash: "c0ffee".to_owned(),
        zones: None,
        ..NodeReport::new(node(name), "i1", started_at)
    }
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn token(attempt: u32) -> Token {
    Token::from_bits(u128::from(attempt))
}

pub(crate) fn untouched() -> SlotRecord {
    SlotRecord::untouched(Slot::parse("billing", "2026-11-21T12Z", "2026-11-21T13Z").unwrap())
}

/// An attempt that was claimed and of which no more is known.
pub(crate) fn begun(attempt: u32, node_name: &str) -> RunRecord {
    RunRecord {
        attempt,
        token: token(attempt),
        node: node(node_name),
        trigger: if attempt == 1 { Trigger::Schedule } else { Trigger::Retry },
        claimed_at: at("2026-11-21T12:00:00Z") + chrono::TimeDelta::minutes(i64::from(attempt) - 1),
        started_at: None,
        ended_at: None,
        ended_after: None,
        cpu_ms: None,
        duration_ms: None,
        outcome: None,
        exit_code: None,
        signal: None,
        message: None,
        output: None,
    }
}

/// An attempt that ended after 1.5 s.
pub(crate) fn ended(attempt: u32, node_name: &str, outcome: Outcome, exit_code: i32) -> RunRecord {
    let run = begun(attempt, node_name);
    let started = run.claimed_at + chrono::TimeDelta::milliseconds(20);
    RunRecord {
        started_at: Some(started),
        ended_at: Some(started + chrono::TimeDelta::milliseconds(1_500)),
        duration_ms: Some(1_500),
        outcome: Some(outcome),
        exit_code: Some(exit_code),
        output: Some(OutputTail {
            text: format!("attempt {attempt}\nno \x1b[31mroute\n"),
            dropped_bytes: 0,
            loss: None,
        }),
        ..run
    }
}

/// The second attempt runs on node b.
pub(crate) fn running() -> SlotRecord {
    let by = Holder { node: node("b"), attempt: 2 };
    SlotRecord {
        attempts: 2,
        mark: Mark::Leased { by, token: token(2), remaining: Duration::from_millis(41_200) },
        runs: vec![ended(1, "a", Outcome::Failure, 1), begun(2, "b")],
        ..untouched()
    }
}

/// One attempt failed; its wait stands.
pub(crate) fn waiting() -> SlotRecord {
    let by = Holder { node: node("a"), attempt: 1 };
    SlotRecord {
        attempts: 1,
        mark: Mark::Backoff { by, remaining: Duration::from_millis(8_400) },
        runs: vec![ended(1, "a", Outcome::Failure, 1)],
        ..untouched()
    }
}

pub(crate) fn done() -> SlotRecord {
    let by = Holder { node: node("a"), attempt: 1 };
    let when = at("2026-11-21T12:00:02Z");
    SlotRecord {
        attempts: 1,
        mark: Mark::Done(DoneMark { by, at: when, token: None }),
        verdict: Some(VerdictRecord { verdict: Verdict::Done, by: node("a"), at: when, attempt: 1 }),
        runs: vec![ended(1, "a", Outcome::Success, 0)],
        ..untouched()
    }
}

/// The first attempt failed, the second's node died, the third ran out of time; an operator looked at it.
pub(crate) fn failed() -> SlotRecord {
    let timeout = RunRecord {
        exit_code: None,
        signal: Some(15),
        message: Some("stopped after 30m".to_owned()),
        output: Some(OutputTail {
            text: (1..=15).map(|n| format!("line {n}\n")).collect(),
            dropped_bytes: 4_096,
            loss: None,
        }),
        ..ended(3, "c", Outcome::Timeout, 0)
    };
    SlotRecord {
        attempts: 3,
        runs: vec![ended(1, "a", Outcome::Failure, 1), begun(2, "b"), timeout],
        audit: vec![audit("unlock")],
        ..untouched()
    }
}

pub(crate) fn audit(verb: &str) -> Audit {
    Audit {
        verb: verb.to_owned(),
        who: "alice".to_owned(),
        host: "ops-1".to_owned(),
        why: "node b is\ngone".to_owned(),
        at: at("2026-11-21T12:02:30Z"),
    }
}

pub(crate) fn pause() -> Pause {
    Pause { since: at("2026-11-21T11:00:00Z"), until: None, audit: audit("pause"), ended: None }
}

/// A store, its clock, and who has claimed so far.
pub(crate) struct Scene {
    pub(crate) clock: ManualClock,
    pub(crate) store: Arc<dyn Store>,
    /// The same, as what it is.
    memory: MemoryStore,
    claims: u128,
}

impl Scene {
    /// An empty store at noon.
    pub(crate) fn at(start: &str) -> Self {
        Self::by(&ManualClock::at(at(start)))
    }

    /// An empty store that goes by this clock.
    pub(crate) fn by(clock: &ManualClock) -> Self {
        let clock = clock.clone();
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone()));
        Self { clock, store: Arc::new(memory.clone()), memory, claims: 0 }
    }

    /// Nothing that the store has of these slots and jobs can be read.
    pub(crate) fn spoil(&self, names: &[&str]) {
        self.memory.spoil(names);
    }

    /// Makes the registry know a job with hourly slots.
    pub(crate) async fn register(&self, name: &str, schedule: &str) {
        // The hour that lasts is owed, and none before.
        let first_seen = self.clock.now().wall.duration_trunc(TimeDelta::hours(1)).unwrap();
        let entry = JobEntry { schedule: schedule.to_owned(), first_seen, ..entry(name) };
        self.store.register(&[entry]).await.unwrap();
    }

    /// A node tells that it is alive, and has these jobs in its file.
    pub(crate) async fn node(&mut self, name: &str, jobs: &[&str]) {
        let now = self.clock.now().wall;
        let job_hashes = jobs.iter().map(|job| (JobName::new(job).unwrap(), String::new())).collect();
        self.store.heartbeat(&NodeReport { job_hashes, ..report(name, now) }).await.unwrap();
    }

    pub(crate) fn pass(&self, minutes: u64) {
        self.clock.advance(Duration::from_secs(60 * minutes));
    }

    /// A request for the job's slot of now, under the token of the next claim.
    pub(crate) fn request(&self, job: &str, node_name: &str) -> ClaimRequest {
        let timetable = Timetable::parse(JobName::new(job).unwrap(), "0 * * * *", "UTC", "hour").unwrap();
        ClaimRequest::new(
            timetable.slot_at(self.clock.now().wall).unwrap(),
            Token::from_bits(self.claims + 1),
            node(node_name),
            Duration::from_secs(60),
            3,
        )
    }

    /// A node claims the job's slot of now.
    pub(crate) async fn claim(&mut self, job: &str, node_name: &str) -> Lease {
        let request = self.request(job, node_name);
        self.claims += 1;
        match self.store.claim(&request).await.unwrap() {
            Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
            other => panic!("{other:?}"),
        }
    }

    /// A node claims the job's slot of now and fails at once.
    pub(crate) async fn fail(&mut self, job: &str, node_name: &str) {
        let lease = self.claim(job, node_name).await;
        let run = run_of(&lease, Outcome::Failure, 1);
        self.store.fail(&lease, &run, Duration::ZERO).await.unwrap();
    }

    /// A node claims the job's slot of now and does it.
    pub(crate) async fn succeed(&mut self, job: &str, node_name: &str) {
        let lease = self.claim(job, node_name).await;
        let run = run_of(&lease, Outcome::Success, 0);
        self.store.complete(&lease, &run, Duration::from_secs(7_200)).await.unwrap();
    }

    /// The store's locks.
    pub(crate) fn locks(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.store).lock_store().unwrap()
    }

    /// What a command begins with.
    pub(crate) async fn session(&self) -> AdminSession {
        AdminSession::begin(Arc::clone(&self.store), KEPT, None, "cronward jobs".to_owned()).await.unwrap()
    }
}

fn run_of(lease: &Lease, outcome: Outcome, exit_code: i32) -> RunRecord {
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(0),
        outcome: Some(outcome),
        exit_code: Some(exit_code),
        ..RunRecord::begun(lease)
    }
}
