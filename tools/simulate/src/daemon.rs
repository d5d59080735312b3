//! One node's daemon: drives the machine that the real one drives (`node::NodeMachine`), without a runtime. It dies with its
//! process; what it decides, the machine decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::drive::{MAX_RUNNING, Message};
use cronward::event::Event as Told;
use cronward::job::{JobName, JobSpec, NodeName};
use cronward::node::{Action, DriveId, Identity, NodeMachine, Plan, Question, Report, Start, Upkeep};
use cronward::schedule::ScheduleError;
use cronward::slot::{Slot, Verdict};
use cronward::store::{Closing, JobEntry, Op, StoreError, Wake};

use crate::checks::Bug;
use crate::desk::Desk;
use crate::drives::{Drives, ToNode};
use crate::engine::{NodeClock, Time};
use crate::message::{Answer, Ask, NoAnswer};
use crate::nature::Event;
use crate::requests::Asked;
use crate::task::Task;

/// One start of a node's daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) machine: NodeMachine,
    drives: Drives,
    /// The next armed tick that the world knows of.
    armed: Option<DateTime<Utc>>,
    /// When it leaves, whatever still runs; the world knows of it.
    leaves: Option<Time>,
    /// Since when it has had each of its jobs without a break.
    pub(super) known: BTreeMap<JobName, Time>,
    /// What the wall clock is put right by, in milliseconds.
    ahead_ms: i64,
}

impl Daemon {
    pub(super) fn new(specs: Vec<Arc<JobSpec>>, desk: &Desk<'_>) -> Result<Self, ScheduleError> {
        let scenario = &desk.nature.scenario;
        let name = scenario.nodes.get(desk.process.node).cloned().unwrap_or_else(|| NodeName::nearest("n"));
        let instance = desk.process.start.to_string();
        let identity = Identity { name, instance, labels: BTreeMap::new(), started_at: desk.now.wall };
        // The ledger forgets by itself what is old.
        let upkeep = Upkeep { heartbeat: scenario.heartbeat, purges: false, hints: true };
        Ok(Self {
            machine: NodeMachine::new(identity, upkeep, plan(specs), desk.now)?,
            drives: Drives::default(),
            armed: None,
            leaves: None,
            known: BTreeMap::new(),
            ahead_ms: 0,
        })
    }

    /// Begins nothing more.
    pub(super) const fn is_leaving(&self) -> bool {
        self.machine.leave_by().is_some()
    }

    /// The job as this daemon has it.
    pub(super) fn job(&self, job: &JobName) -> Option<&JobSpec> {
        self.machine.entries().get(job).map(|entry| &*entry.spec)
    }

    /// A beat of the planner.
    pub(super) fn beat(&mut self, desk: &mut Desk<'_>) {
        // What was armed by a clock that was set since may be due sooner.
        self.armed = None;
        self.machine.handle_beat(desk.now);
        self.carry_out(desk);
    }

    /// An armed tick may be due.
    pub(super) fn fire(&mut self, desk: &mut Desk<'_>) {
        self.armed = None;
        self.machine.handle_ticks(desk.now);
        self.carry_out(desk);
    }

    /// A hint from the store.
    pub(super) fn wake(&mut self, desk: &mut Desk<'_>, wake: &Wake) {
        self.machine.handle_wake(desk.now, wake);
        self.carry_out(desk);
    }

    /// Nothing new begins; runs may go on for a while. Whoever asks a second time wants it to stop at once, as in
    /// `cli::daemon`.
    pub(super) fn shut_down(&mut self, desk: &mut Desk<'_>, drain: Duration) {
        let drain = if self.is_leaving() { Duration::ZERO } else { drain };
        self.machine.handle_shutdown(desk.now, drain);
        self.carry_out(desk);
    }

