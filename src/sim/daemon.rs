//! One node's daemon, as `node::daemon`, `node::ticking` and `node::roll` have it, without a runtime: beats, ticks, the roll
//! of driven slots, wake-ups, reload and shutdown. It dies with its process; what it decides, the shared code decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Now, jumped};
use crate::drive::Fact;
use crate::guard::{End, SlotMachine};
use crate::job::{Concurrency, JobName, JobSpec};
use crate::observe::NodeEvent;
use crate::schedule::{Planner, Tick, Timetable};
use crate::sim::again::Again;
use crate::sim::bug::Bug;
use crate::sim::message::{Ask, Process, Request};
use crate::sim::nature::{Event, Nature};
use crate::sim::presence::Presence;
use crate::sim::task::{Task, assignment};
use crate::sim::time::{NodeClock, Time};
use crate::slot::{Slot, SlotKey, Token, Trigger};
use crate::store::{Wake, WakeKind};

/// As in `node::daemon`.
const HORIZON: Duration = Duration::from_secs(5);
/// As in `node::daemon`.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a daemon sees of the world while it handles one event.
pub(super) struct Desk<'a> {
    pub(super) nature: &'a mut Nature,
    pub(super) process: Process,
    pub(super) clock: NodeClock,
    pub(super) now: Now,
    /// What the clocks show that were not put right by the store's.
    pub(super) uncorrected: Now,
    /// The process is to die before it does anything more.
    pub(super) dying: bool,
    /// The process has left, whatever it still waited for.
    pub(super) leaving: bool,
}

/// A slot on the roll.
#[derive(Debug)]
struct Driven {
    task: u64,
    slot: Slot,
    end: Option<End>,
}

/// A job in force.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) spec: Arc<JobSpec>,
    pub(super) timetable: Timetable,
}

/// What a request was about.
#[derive(Debug)]
pub(super) enum Asked {
    Claim(u64, Token, Now),
    Renewal(u64, Token),
    /// With what is to be remembered once it is acknowledged.
    Settlement(u64, Option<Box<Fact>>),
    /// In a round of telling a store again: what is to be looked up.
    Inspect(u64, Vec<Fact>),
    /// Told again; and what is to be told after it.
    Again(u64, Box<Fact>, Vec<Fact>),
    Nodes(Now),
    Heartbeat(Now),
    Register(u64),
    Close(Slot),
}

/// One start of a node's daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) entries: BTreeMap<JobName, Entry>,
    planner: Planner,
    armed: BTreeMap<(DateTime<Utc>, u64), Tick>,
    armed_count: u64,
    roll: BTreeMap<(JobName, SlotKey), Driven>,
    pub(super) tasks: BTreeMap<u64, Task>,
    last_task: u64,
    pub(super) asked: BTreeMap<u64, Asked>,
    last_asked: u64,
    pub(super) presence: Presence,
    pub(super) again: Again,
    last_beat: Option<Now>,
    pub(super) leave_by: Option<Time>,
    /// Since when it has had each of its jobs without a break.
    pub(super) known: BTreeMap<JobName, Time>,
    /// As in `node::store_time`: what the wall clock is ahead of the store's, in milliseconds.
    pub(super) ahead_ms: i64,
}

impl Daemon {
    pub(super) fn new(specs: Vec<Arc<JobSpec>>, desk: &Desk<'_>) -> Self {
        let mut daemon = Self {
            entries: BTreeMap::new(),
            planner: Planner::new(HORIZON),
            armed: BTreeMap::new(),
            armed_count: 0,
            roll: BTreeMap::new(),
            tasks: BTreeMap::new(),
            last_task: 0,
            asked: BTreeMap::new(),
            last_asked: 0,
            presence: Presence::new(desk.now.mono),
            again: Again::default(),
            last_beat: None,
            leave_by: None,
            known: BTreeMap::new(),
            ahead_ms: 0,
        };
        daemon.take(specs, desk);
        daemon
    }

