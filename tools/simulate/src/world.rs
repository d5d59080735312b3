//! A world: nodes, a store, and what happens to them, one event after the other. One thread, no runtime, one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::event::Event as Told;
use cronward::job::JobSpec;
use cronward::schedule::ScheduleError;

use crate::backend::{Backend, SlotId};
use crate::checks::Bug;
use crate::checks::{BrokenPromise, Check};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::engine::{Dice, NodeClock, Time};
use crate::faults::Fault;
use crate::history::{SlotHistory, Summary};
use crate::journals::{Journals, Judged};
use crate::message::Process;
use crate::nature::{Event, Nature};
use crate::recorder::check_journals;
use crate::scenario::{Limits, Scenario};
use crate::weather;

/// Events at one moment before the world is said to be stuck.
const MOST_AT_ONCE: u32 = 100_000;

/// A node hears of the end of a command within this.
const NOTICED: Duration = Duration::from_millis(5);

/// One simulated machine. It survives its daemon.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) clock: NodeClock,
    pub(super) start: u32,
    pub(super) daemon: Option<Daemon>,
    /// When its daemon started.
    pub(super) started: Time,
    pub(super) stopped_until: Option<Time>,
    /// Which version of its file it has.
    pub(super) version: u64,
    /// What its wall clock showed when its daemon last looked at the current slots of all jobs.
    pub(super) looked: DateTime<Utc>,
}

/// Who stands behind a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) by: Process,
    /// When the lease was last set, a guard of that node knew its token. Otherwise nobody gives it back.
    pub(super) known: bool,
}

/// Nodes, store and nature.
#[derive(Debug)]
pub(super) struct World {
    pub(super) nature: Nature,
    pub(super) hosts: Vec<Host>,
    pub(super) backend: Backend,
    /// The store is away, and whether it is silent about it.
    pub(super) down: Option<(Time, bool)>,
    pub(super) slow: Duration,
    /// Who was granted, or renewed, the last lease of a slot.
    pub(super) holders: BTreeMap<SlotId, Holder>,
}

/// How to run a world.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What it may have at the most.
    pub limits: Limits,
    /// A bug to be caught.
    pub bug: Option<Bug>,
    /// Whether every step is written down.
    pub trace: bool,
    /// Whether the nodes write journals, which the checker judges. A world goes on after a broken promise then.
    pub journals: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: Limits::NONE, bug: None, trace: false, journals: false }
    }
}

/// What came of a world.
#[derive(Clone, Debug)]
pub struct WorldOutcome {
    /// Its figures.
    pub summary: Summary,
    /// The first broken promise.
    pub finding: Option<BrokenPromise>,
    /// What the checker makes of its journals, if wanted and if it can read its clocks.
    pub judged: Option<Judged>,
    /// Every step, if wanted.
    pub trace: Vec<String>,
    /// The same for the same seed and options.
    pub fingerprint: u64,
}

/// Runs the world of a seed. Fails only if a schedule of the simulator itself cannot be read.
pub fn run(seed: u64, options: &Options) -> Result<WorldOutcome, ScheduleError> {
    let scenario = Scenario::drawn(seed, options.limits)?;
    let mut world = World::new(scenario, options);
    world.run();
    let judged = check_journals(&mut world.nature);
    // What the world's own judge calls clean has to be explained by what the nodes wrote.
    if let Some(text) = judged.as_ref().and_then(|judged| judged.text.clone()) {
        world.nature.break_off(Check::Journals, text);
    }
    world.nature.summary.judged = u64::from(judged.is_some());
    world.nature.summary.judged_slots = judged.as_ref().map_or(0, |judged| judged.report.slots as u64);
    let Nature { summary, finding, trace, fingerprint, .. } = world.nature;
    Ok(WorldOutcome { summary, finding, judged, trace: trace.unwrap_or_default(), fingerprint })
}

