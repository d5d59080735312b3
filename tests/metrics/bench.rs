//! A registry that a test feeds, and its text as a test reads it.

use std::sync::Arc;
use std::time::Duration;

use cronward::clock::ManualClock;
use cronward::event::{ClaimAnswer, Event, LockGrant, LockLeave, LockWait, RenewalAnswer};
use cronward::job::{JobName, JobSelection, JobSpec, LockName, Namespace, NodeName, Program};
use cronward::metrics::{Metrics, Setting};
use cronward::node::Health;
use cronward::observe::Observer;
use cronward::resource::{Demand, Demands, LockHolder, LockRelease, OwnerId};
use cronward::slot::{Attempt, Fence, Outcome, Slot, Trigger, Verdict};
use cronward::testing::Clock;
use tokio::sync::watch;

pub(crate) struct Bench {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: ManualClock,
    pub(crate) health: watch::Sender<Health>,
}

impl Bench {
    /// With jobs of these names.
    pub(crate) fn of(jobs: &[&str]) -> Self {
        let bench = Self::telling_of(JobSelection::All);
        bench.plan(jobs);
        bench
    }

    pub(crate) fn telling_of(jobs: JobSelection) -> Self {
        let clock = ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap());
        let (health, watched) = watch::channel(Health::default());
        let namespace = Namespace::new("prod").unwrap();
        let setting = Setting {
            namespace,
            jobs,
            clock: Arc::new(clock.clone()),
            health: watched,
            journal: None,
            notifications: None,
        };
        Self { metrics: Metrics::new(setting), clock, health }
    }

    pub(crate) fn plan(&self, jobs: &[&str]) {
        let jobs: Vec<Arc<JobSpec>> = jobs.iter().map(|name| Arc::new(job(name))).collect();
        self.metrics.plan(&jobs, "c0ffee");
    }

    /// Of jobs that name locks.
    pub(crate) fn of_lockers(jobs: &[&str]) -> Self {
        let bench = Self::telling_of(JobSelection::All);
        let jobs: Vec<Arc<JobSpec>> = jobs.iter().map(|name| Arc::new(locker(name))).collect();
        bench.metrics.plan(&jobs, "c0ffee");
        bench
    }

    pub(crate) fn hear(&self, job: &str, event: &Event) {
        self.metrics.event(Some(&slot(job)), event);
    }

    pub(crate) fn text(&self) -> String {
        text(&self.metrics, &self.clock)
    }

    /// The value of a series; what it is called stands before.
    pub(crate) fn value(&self, series: &str) -> Option<String> {
        value(&self.text(), series)
    }
}

pub(crate) fn text(metrics: &Metrics, clock: &dyn Clock) -> String {
    let mut text = String::new();
    metrics.write(clock.now(), &mut text).unwrap();
    text
}

pub(crate) fn value(text: &str, series: &str) -> Option<String> {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(str::to_owned)
}

pub(crate) fn job(name: &str) -> JobSpec {
    let mut job = JobSpec::new(JobName::new(name).unwrap(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    job.owner = Some("team \"x\"\\y".to_owned());
    job.alert_after = Some(Duration::from_secs(5_400));
    job
}

/// One that names locks.
pub(crate) fn locker(name: &str) -> JobSpec {
    let mut job = job(name);
    job.policy.locks = Some(Demands::new(vec![demand()]).unwrap());
    job
}

fn demand() -> Demand {
    Demand::exclusive(LockName::new("db").unwrap())
}

pub(crate) fn lock_waiting(attempt: Attempt) -> Event {
    let (node, owner) = (NodeName::new("b").unwrap(), OwnerId::of_text("b"));
    let by = LockHolder { node, label: "export".to_owned(), owner, fence: None };
    Event::LockWaiting(LockWait::behind(attempt, vec![demand()], 1, by))
}

pub(crate) fn lock_held(attempt: Attempt, seconds: u64, again: bool) -> Event {
    let waited = Duration::from_secs(seconds);
    Event::LockHeld(LockGrant::after(attempt, vec![demand()], Fence(7), waited, again))
}

pub(crate) fn lock_left(attempt: Attempt, answer: LockRelease) -> Event {
    Event::LockLeft(LockLeave::answered(attempt, Some(answer), None))
}

pub(crate) fn slot(job: &str) -> Slot {
    Slot::parse(job, "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

pub(crate) fn claimed(answer: ClaimAnswer) -> Event {
    Event::ClaimAnswered { answer, by: None, foreign: false, begins_in: None }
}

pub(crate) fn granted(attempt: Attempt) -> Event {
    Event::Granted {
        attempt,
        used: attempt,
        max_attempts: 3,
        granted_at: "2026-11-21T14:10:00Z".parse().unwrap(),
        token: String::new(),
        trigger: Trigger::Schedule,
        lease_ttl: Duration::from_secs(60),
        retry_delay: Duration::ZERO,
        poll: None,
        on_lost: cronward::OnLost::Continue,
        past: false,
    }
}

pub(crate) fn started(attempt: Attempt, late_ms: u64) -> Event {
    let (fence, late) = (slot("a").fence(attempt), Duration::from_millis(late_ms));
    Event::RunStarted { attempt, fence, trigger: Trigger::Schedule, guarded: true, late }
}

pub(crate) fn ended(outcome: Outcome, seconds: u64) -> Event {
    let duration = Duration::from_secs(seconds);
    Event::RunEnded { attempt: 1, outcome, exit_code: None, signal: None, duration, ended_between: None, note: None }
}

/// Everything that can be told of a job, once.
pub(crate) fn everything(bench: &Bench, job: &str) {
    for event in [
        claimed(ClaimAnswer::Claimed),
        granted(1),
        lock_waiting(1),
        lock_held(1, 3, false),
        started(1, 20),
        Event::RenewalAnswered { answer: RenewalAnswer::Renewed },
        ended(Outcome::Failure, 12),
        lock_left(1, LockRelease::Released),
        Event::Closed { verdict: Verdict::Failed },
    ] {
        bench.hear(job, &event);
    }
}

pub(crate) fn now() -> cronward::clock::Now {
    ManualClock::at("2026-11-21T14:20:00Z".parse().unwrap()).now()
}