    /// Puts a file in force.
    fn take(&mut self, specs: Vec<Arc<JobSpec>>, desk: &Desk<'_>) {
        let timetable = |spec: &JobSpec| desk.nature.scenario.job(&spec.name).map(|(_, job)| job.timetable.clone());
        let entry = |spec: Arc<JobSpec>| Some((spec.name.clone(), Entry { timetable: timetable(&spec)?, spec }));
        let entries: BTreeMap<_, _> = specs.into_iter().filter_map(entry).collect();
        let timetables = || entries.values().map(|entry| entry.timetable.clone()).collect::<Vec<_>>();
        let known = |job: &JobName| self.known.get(job).copied().unwrap_or(desk.nature.now);
        self.known = entries.keys().map(|job| (job.clone(), known(job))).collect();
        self.planner.set(timetables());
        self.presence.closer.set(timetables(), desk.now.wall);
        self.entries = entries;
    }

    /// A beat of the planner.
    pub(super) fn beat(&mut self, desk: &mut Desk<'_>) {
        let now = desk.now;
        if self.last_beat.is_some_and(|last| jumped(last, now)) {
            for task in self.tasks.keys().copied().collect::<Vec<_>>() {
                self.tell(desk, task, |machine, now| machine.handle_timeout(now));
            }
            self.presence.closer.hurry();
        }
        self.last_beat = Some(now);
        self.roll.retain(|_, driven| driven.end.is_none() || driven.slot.end() > now.wall);
        if self.leave_by.is_none() {
            let beat = self.planner.beat(now.wall);
            if !beat.look_back.is_empty() {
                desk.tell(&NodeEvent::Gap { slots: beat.look_back.len() });
            }
            for tick in beat.look_back.into_iter().chain(beat.ticks) {
                self.armed_count += 1;
                self.armed.insert((tick.fire_at, self.armed_count), tick);
            }
            self.fire(desk);
        }
        self.attend(desk);
    }

    /// Starts every armed tick that is due, and comes back for the next.
    pub(super) fn fire(&mut self, desk: &mut Desk<'_>) {
        while let Some(entry) = self.armed.first_entry()
            && entry.key().0 <= desk.now.wall
            && !desk.dying
        {
            let tick = entry.remove();
            self.start(desk, &tick.job, tick.slot, tick.at, Trigger::Schedule);
        }
        if let Some(((at, _), _)) = self.armed.first_key_value() {
            let when = desk.clock.when_wall(desk.nature.scenario.epoch, *at).max(desk.nature.now);
            desk.nature.queue.push(when, Event::Fire(desk.process));
        }
    }

    fn start(&mut self, desk: &mut Desk<'_>, job: &JobName, slot: Slot, scheduled_at: DateTime<Utc>, trigger: Trigger) {
        let key = (job.clone(), slot.key());
        let Some(entry) = self.entries.get(job) else { return };
        if self.roll.contains_key(&key) {
            return;
        }
        let concurrency = entry.spec.policy.concurrency;
        let assignment = assignment(entry, desk, slot.clone(), (scheduled_at, trigger));
        if concurrency == Concurrency::Replace {
            for task in self.running_before(&slot) {
                self.tell(desk, task, |machine, now| machine.handle_replaced(now));
            }
        }
        self.last_task += 1;
        let id = self.last_task;
        self.roll.insert(key, Driven { task: id, slot, end: None });
        let machine = SlotMachine::new(assignment, desk.now);
        self.tasks.insert(id, Task::new(machine, scheduled_at));
        self.tell(desk, id, |_, _| {});
    }

    /// The older slots of a job that run here.
    fn running_before(&self, slot: &Slot) -> Vec<u64> {
        let older = |driven: &&Driven| driven.slot.job() == slot.job() && driven.slot.start() < slot.start();
        let running = self.roll.values().filter(older).filter(|driven| self.is_holding(driven.task));
        running.map(|driven| driven.task).collect()
    }