    /// It leaves, whatever the store was not told.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) {
        self.machine.handle_impatience();
        self.carry_out(desk);
        desk.leaving = true;
    }

    /// The file was changed.
    pub(super) fn reload(&mut self, desk: &mut Desk<'_>, specs: Vec<Arc<JobSpec>>) {
        self.armed = None;
        self.machine.handle_reload(desk.now, plan(specs));
        self.carry_out(desk);
    }

    /// Lets the drives of slots work, and hears what they tell that the node acts on.
    pub(super) fn drive(&mut self, desk: &mut Desk<'_>, work: impl FnOnce(&mut Drives, &mut Desk<'_>)) {
        work(&mut self.drives, desk);
        for told in self.drives.told() {
            match told {
                ToNode::Settled(slot) => self.machine.handle_released(&slot),
                ToNode::Ended { slot, id, tick, end } => self.machine.handle_end(desk.now, slot, id, tick, end),
            }
        }
    }

    /// The slots that it drives.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.drives.tasks()
    }

    /// One of them.
    pub(super) fn task(&self, id: DriveId) -> Option<&Task> {
        self.drives.task(id)
    }

    /// An answer, or the lack of one.
    pub(super) fn answered(&mut self, desk: &mut Desk<'_>, id: u64, answer: Result<Answer, NoAnswer>) {
        let mut others = None;
        self.drive(desk, |drives, desk| others = drives.answered(desk, id, answer));
        if let Some((asked, answer)) = others {
            self.reported(desk, asked, answer);
        }
    }

    /// What came of a question that is no slot's.
    fn reported(&mut self, desk: &mut Desk<'_>, asked: Asked, answer: Result<Answer, NoAnswer>) {
        let received = desk.uncorrected;
        let none = |op: Op| move |none: NoAnswer| none.error(op);
        let report = match asked {
            Asked::Nodes(sent) => {
                let reply = answer.map_err(none(Op::Nodes)).and_then(|answer| match answer {
                    Answer::Nodes(now, nodes) => Ok((now, nodes)),
                    _ => Err(unlike(Op::Nodes)),
                });
                Report::Nodes { sent, received, reply }
            }
            Asked::Heartbeat(sent) => {
                let (reply, looked) = match answer.map_err(none(Op::Heartbeat)) {
                    Ok(Answer::Heartbeat(reply, looked)) => (Ok(reply), looked),
                    Ok(_) => (Err(unlike(Op::Heartbeat)), None),
                    Err(error) => (Err(error), None),
                };
                Report::Heartbeat { sent, received, reply, looked }
            }
            Asked::Register(plan) => {
                let reply = answer.map_err(none(Op::Register)).and_then(|answer| match answer {
                    Answer::Jobs(jobs) => Ok(self.first_seen(desk, jobs)),
                    _ => Err(unlike(Op::Register)),
                });
                Report::Registered { plan, reply }
            }
            Asked::Close(slot) => {
                let reply = answer.map_err(none(Op::Close)).and_then(|answer| match answer {
                    Answer::Closing(closing) => Ok(closing),
                    _ => Err(unlike(Op::Close)),
                });
                // With the bug it takes no answer for one.
                let once = desk.nature.is_bug(Bug::ClosesOnce);
                let reply = if once { reply.or(Ok(Closing::Already(Verdict::Missed))) } else { reply };
                Report::Closed { slot, reply }
            }
            _ => return,
        };
        self.machine.handle_report(desk.now, report);
    }

    /// The registry of jobs, as the node takes it: what is said of a job that is not in its file the node does not keep.
    fn first_seen(&self, desk: &mut Desk<'_>, mut jobs: Vec<JobEntry>) -> Vec<JobEntry> {
        let by = (desk.process.node, desk.process.start);
        for entry in jobs.iter_mut().filter(|entry| self.machine.entries().contains_key(&entry.name)) {
            let told = desk.nature.told_first_seen.entry((by, entry.name.clone())).or_insert(entry.first_seen);
            *told = entry.first_seen.min(*told);
            if desk.nature.is_bug(Bug::OwesFromBefore) {
                entry.first_seen = DateTime::UNIX_EPOCH;
            }
        }
        jobs
    }

    /// Does what the machine wants, and lets the world know when it is due again.
    pub(super) fn carry_out(&mut self, desk: &mut Desk<'_>) {
        while !desk.dying
            && let Some(action) = self.machine.poll_action()
        {
            self.do_for_node(desk, action);
        }
        let (scenario, now) = (&desk.nature.scenario, desk.nature.now);
        if let Some(at) = self.machine.next_tick().filter(|at| Some(*at) != self.armed) {
            self.armed = Some(at);
            let when = desk.clock.when_wall(scenario.epoch, at).max(now);
            desk.nature.queue.push(when, Event::Fire(desk.process));
        }
        let leaves = self.machine.leave_by().map(|at| desk.clock.when(at).max(now));
        if let Some(when) = leaves.filter(|_| leaves != self.leaves) {
            self.leaves = leaves;
            desk.nature.queue.push(when, Event::Leaves(desk.process));
        }
    }

    fn do_for_node(&mut self, desk: &mut Desk<'_>, action: Action) {
        match action {
            Action::Ask(question) => self.ask_of_node(desk, question),
            Action::Start(start) => self.start(desk, start),
            Action::Tell(id, message) => self.pass_on(desk, id, &message),
            Action::TellAll(message) => self.tell_all(desk, &message),
            Action::Emit(event) => desk.tell(&event),
            Action::Announce(slot, verdict) => announce(desk, &slot, verdict),
            // Nobody reads the notes of a world.
            Action::Note(..) => {}
            Action::CorrectClock { ahead_ms } => {
                self.ahead_ms = ahead_ms;
                desk.nature.trouble(desk.process.node, desk.nature.now + Duration::from_secs(2));
                desk.clock = self.corrected(desk.machine_clock);
                desk.now = desk.clock.now(desk.nature.scenario.epoch, desk.nature.now);
                self.armed = None;
                self.tell_all(desk, &Message::ClockSet);
            }
            Action::PlanTaken => {
                let now = desk.nature.instant();
                for job in self.machine.entries().keys() {
                    desk.nature.first_known.entry(job.clone()).or_insert(now);
                }
                // A node whose file loses a job forgets what it knew of the job.
                let (by, entries) = ((desk.process.node, desk.process.start), self.machine.entries());
                desk.nature.told_first_seen.retain(|(told, job), _| *told != by || entries.contains_key(job));
                let known = |job: &JobName| self.known.get(job).copied().unwrap_or(desk.nature.now);
                self.known = self.machine.entries().keys().map(|job| (job.clone(), known(job))).collect();
            }
            Action::AssertAgain => self.drives.assert_again(desk),
        }
    }

    fn start(&mut self, desk: &mut Desk<'_>, start: Start) {
        self.drive(desk, |drives, desk| drives.start(desk, start));
    }

    fn tell_all(&mut self, desk: &mut Desk<'_>, message: &Message) {
        for id in self.drives.ids() {
            self.pass_on(desk, id, message);
        }
    }

    fn pass_on(&mut self, desk: &mut Desk<'_>, id: DriveId, message: &Message) {
        self.drive(desk, |drives, desk| drives.tell(desk, id, |machine, now| message.hand_to(machine, now)));
    }

    fn ask_of_node(&mut self, desk: &mut Desk<'_>, question: Question) {
        let sent = desk.uncorrected;
        match question {
            Question::Nodes => self.drives.ask(desk, Asked::Nodes(sent), Ask::Nodes),
            Question::Heartbeat { report, looks } => {
                self.drives.ask(desk, Asked::Heartbeat(sent), Ask::Heartbeat { report: *report, looks });
            }
            Question::Register { plan, mut jobs } => {
                if desk.nature.is_bug(Bug::RegistersAnew) {
                    jobs.iter_mut().for_each(|entry| entry.first_seen = desk.now.wall);
                }
                self.drives.ask(desk, Asked::Register(plan), Ask::Register(jobs));
            }
            Question::Close { slot, max_attempts } => {
                self.drives.ask(desk, Asked::Close(slot.clone()), Ask::Close { slot, max_attempts });
            }
            // Nobody resets a slot of a world.
            Question::Look(_) | Question::Purge | Question::Note => {}
        }
    }

    /// The clock as this daemon reads it.
    pub(super) const fn corrected(&self, clock: NodeClock) -> NodeClock {
        NodeClock { offset: clock.offset - self.ahead_ms * 1_000_000, ..clock }
    }

    /// Whether a clean shutdown is complete.
    pub(super) fn may_leave(&self) -> bool {
        self.is_leaving() && self.drives.are_over()
    }
}

fn plan(specs: Vec<Arc<JobSpec>>) -> Plan {
    let job_hashes = specs.iter().map(|spec| (spec.name.clone(), String::new())).collect();
    Plan { jobs: specs, job_hashes, max_running: MAX_RUNNING, ..Plan::default() }
}

/// An answer to another question: the simulator sends none.
fn unlike(op: Op) -> StoreError {
    NoAnswer::TIMEOUT.error(op)
}

fn announce(desk: &mut Desk<'_>, slot: &Slot, verdict: Verdict) {
    let node = desk.process.node + 1;
    desk.nature.note(|_| format!("  n{node} tells: {slot} is {}", verdict.as_str()));
    desk.nature.write(desk.process, desk.uncorrected.wall, Some(slot), &Told::Closed { verdict });
    if let Some(story) = desk.nature.story(slot) {
        story.announced += 1;
    }
}
