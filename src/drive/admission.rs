//! Who may ask for a lease next: the queue of a node's slots that are due. Pure: no clock, no runtime.
//!
//! A claim that is granted is a run, so nothing is claimed that could not start. Two bounds hold:
//!
//! - `starts`: slots from the claim until the command has begun. Starting processes is what a busy node is short of; more of them
//!   at once only make each one late. Those that wait for their job's locks do not count while they wait, and count again from when
//!   they hold them: nobody else is let in meanwhile, and they themselves do not wait once more.
//! - `runs`: slots that are claimed, running or being recorded, in all.
//!
//! While others wait, the job goes first that was let in longest ago, with its newest slot: a node that cannot do everything
//! does something of every job. Whoever waits leaves by itself at its slot's end, so that the queue is never longer than the
//! slots that last.
//!
//! After [`FAILURES`] claims in a row that a store did not answer, the store is away: nobody waits and nobody asks, everybody has
//! the last error at once, until the store has answered anything else. A claim without an answer may have been applied, and has to be
//! asked about until its lease would have lapsed; each time that the store goes away there are at most `starts` of them.
//!
//! A command that cannot be started for want of a resource (processes, descriptors, memory) pauses the starts: no slot is let in for
//! [`FIRST_PAUSE`]. Then one slot at a time is let in, until a command has begun. Each further failure doubles the pause, up to
//! [`LONGEST_PAUSE`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::{Applied, ErrorKind, Op, StoreError};
use crate::job::JobName;

/// Claims in a row without an answer, after which the store is away. One or two are a lost packet.
const FAILURES: u32 = 3;

/// Slots of a node from the claim until the command has begun: enough to keep a store that is 10 ms away busy with 3,000 claims
/// per second, and few enough for a small machine to start them in a tenth of a second.
const STARTS: usize = 32;

/// The first pause of the starts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause of the starts: a node that has recovered is back by then.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Runs of a node at once, unless its file says otherwise. Cron jobs mostly wait for others, so there may be many more than
/// processors; each costs a keeper, a command and three file descriptors, and a default that no healthy node meets is one that
/// nobody has to know.
pub const MAX_RUNNING: usize = 512;

/// How much a node does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Slots from the claim until the command has begun.
    pub starts: usize,
    /// Slots that are claimed, running or being recorded.
    pub runs: usize,
}

impl Limits {
    /// For a process that drives one slot.
    pub const NONE: Self = Self { starts: usize::MAX, runs: usize::MAX };

    /// For a node that may run so many at once.
    pub const fn of_node(max_running: usize) -> Self {
        Self { starts: STARTS, runs: max_running }
    }
}

/// The queue. A `T` is whatever wakes the one who waits.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    limits: Limits,
    starting: usize,
    running: usize,
    jobs: BTreeMap<JobName, JobQueue<T>>,
    /// The jobs of which a slot waits, by when one of theirs was last let in.
    order: BTreeSet<(u64, JobName)>,
    /// Slots that were let in so far.
    let_in: u64,
    /// Places that were taken so far.
    taken: u64,
    store: Answers,
    /// Pauses of the starts since a command began last.
    pauses: u32,
    /// The last of them lasts.
    is_paused: bool,
}

/// A pause of the starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// How long.
    pub(crate) length: Duration,
    /// A command could be started before it.
    pub(crate) is_first: bool,
}

/// The waiting slots of one job.
#[derive(Debug)]
struct JobQueue<T> {
    /// When one of them was last let in; 0 for never.
    last: u64,
    /// By start; the number keeps those of one slot apart.
    slots: BTreeMap<(DateTime<Utc>, u64), T>,
}

/// Where somebody waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    job: JobName,
    slot: (DateTime<Utc>, u64),
}

/// How the store answers claims.
#[derive(Debug)]
enum Answers {
    /// It did, but for so many in a row by now.
    But(u32),
    /// It is away; the last error.
    Not { kind: ErrorKind, store: String, message: String },
}

/// How full the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Jobs of which a slot waits.
    pub waiting: usize,
    /// Slots that are claimed, running or being recorded.
    pub running: usize,
    /// As many of them as there may be.
    pub is_full: bool,
}