    fn is_holding(&self, task: u64) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.machine.is_holding())
    }

    /// A task's machine has ended. One that left because its job changed makes room for the job as it is now.
    pub(super) fn task_ended(
        &mut self,
        desk: &mut Desk<'_>,
        slot: &Slot,
        (task, end): (u64, End),
        tick: DateTime<Utc>,
    ) {
        let key = (slot.job().clone(), slot.key());
        if let Some(driven) = self.roll.get_mut(&key).filter(|driven| driven.task == task) {
            driven.end = Some(end);
            if matches!(end, End::Left | End::Unknown | End::TooLate) {
                self.roll.remove(&key);
            }
        }
        match end {
            End::Done => self.presence.closer.settled(slot),
            End::Left if self.leave_by.is_none() => self.start_again(desk, slot.clone(), tick),
            _ => {}
        }
    }

    fn start_again(&mut self, desk: &mut Desk<'_>, slot: Slot, tick: DateTime<Utc>) {
        let job = slot.job().clone();
        let still = |entry: &Entry| entry.timetable.slot_with_key(slot.key()).as_ref() == Some(&slot);
        if slot.end() > desk.now.wall && self.entries.get(&job).is_some_and(still) {
            self.start(desk, &job, slot, tick, Trigger::Schedule);
        }
    }

    /// A hint from the store.
    pub(super) fn wake(&mut self, desk: &mut Desk<'_>, wake: &Wake) {
        let hinted = match wake {
            Wake::Slot { job, key, what } => Some((job, *key, *what)),
            Wake::Job(_) => None,
            Wake::Resync => {
                self.presence.closer.doubt_all();
                self.presence.register_again();
                self.tell_all_again(desk);
                None
            }
        };
        if let Some((job, key, WakeKind::Done)) = hinted
            && let Some(slot) = self.entries.get(job).and_then(|entry| entry.timetable.slot_with_key(key))
        {
            self.presence.closer.settled(&slot);
        }
        let about = |driven: &&Driven| hinted.is_none_or(|(job, ..)| driven.slot.job() == job) && driven.end.is_none();
        for task in self.roll.values().filter(about).map(|driven| driven.task).collect::<Vec<_>>() {
            self.tell(desk, task, |machine, now| machine.handle_wake(now, wake));
        }
        if let Some((job, key, WakeKind::Released)) = hinted {
            self.presence.closer.reopened(job, key.start());
            self.reopen(desk, (job.clone(), key));
        }
    }

    /// A slot that had ended here was released.
    fn reopen(&mut self, desk: &mut Desk<'_>, id: (JobName, SlotKey)) {
        let reopened = |driven: &&Driven| matches!(driven.end, Some(End::Done | End::Exhausted));
        let Some(slot) = self.roll.get(&id).filter(reopened).map(|driven| driven.slot.clone()) else { return };
        self.roll.remove(&id);
        if slot.end() > desk.now.wall && self.leave_by.is_none() {
            let at = desk.now.wall;
            self.start(desk, &id.0, slot, at, Trigger::Retry);
        }
    }

    /// Nothing new begins; runs may go on for a while. Whoever asks a second time wants it to stop at once, as in
    /// `cli::daemon`.
    pub(super) fn shut_down(&mut self, desk: &mut Desk<'_>, drain: Duration) {
        let drain = if self.leave_by.is_some() { Duration::ZERO } else { drain };
        let running = self.tasks.values().filter(|task| task.machine.is_holding()).count();
        desk.tell(&NodeEvent::Draining { running, drain });
        let longest_kill = self.entries.values().map(|entry| entry.spec.policy.kill_after).max().unwrap_or_default();
        let leave_by = desk.nature.now + drain + longest_kill + LAST_WORDS;
        let leave_by = self.leave_by.map_or(leave_by, |before| before.min(leave_by));
        self.leave_by = Some(leave_by);
        self.armed.clear();
        for task in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.tell(desk, task, |machine, now| machine.handle_shutdown(now, drain));
        }
        self.send_heartbeat(desk);
        desk.nature.queue.push(leave_by, Event::Leaves(desk.process));
    }

    /// It leaves, whatever the store was not told.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) {
        for task in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.tell(desk, task, |machine, _| machine.handle_impatience());
        }
        desk.leaving = true;
    }

    /// The file was changed.
    pub(super) fn reload(&mut self, desk: &mut Desk<'_>, specs: Vec<Arc<JobSpec>>) {
        let old = self.entries.clone();
        self.take(specs, desk);
        let same = |job: &JobName| matches!((old.get(job), self.entries.get(job)), (Some(old), Some(new)) if old.spec == new.spec);
        let changed: BTreeSet<JobName> =
            old.keys().chain(self.entries.keys()).filter(|job| !same(job)).cloned().collect();
        // No reload of a world changes a schedule.
        self.armed.retain(|_, tick| old.contains_key(&tick.job) && self.entries.contains_key(&tick.job));
        let reopened = self.retire(desk, &changed);
        changed.iter().for_each(|job| self.planner.look_again(job));
        desk.tell(&NodeEvent::Reloaded { jobs: self.entries.len(), changed: changed.into_iter().collect() });
        self.tell_plan(desk);
        self.presence.plan += 1;
        for slot in reopened {
            let tick = desk.now.wall;
            self.start_again(desk, slot, tick);
        }
        self.beat(desk);
    }

    /// Every task of these jobs is told to leave; those slots are looked at anew that had ended for want of attempts.
    fn retire(&mut self, desk: &mut Desk<'_>, changed: &BTreeSet<JobName>) -> Vec<Slot> {
        let of = |driven: &&Driven| changed.contains(driven.slot.job());
        let ended: Vec<_> = self
            .roll
            .values()
            .filter(of)
            .filter_map(|driven| Some(((driven.slot.job().clone(), driven.slot.key()), driven.end?)))
            .collect();
        for task in self.roll.values().filter(of).map(|driven| driven.task).collect::<Vec<_>>() {
            self.tell(desk, task, |machine, now| machine.handle_shutdown(now, Duration::from_secs(366 * 86_400)));
        }
        let gone = ended.into_iter().filter_map(|(key, end)| Some((self.roll.remove(&key)?.slot, end)));
        gone.filter(|(_, end)| *end == End::Exhausted).map(|(slot, _)| slot).collect()
    }

    /// The clock as this daemon reads it.
    pub(super) const fn corrected(&self, clock: NodeClock) -> NodeClock {
        NodeClock { offset: clock.offset - self.ahead_ms * 1_000_000, ..clock }
    }

    /// Asks the store.
    pub(super) fn ask(&mut self, desk: &mut Desk<'_>, asked: Asked, ask: Ask, patience: Option<Duration>) {
        self.last_asked += 1;
        let timeout = desk.nature.scenario.network.timeout;
        let patience = patience.map_or(timeout, |patience| patience.min(timeout));
        let late = match &ask {
            Ask::Renew(lease) if desk.nature.is_bug(Bug::RenewsAtTheTtl) => lease.ttl - lease.ttl / 3,
            // The time-out does not come either while the clock stands still.
            Ask::Claim(request) if desk.nature.is_bug(Bug::ClockStops) => request.lease_ttl * 4,
            _ => Duration::ZERO,
        };
        self.asked.insert(self.last_asked, asked);
        let request = Request {
            from: desk.process,
            id: self.last_asked,
            ask,
            shown: desk.now.wall,
            until: desk.nature.now + patience + late,
            unheard: false,
        };
        // Only a renewal is sent late as well.
        let slow = if matches!(request.ask, Ask::Renew(_)) { late } else { Duration::ZERO };
        desk.nature.send(request, slow);
    }

    /// Whether a clean shutdown is complete.
    pub(super) fn may_leave(&self) -> bool {
        self.leave_by.is_some() && self.tasks.is_empty()
    }
}
