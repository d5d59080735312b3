//! All of a world but its nodes and its store: time, chance, the network, the commands that run, and the true history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use cronward::clock::Mono;
use cronward::event::Event as Told;
use cronward::job::JobName;
use cronward::resource::LockHint;
use cronward::slot::{Lease, RunContext, Slot, Token};
use cronward::store::Wake;
use cronward::verify;

use crate::backend::SlotId;
use crate::checks::Bug;
use crate::checks::{BrokenPromise, Check};
use crate::engine::{Dice, Queue, Time};
use crate::faults::Fault;
use crate::history::{SimulatedRun, SlotHistory, Summary};
use crate::journals::Journals;
use crate::lock_needs::LockNeed;
use crate::message::{Answer, Ask, NoAnswer, Process, Request};
use crate::scenario::Scenario;
use crate::weather::Weather;

/// What is going to happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A request reaches the store.
    Arrival(Box<Request>),
    /// An answer, or the lack of one, reaches a node.
    Answer { to: Process, id: u64, answer: Result<Box<Answer>, NoAnswer> },
    /// A hint reaches a node.
    Hint { to: Process, wake: Box<Wake> },
    /// A hint on locks reaches a node.
    LockHint { to: Process, hint: LockHint },
    /// What a machine has to do about locks is due.
    LockTimer { of: Process, task: u64, at: Mono },
    /// A machine's timer is due.
    Timer { of: Process, task: u64, at: Mono },
    /// A round of telling a store again goes on.
    Again { of: Process, round: u64 },
    /// The planner's beat.
    Beat(Process),
    /// An armed tick may be due.
    Fire(Process),
    /// A command is started.
    Started { by: Process, task: u64, context: Box<RunContext> },
    /// A command ends, if this end of it is still planned.
    Ends { run: usize, plan: u32, code: Result<i32, i32> },
    /// The node notices.
    Ended { by: Process, task: u64, run: usize, code: Result<i32, i32> },
    /// A node that shuts down waits no longer.
    Leaves(Process),
    /// With [`Bug::WatchdogOutlivesTheRun`]: a renewal that nobody needs.
    Watchdog { by: Process, lease: Box<Lease> },
    /// A slot has its first tick.
    Tick(SlotId),
    /// A slot is over.
    Over(SlotId),
    /// Something happens to nodes, store or clocks.
    Weather(Weather),
}

/// Everything but nodes and store.
#[derive(Debug)]
pub(super) struct Nature {
    pub(super) scenario: Scenario,
    pub(super) bug: Option<Bug>,
    pub(super) queue: Queue<Event>,
    pub(super) dice: Dice,
    pub(super) now: Time,
    pub(super) stories: BTreeMap<SlotId, SlotHistory>,
    pub(super) runs: Vec<SimulatedRun>,
    /// Since when nothing has kept a node from doing its work.
    pub(super) good_since: Vec<Time>,
    pub(super) cut_off_until: Vec<Time>,
    /// No answer reaches a node before this.
    pub(super) deaf_until: Vec<Time>,
    /// The starts of nodes whose heartbeat has reached the store.
    pub(super) heartbeats: BTreeSet<(usize, u32)>,
    /// When some node first had each job.
    pub(super) first_known: BTreeMap<JobName, DateTime<Utc>>,
    /// What each start of a node was told of when its jobs were first seen.
    pub(super) told_first_seen: BTreeMap<((usize, u32), JobName), DateTime<Utc>>,
    /// Starts that the world has not looked at yet, with the requests for their locks.
    pub(super) spawned: Vec<(Slot, Token, Option<Token>)>,
    /// Every request for locks.
    pub(super) needs: BTreeMap<Token, LockNeed>,
    /// When the store lost data.
    pub(super) losses: Vec<Time>,
    pub(super) summary: Summary,
    pub(super) finding: Option<BrokenPromise>,
    pub(super) trace: Option<Vec<String>>,
    /// What the nodes write, where the checker of journals is to read it.
    pub(super) journals: Option<Journals>,
    /// Changes with every step; two runs of one seed have the same.
    pub(super) fingerprint: u64,
}

