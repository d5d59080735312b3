//! What is counted of each job, and the table of the jobs: as large as the file, and what stays in it over a reload goes on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{JobName, JobSelection, JobSpec};
use crate::metrics::figures::{Counters, Stamp};
use crate::metrics::histogram::{Histogram, OF_RUNS};
use crate::slot::{Attempt, JobLatest, Slot};

/// How runs end. `crashed` is told by no node.
const RESULTS: [&str; 6] = ["success", "failure", "timeout", "killed", "lost_lease", "given_back"];
/// How slots end.
const VERDICTS: [&str; 4] = ["done", "failed", "missed", "skipped"];

/// Attempts of a slot are fewer: a fence has three digits for them.
const ATTEMPTS: u64 = 1_000;

/// Runs of one job on one node at once whose counting is told apart; of more, one may be counted twice.
const AT_ONCE: usize = 16;

/// Counts runs that are each told of several times.
#[derive(Debug, Default)]
pub(super) struct RunCounter(Mutex<CountedRuns>);

#[derive(Debug, Default)]
struct CountedRuns {
    count: u64,
    /// Those that were counted last, by their fences.
    last: VecDeque<u64>,
}

impl RunCounter {
    /// This attempt, once.
    pub(super) fn add(&self, slot: &Slot, attempt: Attempt) {
        let fence = slot.fence(attempt).0;
        let mut counted = self.lock();
        if counted.last.contains(&fence) {
            return;
        }
        counted.count += 1;
        if counted.last.len() == AT_ONCE {
            counted.last.pop_front();
        }
        counted.last.push_back(fence);
    }

    /// How many runs.
    pub(super) fn count(&self) -> u64 {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, CountedRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is counted of one job.
#[derive(Debug)]
pub(super) struct JobFigures {
    pub(super) runs: Counters<6>,
    pub(super) slots: Counters<4>,
    /// Runs that lost their lease.
    pub(super) overlaps: RunCounter,
    /// Runs that lost their locks.
    pub(super) locks_lost: RunCounter,
    running: AtomicU64,
    /// The newest slot that an attempt was made in here, and the attempt: as a fence, so that it only rises.
    newest: AtomicU64,
    /// When that slot ends.
    newest_ends: Stamp,
    durations: OnceLock<Box<Histogram>>,
    /// From the store.
    last_success: Stamp,
    /// From the store: 1970 for a job that is well.
    failing_since: Stamp,
    /// From the store: 1970 for no.
    paused: Stamp,
    next_tick: Stamp,
}

impl JobFigures {
    fn new() -> Self {
        Self {
            runs: Counters::new(&RESULTS),
            slots: Counters::new(&VERDICTS),
            overlaps: RunCounter::default(),
            locks_lost: RunCounter::default(),
            running: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            newest_ends: Stamp::default(),
            durations: OnceLock::new(),
            last_success: Stamp::default(),
            failing_since: Stamp::default(),
            paused: Stamp::default(),
            next_tick: Stamp::default(),
        }
    }

    /// An attempt was granted.
    pub(super) fn granted(&self, slot: &Slot, attempt: Attempt) {
        self.newest.fetch_max(slot.fence(attempt).0, Ordering::Relaxed);
        self.newest_ends.advance(slot.end());
    }

    pub(super) fn run_started(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn run_ended(&self, result: &str, took: Duration) {
        self.runs.add(result);
        self.durations.get_or_init(Box::default).add(&OF_RUNS, took);
        // A job that was out of the file meanwhile has lost the start.
        let _ = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |running| running.checked_sub(1));
    }

    /// What the store knows of it.
    pub(super) fn know(&self, latest: &JobLatest) {
        self.last_success.set(latest.success.map(|success| success.at));
        let since = latest.failing.map_or(DateTime::UNIX_EPOCH, |failing| failing.since.start());
        self.failing_since.set(Some(since));
    }

    /// Since when it is paused.
    pub(super) fn pause(&self, since: Option<DateTime<Utc>>) {
        self.paused.set(Some(since.unwrap_or(DateTime::UNIX_EPOCH)));
    }

    /// What the store knows is not known any more.
    pub(super) fn forget(&self) {
        for stamp in [&self.last_success, &self.failing_since, &self.paused] {
            stamp.set(None);
        }
    }

    pub(super) fn plan_tick(&self, next: Option<DateTime<Utc>>) {
        self.next_tick.set(next);
    }

    pub(super) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// The newest attempt of the newest slot, while that lasts.
    pub(super) fn attempts(&self, now: DateTime<Utc>) -> u64 {
        let lasts = self.newest_ends.millis().is_some_and(|end| now.timestamp_millis() < end);
        if lasts { self.newest.load(Ordering::Relaxed) % ATTEMPTS } else { 0 }
    }

    pub(super) fn durations(&self) -> Option<&Histogram> {
        self.durations.get().map(|histogram| &**histogram)
    }

    pub(super) fn paused(&self) -> Option<u8> {
        self.paused.millis().map(|since| u8::from(since != 0))
    }

    pub(super) fn last_success(&self) -> Option<i64> {
        self.last_success.millis()
    }

    pub(super) fn failing_since(&self) -> Option<i64> {
        self.failing_since.millis()
    }

    pub(super) fn next_tick(&self) -> Option<i64> {
        self.next_tick.millis()
    }
}

/// A job of the file, with what is counted of it.
#[derive(Debug)]
pub(super) struct ListedJob {
    pub(super) spec: Arc<JobSpec>,
    pub(super) figures: Arc<JobFigures>,
}

/// The jobs that are told of, by name.
#[derive(Debug, Default)]
pub(super) struct JobTable {
    pub(super) config_hash: String,
    jobs: Vec<ListedJob>,
}

impl JobTable {
    /// Of these jobs those that are meant and planned. What was counted of those that were there before goes on.
    pub(super) fn of(jobs: &[Arc<JobSpec>], config_hash: &str, meant: &JobSelection, before: &Self) -> Self {
        let mut specs: Vec<_> = jobs.iter().filter(|job| job.enabled && meant.has(job)).cloned().collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        let listed = |spec: Arc<JobSpec>| {
            let old = before.find(&spec.name);
            let figures = old.map_or_else(|| Arc::new(JobFigures::new()), |old| Arc::clone(&old.figures));
            if old.is_some_and(|old| (&old.spec.schedule, &old.spec.timezone) != (&spec.schedule, &spec.timezone)) {
                figures.plan_tick(None);
            }
            ListedJob { spec, figures }
        };
        Self { config_hash: config_hash.to_owned(), jobs: specs.into_iter().map(listed).collect() }
    }

    pub(super) fn find(&self, job: &JobName) -> Option<&ListedJob> {
        let place = self.jobs.binary_search_by(|listed| listed.spec.name.cmp(job)).ok()?;
        self.jobs.get(place)
    }

    pub(super) fn jobs(&self) -> &[ListedJob] {
        &self.jobs
    }
}