impl World {
    fn new(scenario: Scenario, options: &Options) -> Self {
        let retention = scenario.end * 4 + Duration::from_secs(86_400);
        let hosts = scenario.nodes.iter().map(|_| Host::default()).collect();
        let mut nature = Nature::new(scenario, options.bug, options.trace);
        nature.journals = (options.journals && nature.scenario.has_steady_clocks()).then(Journals::default);
        tell_slots(&mut nature);
        for (at, weather) in weather::drawn(&nature.scenario) {
            nature.queue.push(at, Event::Weather(weather));
        }
        let backend = Backend::new(retention, options.bug);
        let mut world = Self { nature, hosts, backend, down: None, slow: Duration::ZERO, holders: BTreeMap::new() };
        world.set_clocks();
        world.count_unlike();
        for node in 0..world.hosts.len() {
            world.boot(node);
        }
        world
    }

    fn set_clocks(&mut self) {
        let scenario = &self.nature.scenario;
        let mut dice = Dice::new(scenario.seed, 5);
        for host in &mut self.hosts {
            let drift = i64::try_from(dice.below(20_001)).unwrap_or(0) - 10_000;
            let offset = weather::wrong(scenario, &mut dice);
            let small = i64::try_from(dice.below(20_000_000)).unwrap_or(0) - 10_000_000;
            host.clock.drift = if scenario.mix.has(Fault::ClockDrift) { drift } else { drift / 200 };
            host.clock.offset = if scenario.mix.has(Fault::ClockOff) { offset } else { small };
        }
        for fault in [Fault::ClockDrift, Fault::ClockOff] {
            let struck = if self.nature.scenario.mix.has(fault) { self.hosts.len() } else { 0 };
            (0..struck).for_each(|_| self.nature.strike(fault));
        }
    }

    /// Nodes whose file is not the one that all are to have.
    fn count_unlike(&mut self) {
        let scenario = &self.nature.scenario;
        let same = |node: usize| {
            let specs = file(scenario, Time::MAX, node, 0);
            let jobs = scenario.jobs.iter();
            specs.len() == scenario.jobs.len() && jobs.zip(&specs).all(|(job, spec)| job.spec == *spec)
        };
        let unlike = (0..self.hosts.len()).filter(|node| !same(*node)).count();
        (0..unlike).for_each(|_| self.nature.strike(Fault::Unlike));
    }

    fn run(&mut self) {
        let mut at_once = 0;
        while let Some((at, event)) = self.nature.queue.pop() {
            if at > self.nature.scenario.end || self.nature.is_over() {
                break;
            }
            at_once = if at > self.nature.now { 0 } else { at_once + 1 };
            if at_once > MOST_AT_ONCE {
                self.nature.break_off(Check::Stuck, format!("no time passes: {event:?}"));
            }
            self.nature.now = at;
            self.step(event);
            self.look_at_starts();
        }
        if self.nature.finding.is_none() {
            self.judge();
        }
        self.nature.summary.worlds = 1;
        self.nature.summary.locked = u64::from(self.nature.scenario.has_locks());
        self.nature.summary.short = u64::from(self.nature.scenario.short);
        self.nature.summary.changes_of_offset = u64::from(self.nature.scenario.changes_offset());
    }

    fn step(&mut self, event: Event) {
        if let Some(process) = receiver(&event) {
            return self.at_node(process, event);
        }
        match event {
            Event::Arrival(request) => self.arrival(&request),
            Event::Ends { run, plan, code } => self.ends(run, plan, code),
            Event::Tick(id) => self.tick(id),
            Event::Over(id) => self.over(id),
            Event::Weather(weather) => self.strike(weather),
            _ => {}
        }
    }

    /// Something that a node is to handle; later, if it stands still.
    fn at_node(&mut self, process: Process, event: Event) {
        let Some(host) = self.hosts.get(process.node) else { return };
        if host.start != process.start || host.daemon.is_none() {
            return;
        }
        // Who stood still past its time to leave hears and tells first how its commands ended meanwhile, as in `Node::give_up`.
        let ready = if matches!(event, Event::Leaves(_)) { NOTICED * 2 } else { Duration::ZERO };
        let until = host.stopped_until.map(|until| until + ready);
        if let Some(until) = until.filter(|until| *until > self.nature.now) {
            let scramble = self.nature.dice.span(Duration::ZERO, Duration::from_millis(3));
            return self.nature.queue.push(until + scramble, event);
        }
        self.nature.stamp(process.node as u64);
        self.with_daemon(process.node, |daemon, desk| handle(daemon, desk, event));
    }