impl<T> Queue<T> {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            starting: 0,
            running: 0,
            jobs: BTreeMap::new(),
            order: BTreeSet::new(),
            let_in: 0,
            taken: 0,
            store: Answers::But(0),
            pauses: 0,
            is_paused: false,
        }
    }

    /// Other limits from now on. What runs goes on.
    pub(crate) const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Forgets when jobs were let in that are gone.
    pub(crate) fn retain(&mut self, keep: impl Fn(&JobName) -> bool) {
        self.jobs.retain(|job, line| keep(job) || !line.slots.is_empty());
    }

    /// Takes a place. [`Queue::next`] says when its turn has come.
    pub(crate) fn enter(&mut self, job: &JobName, start: DateTime<Utc>, waiting: T) -> QueuePlace {
        self.taken += 1;
        let slot = (start, self.taken);
        let line = self.jobs.entry(job.clone()).or_insert(JobQueue { last: 0, slots: BTreeMap::new() });
        if line.slots.is_empty() {
            self.order.insert((line.last, job.clone()));
        }
        line.slots.insert(slot, waiting);
        QueuePlace { job: job.clone(), slot }
    }

    /// Gives a place up; nothing when its turn has come meanwhile.
    pub(crate) fn leave(&mut self, place: &QueuePlace) {
        let Some(line) = self.jobs.get_mut(&place.job) else { return };
        if line.slots.remove(&place.slot).is_some() && line.slots.is_empty() {
            self.order.remove(&(line.last, place.job.clone()));
        }
    }

    /// Lets the next one in, if there is room: it counts from now on.
    pub(crate) fn next(&mut self) -> Option<T> {
        let starts = if self.pauses > 0 { 1 } else { self.limits.starts };
        if self.is_paused || self.starting >= starts || self.running >= self.limits.runs {
            return None;
        }
        let (_, job) = self.order.pop_first()?;
        let line = self.jobs.get_mut(&job)?;
        let (_, waiting) = line.slots.pop_last()?;
        self.let_in += 1;
        line.last = self.let_in;
        if !line.slots.is_empty() {
            self.order.insert((line.last, job));
        }
        self.count();
        Some(waiting)
    }

    /// One more, whether there is room or not: a lease was found that a lost answer had granted, or the command runs without
    /// a guard.
    pub(crate) const fn count(&mut self) {
        self.starting += 1;
        self.running += 1;
    }

    /// The command of one that was let in has begun.
    pub(crate) const fn begun(&mut self) {
        self.starting = self.starting.saturating_sub(1);
    }

    /// One of which that was said begins only now: it waited for its job's locks meanwhile.
    pub(crate) const fn begins(&mut self) {
        self.starting += 1;
    }

    /// One that was let in has no lease any more; `begun` says whether [`Queue::begun`] was told.
    pub(crate) const fn over(&mut self, begun: bool) {
        self.running = self.running.saturating_sub(1);
        if !begun {
            self.begun();
        }
    }

    /// A command could not be started for want of a resource. None where the starts are paused already: that command was let in before.
    pub(crate) fn pause_starts(&mut self) -> Option<Pause> {
        if std::mem::replace(&mut self.is_paused, true) {
            return None;
        }
        let length = FIRST_PAUSE.saturating_mul(1_u32 << self.pauses.min(16)).min(LONGEST_PAUSE);
        self.pauses = self.pauses.saturating_add(1);
        Some(Pause { length, is_first: self.pauses == 1 })
    }

    /// The pause of the starts is over: the next slot shows whether the resource is there.
    pub(crate) const fn end_pause(&mut self) {
        self.is_paused = false;
    }

    /// A command has begun; whether that ends a want of a resource. A command that was let in before the pause does not.
    pub(crate) const fn has_started(&mut self) -> bool {
        let is_over = self.pauses > 0 && !self.is_paused;
        if is_over {
            self.pauses = 0;
        }
        is_over
    }

    /// A claim was not answered. Those who wait are handed over to be told of it when the store is away by that.
    pub(crate) fn failed(&mut self, error: &StoreError) -> Vec<T> {
        match &mut self.store {
            Answers::But(failures) if *failures + 1 < FAILURES => {
                *failures += 1;
                Vec::new()
            }
            _ => {
                self.store =
                    Answers::Not { kind: error.kind, store: error.store.clone(), message: error.message.clone() };
                self.order.clear();
                self.jobs.values_mut().flat_map(|line| std::mem::take(&mut line.slots)).map(|(_, it)| it).collect()
            }
        }
    }

    /// The store answered something.
    pub(crate) fn answered(&mut self) {
        self.store = Answers::But(0);
    }

    /// What to tell instead of asking, while the store is away.
    pub(crate) fn refusal(&self) -> Option<StoreError> {
        match &self.store {
            Answers::But(_) => None,
            Answers::Not { kind, store, message } => {
                Some(StoreError::new(*kind, Applied::No, Op::Claim, store, message.clone()))
            }
        }
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy { waiting: self.order.len(), running: self.running, is_full: self.running >= self.limits.runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Limits = Limits { starts: 2, runs: 3 };

    fn job(name: &str) -> JobName {
        JobName::new(name).unwrap()
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_795_269_600 + second, 0).unwrap()
    }

    /// Takes a place for a slot, and remembers its name.
    fn enter(queue: &mut Queue<String>, name: &str, second: i64) -> QueuePlace {
        queue.enter(&job(name), at(second), format!("{name}{second}"))
    }

    fn next(queue: &mut Queue<String>) -> String {
        queue.next().unwrap_or_else(|| "nobody".to_owned())
    }

    /// One that is let in, begins and is over at once.
    fn run(queue: &mut Queue<String>) -> String {
        let ran = next(queue);
        queue.begun();
        queue.over(true);
        ran
    }

    fn error() -> StoreError {
        StoreError::new(ErrorKind::Timeout, Applied::Maybe, Op::Claim, "redis://h", "no answer")
    }

    #[test]
    fn no_more_are_let_in_than_can_be_started_or_run_at_once() {
        let mut queue = Queue::new(NARROW);
        for second in 0..5 {
            enter(&mut queue, &format!("j{second}"), 0);
        }
        assert_eq!([next(&mut queue), next(&mut queue), next(&mut queue)], ["j00", "j10", "nobody"]);
        queue.begun();
        assert_eq!([next(&mut queue), next(&mut queue)], ["j20", "nobody"]);
        queue.begun();
        assert_eq!(next(&mut queue), "nobody", "three run");
        assert!(queue.occupancy().is_full);
        queue.over(true);
        assert_eq!([next(&mut queue), next(&mut queue)], ["j30", "nobody"]);
        assert_eq!(queue.occupancy(), Occupancy { waiting: 1, running: 3, is_full: true });
    }

    #[test]
    fn a_claim_that_was_not_granted_makes_room_for_the_next() {
        let mut queue = Queue::new(Limits { starts: 1, runs: 1 });
        enter(&mut queue, "a", 0);
        enter(&mut queue, "b", 0);
        assert_eq!([next(&mut queue), next(&mut queue)], ["a0", "nobody"]);
        queue.over(false);
        assert_eq!(next(&mut queue), "b0");
    }

    #[test]
    fn of_a_job_the_newest_slot_goes_first() {
        let mut queue = Queue::new(NARROW);
        for second in [7, 9, 8] {
            enter(&mut queue, "a", second);
        }
        assert_eq!([run(&mut queue), run(&mut queue), run(&mut queue)], ["a9", "a8", "a7"]);
    }

    #[test]
    fn a_node_that_can_run_a_third_of_its_jobs_runs_each_of_them_every_third_time() {
        let mut queue = Queue::new(NARROW);
        let mut runs = BTreeMap::<String, u32>::new();
        for second in 0..30 {
            let names = ["a", "b", "c", "d", "e", "f"];
            let places = names.map(|name| enter(&mut queue, name, second));
            for _ in 0..2 {
                *runs.entry(run(&mut queue).chars().take(1).collect()).or_default() += 1;
            }
            // Their second is over.
            places.iter().for_each(|place| queue.leave(place));
            assert_eq!(queue.occupancy().waiting, 0);
        }
        assert_eq!(runs.len(), 6);
        assert!(runs.values().all(|times| *times == 10), "{runs:?}");
    }

    #[test]
    fn a_job_with_many_waiting_slots_holds_up_no_other() {
        let mut queue = Queue::new(NARROW);
        for second in 0..100 {
            enter(&mut queue, "a", second);
        }
        enter(&mut queue, "b", 0);
        assert_eq!([run(&mut queue), run(&mut queue), run(&mut queue)], ["a99", "b0", "a98"]);
    }

    #[test]
    fn whoever_leaves_is_not_let_in_and_may_leave_twice() {
        let mut queue = Queue::new(NARROW);
        let place = enter(&mut queue, "a", 0);
        enter(&mut queue, "a", 1);
        queue.leave(&place);
        queue.leave(&place);
        assert_eq!([next(&mut queue), next(&mut queue)], ["a1", "nobody"]);
    }

    #[test]
    fn what_was_not_let_in_by_the_queue_counts_as_well() {
        let mut queue = Queue::new(Limits { starts: 9, runs: 1 });
        queue.count();
        enter(&mut queue, "a", 0);
        assert_eq!(next(&mut queue), "nobody");
        queue.over(false);
        assert_eq!(next(&mut queue), "a0");
    }

    #[test]
    fn a_store_that_does_not_answer_three_claims_in_a_row_is_not_asked_until_it_has_answered() {
        let mut queue = Queue::new(NARROW);
        enter(&mut queue, "a", 0);
        enter(&mut queue, "b", 0);
        assert_eq!([queue.failed(&error()), queue.failed(&error())], [Vec::<String>::new(), vec![]]);
        assert!(queue.refusal().is_none());
        assert_eq!(queue.failed(&error()), ["a0", "b0"], "those who wait need not");
        let refusal = queue.refusal().unwrap();
        assert_eq!((refusal.applied, refusal.kind, refusal.op), (Applied::No, ErrorKind::Timeout, Op::Claim));
        assert_eq!(queue.occupancy().waiting, 0);
        queue.answered();
        assert!(queue.refusal().is_none());
    }

    #[test]
    fn single_claims_that_are_lost_between_others_are_no_outage() {
        let mut queue = Queue::<String>::new(NARROW);
        for _ in 0..10 {
            queue.failed(&error());
            queue.failed(&error());
            queue.answered();
        }
        assert!(queue.refusal().is_none());
    }

    #[test]
    fn a_start_that_lacks_a_resource_lets_nobody_in_for_ever_longer_and_then_one_at_a_time() {
        let mut queue = Queue::new(NARROW);
        for name in ["a", "b", "c", "d"] {
            enter(&mut queue, name, 0);
        }
        assert_eq!([next(&mut queue), next(&mut queue)], ["a0", "b0"]);
        assert_eq!(queue.pause_starts(), Some(Pause { length: Duration::from_secs(1), is_first: true }));
        assert_eq!(queue.pause_starts(), None, "the second was let in before the pause");
        queue.over(false);
        queue.over(false);
        assert_eq!(next(&mut queue), "nobody");
        queue.end_pause();
        assert_eq!([next(&mut queue), next(&mut queue)], ["c0", "nobody"], "one shows whether the resource is there");
        let mut lengths = Vec::new();
        for _ in 0..6 {
            lengths.extend(queue.pause_starts().map(|pause| (pause.length.as_secs(), pause.is_first)));
            queue.end_pause();
        }
        assert_eq!(lengths, [2, 4, 8, 16, 30, 30].map(|seconds| (seconds, false)));
        assert!(queue.has_started() && !queue.has_started(), "told once");
        assert_eq!(next(&mut queue), "d0", "two at once again");
        assert_eq!(queue.pause_starts(), Some(Pause { length: Duration::from_secs(1), is_first: true }));
        assert!(!queue.has_started(), "a command that was let in before the pause shows nothing");
    }

    #[test]
    fn a_job_that_is_gone_is_forgotten_once_none_of_its_slots_waits() {
        let mut queue = Queue::new(NARROW);
        let place = enter(&mut queue, "a", 0);
        queue.retain(|_| false);
        assert_eq!(queue.jobs.len(), 1);
        queue.leave(&place);
        queue.retain(|_| false);
        assert_eq!(queue.jobs.len(), 0);
    }
}