impl Nature {
    pub(super) fn new(scenario: Scenario, bug: Option<Bug>, trace: bool) -> Self {
        let nodes = scenario.nodes.len();
        Self {
            dice: Dice::new(scenario.seed, 4),
            scenario,
            bug,
            queue: Queue::new(),
            now: Time::ZERO,
            stories: BTreeMap::new(),
            runs: Vec::new(),
            good_since: vec![Time::ZERO; nodes],
            cut_off_until: vec![Time::ZERO; nodes],
            deaf_until: vec![Time::ZERO; nodes],
            heartbeats: BTreeSet::new(),
            first_known: BTreeMap::new(),
            told_first_seen: BTreeMap::new(),
            spawned: Vec::new(),
            needs: BTreeMap::new(),
            losses: Vec::new(),
            summary: Summary::default(),
            finding: None,
            trace: trace.then(Vec::new),
            journals: None,
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// True time.
    pub(super) fn instant(&self) -> DateTime<Utc> {
        self.scenario.instant(self.now)
    }

    pub(super) const fn is_bug(&self, bug: Bug) -> bool {
        matches!(self.bug, Some(on) if on as u32 == bug as u32)
    }

    /// Faults are over.
    pub(super) fn is_calm(&self) -> bool {
        self.now >= self.scenario.faults_until
    }

    /// Nothing more is to be seen of the world.
    pub(super) fn is_over(&self) -> bool {
        self.finding.as_ref().is_some_and(|found| self.journals.is_none() || found.check == Check::Stuck)
    }

    /// The first broken promise is the one that is reported.
    pub(super) fn break_off(&mut self, check: Check, text: impl Into<String>) {
        if self.finding.is_none() {
            self.finding = Some(BrokenPromise { check, at: self.now, text: text.into() });
        }
    }

    pub(super) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_some() {
            let line = format!("{:>12.3} {}", self.now.as_secs_f64(), line(self));
            self.trace.iter_mut().for_each(|trace| trace.push(line.clone()));
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        self.summary.count(fault);
    }

    /// Something keeps a node from doing its work, until then at the most.
    pub(super) fn trouble(&mut self, node: usize, until: Time) {
        if let Some(since) = self.good_since.get_mut(node) {
            *since = (*since).max(until);
        }
    }

    /// The same for every node.
    pub(super) fn trouble_all(&mut self, until: Time) {
        self.good_since.iter_mut().for_each(|since| *since = (*since).max(until));
    }

    /// Whether no answer reaches a node.
    pub(super) fn is_deaf(&self, node: usize) -> bool {
        self.deaf_until.get(node).is_some_and(|until| *until > self.now)
    }

    /// The stories of the job of a slot, in order.
    pub(super) fn of_job(&self, (job, _): SlotId) -> impl DoubleEndedIterator<Item = (&SlotId, &SlotHistory)> {
        self.stories.range((job, i64::MIN)..=(job, i64::MAX))
    }

    pub(super) fn id(&self, slot: &Slot) -> Option<SlotId> {
        self.scenario.job(slot.job()).map(|(job, _)| (job, slot.start().timestamp()))
    }

    pub(super) fn story(&mut self, slot: &Slot) -> Option<&mut SlotHistory> {
        let id = self.id(slot)?;
        self.stories.get_mut(&id)
    }

    pub(super) fn hear(&mut self, by: Process, wall: DateTime<Utc>, slot: &Slot, told: &Told) {
        self.note(|_| format!("  n{} tells of {slot}: {told:?}", by.node + 1));
        let mute = self.is_bug(Bug::Mute);
        let alarm = matches!(told, Told::LeaseInDoubt { .. } | Told::LeaseLost { .. } | Told::Overtaken { .. });
        let unsaid = self.is_bug(Bug::LocksUntold) && matches!(told, Told::LockHeld(_));
        if (mute && alarm) || unsaid {
            return;
        }
        self.look_at_told_locks(by, slot, told);
        self.write(by, wall, Some(slot), told);
        if let Some(story) = self.story(slot) {
            story.hear(by, told);
        }
    }

    /// The run under this token, if it was started.
    pub(super) fn run_of(&self, slot: &Slot, token: Token) -> Option<&SimulatedRun> {
        let story = self.stories.get(&self.id(slot)?)?;
        story.runs.iter().filter_map(|run| self.runs.get(*run)).find(|run| run.token == token)
    }

    /// Sends a request on its way.
    pub(super) fn send(&mut self, mut request: Request, slow: Duration) {
        let (node, until) = (request.from.node, request.until);
        self.check_sending(&request);
        let calm = self.is_calm();
        let rates = if calm { crate::faults::Rates::default() } else { self.scenario.rates.clone() };
        let lost = self.dice.chance(rates.request_lost);
        if lost || self.cut_off_until.get(node).is_some_and(|until| *until > self.now) {
            if lost {
                self.strike(Fault::RequestLost);
                self.enter_message("loss", (node, request.ask.slot()), until);
            }
            return self.never_answered(&request);
        }
        request.unheard = self.dice.chance(rates.reply_lost);
        let way = self.way((node, request.ask.slot()), rates.delay, rates.longest_delay) + slow;
        if self.dice.chance(rates.duplicate) {
            self.strike(Fault::Duplicate);
            let later = self.now + way + self.dice.span(Duration::ZERO, rates.longest_delay * 2);
            self.enter_message("duplicate", (node, request.ask.slot()), later);
            self.queue.push(later, Event::Arrival(Box::new(request.clone())));
        }
        if request.unheard {
            self.strike(Fault::ReplyLost);
            self.enter_message("loss", (node, request.ask.slot()), until);
        }
        if request.unheard || self.now + way >= until {
            self.never_answered(&request);
        }
        self.queue.push(self.now + way, Event::Arrival(Box::new(request)));
    }

    /// The sender waits in vain.
    pub(super) fn never_answered(&mut self, request: &Request) {
        self.trouble(request.from.node, request.until);
        let answer = Event::Answer { to: request.from, id: request.id, answer: Err(NoAnswer::TIMEOUT) };
        self.queue.push(request.until.max(self.now), answer);
    }

    /// Sends an answer back.
    pub(super) fn reply(&mut self, request: &Request, answer: Result<Answer, NoAnswer>, slow: Duration) {
        if request.unheard {
            return;
        }
        if self.is_deaf(request.from.node) {
            self.strike(Fault::ReplyLost);
            self.enter_message("loss", (request.from.node, request.ask.slot()), request.until);
            return self.never_answered(request);
        }
        let rates = if self.is_calm() {
            (0, Duration::ZERO)
        } else {
            (self.scenario.rates.delay, self.scenario.rates.longest_delay)
        };
        let at = self.now + slow + self.way((request.from.node, request.ask.slot()), rates.0, rates.1);
        if at >= request.until {
            return self.never_answered(request);
        }
        let answer = Event::Answer { to: request.from, id: request.id, answer: answer.map(Box::new) };
        self.queue.push(at, answer);
    }

    /// How long a message takes.
    pub(super) fn way(&mut self, (node, slot): (usize, Option<&Slot>), delayed: u64, longest: Duration) -> Duration {
        let network = self.scenario.network;
        let usual = self.dice.span(network.least, network.most);
        if !self.dice.chance(delayed) {
            return usual;
        }
        self.strike(Fault::Delay);
        let extra = self.dice.span(Duration::ZERO, longest);
        self.trouble(node, self.now + extra + network.timeout);
        self.enter_message("delay", (node, slot), self.now + usual + extra);
        usual + extra
    }

    fn check_sending(&mut self, request: &Request) {
        self.look_at_sent_locks(request);
        self.look_at_registration(request);
        let Ask::Renew(lease) = &request.ask else { return };
        if self.run_of(&lease.slot, lease.token).is_some_and(|run| run.settled) {
            let text = format!(
                "n{} renews attempt {} of {}, which was settled",
                request.from.node + 1,
                lease.attempt,
                lease.slot
            );
            self.break_off(Check::Afterwards, text);
        }
    }

    /// A node writes a line, by the clock of its machine.
    pub(super) fn write(&mut self, by: Process, wall: DateTime<Utc>, slot: Option<&Slot>, event: &Told) {
        if let (Some(journals), Some(node)) = (&mut self.journals, self.scenario.nodes.get(by.node)) {
            journals.write((by, node), wall, slot, event);
        }
    }

    /// Something was done to the cluster, until then.
    pub(super) fn enter(&mut self, kind: &str, target: &str, until: Time) {
        // To the millisecond, as every line.
        let (at, until) = (self.instant().trunc_subsecs(3), self.scenario.instant(until.min(self.scenario.end)));
        if let Some(journals) = &mut self.journals {
            let (kind, target) = (kind.to_owned(), target.to_owned());
            journals.enter(verify::InjectedFault { at, kind, target, until: Some(until.max(at)) });
        }
    }

    /// What had struck is over, if it was not before.
    pub(super) fn lift(&mut self, kind: &str) {
        let now = self.instant();
        self.journals.iter_mut().for_each(|journals| journals.lift(kind, now));
    }

    /// Something was done to a node, until then.
    pub(super) fn enter_node(&mut self, kind: &str, node: usize, until: Time) {
        if let (true, Some(name)) = (self.journals.is_some(), self.scenario.nodes.get(node).cloned()) {
            self.enter(kind, name.as_str(), until);
        }
    }

    /// Something befell a message of a node, about a slot or about nothing in particular; what follows from it is over then.
    pub(super) fn enter_message(&mut self, kind: &str, (node, slot): (usize, Option<&Slot>), until: Time) {
        match slot {
            Some(slot) if self.journals.is_some() => self.enter(kind, &slot.to_string(), until),
            _ => self.enter_node(kind, node, until),
        }
    }

    /// Changes the fingerprint.
    pub(super) fn stamp(&mut self, what: u64) {
        let nanos = u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX);
        self.fingerprint = (self.fingerprint ^ nanos ^ what.rotate_left(48)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