    /// Lets a daemon work; it may die of it.
    pub(super) fn with_daemon(&mut self, node: usize, work: impl FnOnce(&mut Daemon, &mut Desk<'_>)) {
        let Some(host) = self.hosts.get_mut(node) else { return };
        let Some(mut daemon) = host.daemon.take() else { return };
        let (epoch, at) = (self.nature.scenario.epoch, self.nature.now);
        let clock = daemon.corrected(host.clock);
        let (now, uncorrected) = (clock.now(epoch, at), host.clock.now(epoch, at));
        let process = Process { node, start: host.start };
        let (nature, machine_clock) = (&mut self.nature, host.clock);
        let mut desk = Desk { nature, process, clock, machine_clock, now, uncorrected, dying: false, leaving: false };
        work(&mut daemon, &mut desk);
        daemon.carry_out(&mut desk);
        if desk.dying {
            self.nature.enter_node("kill", node, at);
            return self.die(node, None);
        }
        if desk.leaving || daemon.may_leave() {
            desk.tell(&Told::Stopped);
            return self.die(node, None);
        }
        host.daemon = Some(daemon);
    }

    /// A node's daemon starts.
    pub(super) fn boot(&mut self, node: usize) {
        let Some(host) = self.hosts.get_mut(node).filter(|host| host.daemon.is_none()) else { return };
        host.start += 1;
        host.started = self.nature.now;
        host.stopped_until = None;
        host.looked = host.clock.now(self.nature.scenario.epoch, self.nature.now).wall;
        let process = Process { node, start: host.start };
        let specs = file(&self.nature.scenario, self.nature.now, node, host.version);
        let now = host.clock.now(self.nature.scenario.epoch, self.nature.now);
        self.nature.trouble(node, self.nature.now);
        self.nature.note(|_| format!("n{} starts", node + 1));
        let (clock, uncorrected) = (host.clock, now);
        let nature = &mut self.nature;
        let machine_clock = clock;
        let mut desk = Desk { nature, process, clock, machine_clock, now, uncorrected, dying: false, leaving: false };
        // The simulator's own jobs have schedules that can be read: its timetables are made of them.
        let Ok(mut daemon) = Daemon::new(specs, &desk) else { return };
        daemon.carry_out(&mut desk);
        host.daemon = Some(daemon);
        let after = self.nature.dice.span(Duration::ZERO, Duration::from_millis(50));
        self.nature.queue.push(self.nature.now + after, Event::Beat(process));
    }

    /// A command ends.
    fn ends(&mut self, index: usize, plan: u32, code: Result<i32, i32>) {
        let now = self.nature.now;
        let Some(run) = self.nature.runs.get_mut(index).filter(|run| run.ended.is_none() && run.plan == plan) else {
            return;
        };
        run.ended = Some(now);
        run.code = code.ok();
        let (by, task) = (run.by, run.task);
        self.nature.note(|_| format!("n{}: the command of task {task} ends: {code:?}", by.node + 1));
        let noticed = self.nature.dice.span(Duration::ZERO, NOTICED);
        self.nature.queue.push(now + noticed, Event::Ended { by, task, run: index, code });
    }

    fn tick(&mut self, id: SlotId) {
        self.stranger(id);
        let Some(story) = self.nature.stories.get_mut(&id) else { return };
        for (node, host) in self.hosts.iter().enumerate() {
            let running = host.daemon.as_ref().filter(|daemon| !daemon.is_leaving());
            let knows = running.is_some_and(|daemon| daemon.job(story.slot.job()).is_some());
            if knows && host.looked < story.slot.end() {
                story.attended.push(Process { node, start: host.start });
            }
        }
    }
}

fn handle(daemon: &mut Daemon, desk: &mut Desk<'_>, event: Event) {
    match event {
        Event::Answer { id, answer, .. } => daemon.answered(desk, id, answer.map(|answer| *answer)),
        Event::Hint { wake, .. } => daemon.wake(desk, &wake),
        Event::LockHint { hint, .. } => daemon.drive(desk, |drives, desk| drives.hear_of_locks(desk, hint)),
        Event::LockTimer { task, at, .. } => daemon.drive(desk, |drives, desk| drives.lock_timer(desk, task, at)),
        Event::Timer { task, at, .. } => {
            daemon.drive(desk, |drives, desk| drives.timer(desk, task, at));
        }
        Event::Beat(process) => {
            let next = desk.nature.now + desk.nature.scenario.beat;
            desk.nature.queue.push(next, Event::Beat(process));
            daemon.beat(desk);
        }
        Event::Fire(_) => daemon.fire(desk),
        Event::Again { round, .. } => daemon.drive(desk, |drives, desk| drives.look_up(desk, round)),
        Event::Started { task, context, .. } => daemon.drive(desk, |drives, desk| drives.started(desk, task, &context)),
        Event::Ended { task, run, code, .. } => {
            daemon.drive(desk, |drives, desk| drives.ended(desk, (task, run), code));
        }
        Event::Leaves(_) => daemon.give_up(desk),
        Event::Watchdog { lease, .. } => {
            daemon.drive(desk, |drives, desk| drives.watchdog(desk, *lease));
        }
        _ => {}
    }
}

/// The node that is to handle an event.
const fn receiver(event: &Event) -> Option<Process> {
    match event {
        Event::Answer { to, .. } | Event::Hint { to, .. } | Event::LockHint { to, .. } => Some(*to),
        Event::Timer { of, .. } | Event::LockTimer { of, .. } | Event::Again { of, .. } => Some(*of),
        Event::Beat(process) | Event::Fire(process) | Event::Leaves(process) => Some(*process),
        Event::Started { by, .. } | Event::Ended { by, .. } | Event::Watchdog { by, .. } => Some(*by),
        Event::Arrival(_) | Event::Ends { .. } | Event::Tick(_) | Event::Over(_) | Event::Weather(_) => None,
    }
}

/// Every slot of the world, told as it comes.
fn tell_slots(nature: &mut Nature) {
    let (epoch, end) = (nature.scenario.epoch, nature.scenario.instant(nature.scenario.end));
    for (job, it) in nature.scenario.jobs.clone().iter().enumerate() {
        let from = it.timetable.slot_at(epoch).map_or(epoch, |slot| slot.start());
        for (slot, tick) in it.timetable.slots(from, end) {
            let id = (job, slot.start().timestamp());
            let fire_at = it.timetable.fire_at(tick, &slot);
            nature.queue.push(nature.scenario.time(fire_at), Event::Tick(id));
            nature.queue.push(nature.scenario.time(slot.end()), Event::Over(id));
            nature.stories.insert(id, SlotHistory::new(slot, fire_at));
        }
    }
}

/// The file of a node, in this version.
pub(super) fn file(scenario: &Scenario, now: Time, node: usize, version: u64) -> Vec<Arc<JobSpec>> {
    let unlike = scenario.mix.has(Fault::Unlike);
    let mut dice = Dice::new(scenario.seed, 1_000 + if unlike { node as u64 } else { 0 } + version * 16);
    let mut specs = Vec::new();
    for job in &scenario.jobs {
        let mut spec = JobSpec::clone(&job.spec);
        if version > 0 && dice.below(2) == 0 {
            spec.policy.kill_after += Duration::from_millis(version);
        }
        if (version > 0 || unlike) && dice.below(4) == 0 {
            spec.policy.max_attempts = u32::try_from(1 + dice.below(5)).unwrap_or(1);
        }
        if !((version > 0 || unlike) && dice.below(8) == 0) && scenario.has_by(&job.spec.name, now) {
            specs.push(Arc::new(spec));
        }
    }
    specs
}
