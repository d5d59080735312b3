//! The slots that a daemon drives: tells their machines what happened and what the store answered, starts their commands, and
//! keeps what the node's own machine is to hear of it. It decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::{Mono, Now};
use cronward::drive::Fact;
use cronward::event::Event as Told;
use cronward::machine::{End, LockReply, SlotMachine};
use cronward::node::{DriveId, Start};
use cronward::resource::{LockHint, LockRenewal};
use cronward::slot::{Exit, ExitStatus, Lease, OutputTail, RunContext, Slot, Token};
use cronward::store::{Claim, Op};

use crate::again::Again;
use crate::checks::Bug;
use crate::desk::Desk;
use crate::faults::Fault;
use crate::message::{Answer, Ask, NoAnswer};
use crate::nature::Event;
use crate::requests::{Asked, Requests};
use crate::task::{SLOWEST_START, Task, assignment, begin};

/// How long a drive whose slot is over waits for the store to answer that its locks are free, as in `drive::task`.
const LAST_RELEASES: Duration = Duration::from_secs(2);

/// What a node's machine hears of its drives.
#[derive(Debug)]
pub(super) enum ToNode {
    /// A run was settled with the store.
    Settled(Slot),
    /// A slot's machine has ended; it was begun by this tick.
    Ended { slot: Slot, id: DriveId, tick: DateTime<Utc>, end: End },
}

/// The slots that one daemon drives, and what it has asked and done for them.
#[derive(Debug, Default)]
pub(super) struct Drives {
    tasks: BTreeMap<DriveId, Task>,
    /// Those whose slots are over and whose locks are being released; until when, and what is told then.
    leaving: BTreeMap<DriveId, (Task, Mono, ToNode)>,
    requests: Requests,
    again: Again,
    told: Vec<ToNode>,
}

impl Drives {
    /// What the node is to hear, once.
    pub(super) fn told(&mut self) -> Vec<ToNode> {
        std::mem::take(&mut self.told)
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Nothing is driven, and nothing is waited for.
    pub(super) fn are_over(&self) -> bool {
        self.tasks.is_empty() && self.leaving.is_empty()
    }

    pub(super) fn task(&self, id: DriveId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    pub(super) fn ids(&self) -> Vec<DriveId> {
        self.tasks.keys().copied().collect()
    }

    /// Asks the store something that is no slot's.
    pub(super) fn ask(&mut self, desk: &mut Desk<'_>, asked: Asked, ask: Ask) {
        self.requests.ask(desk, asked, ask, None);
    }

    /// A slot is driven from now on.
    pub(super) fn start(&mut self, desk: &mut Desk<'_>, start: Start) {
        let (id, scheduled_at) = (start.id, start.scheduled_at);
        let holding = Arc::clone(&start.holding);
        let machine = SlotMachine::new(assignment(start, desk), desk.now);
        self.tasks.insert(id, Task::new(machine, scheduled_at, holding));
        self.tell(desk, id, |_, _| {});
    }

    /// A timer may be due; it is none where the machine has set another.
    pub(super) fn timer(&mut self, desk: &mut Desk<'_>, id: DriveId, at: Mono) {
        let due = self.tasks.get_mut(&id).filter(|task| task.timer == Some(at));
        if due.map(|task| task.timer = None).is_some() {
            self.tell(desk, id, |machine, now| machine.handle_timeout(now));
        }
    }

    /// Hints were lost, and perhaps all that the store knew.
    pub(super) fn assert_again(&mut self, desk: &mut Desk<'_>) {
        self.again.begin(desk, &mut self.requests);
    }

    /// A round of telling it again goes on.
    pub(super) fn look_up(&mut self, desk: &mut Desk<'_>, round: u64) {
        self.again.look_up(desk, &mut self.requests, round);
    }

    /// With the bug of a watchdog that outlives its run: a renewal that nobody needs.
    pub(super) fn watchdog(&mut self, desk: &mut Desk<'_>, lease: Lease) {
        let (patience, token) = (lease.ttl / 3, lease.token);
        self.requests.ask(desk, Asked::Renewal(0, token), Ask::Renew(lease), Some(patience));
    }

    /// Tells a task's machine something, then does what it wants.
    pub(super) fn tell(&mut self, desk: &mut Desk<'_>, id: u64, what: impl FnOnce(&mut SlotMachine, Now)) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        what(&mut task.machine, desk.now);
        let slot = task.machine.slot().clone();
        if !task.carry_out(desk, id, (&mut self.requests, &self.again)) {
            return;
        }
        task.holding.store(task.machine.is_holding(), Ordering::Relaxed);
        while let Some(event) = task.machine.poll_event() {
            desk.nature.hear(desk.process, desk.uncorrected.wall, &slot, &event);
            if matches!(event, Told::Settled { .. }) {
                self.told.push(ToNode::Settled(slot.clone()));
            }
        }
        if let Some(end) = task.machine.ended() {
            if let Some(run) = task.run.and_then(|run| desk.nature.runs.get_mut(run)) {
                run.settled = true;
            }
            task.outlive(desk);
            let told = ToNode::Ended { slot, id, tick: task.scheduled_at, end };
            return self.leave(desk, id, task, told);
        }
        if !task.machine.is_holding()
            && let Some(run) = task.run.take().and_then(|run| desk.nature.runs.get_mut(run))
        {
            run.settled = true;
        }
        task.set_timer(desk, id);
        self.tasks.insert(id, task);
    }

    /// An answer, or the lack of one; handed back where no slot has asked.
    pub(super) fn answered(
        &mut self,
        desk: &mut Desk<'_>,
        id: u64,
        answer: Result<Answer, NoAnswer>,
    ) -> Option<(Asked, Result<Answer, NoAnswer>)> {
        match self.requests.answered(id)? {
            Asked::Claim(task, token, sent) => self.claim_answered(desk, (task, token, sent), answer),
            Asked::Renewal(task, of) => match answer {
                Ok(Answer::Renewal(answer)) => self.tell(desk, task, |it, now| it.handle_renewal(now, of, Ok(answer))),
                Ok(_) => {}
                Err(none) => self.tell(desk, task, |it, now| it.handle_renewal(now, of, Err(none.error(Op::Renew)))),
            },
            Asked::Lock(op, task, of, sent) => self.locks_answered(desk, (task, of, sent), (op, answer)),
            Asked::Pause(task) => self.tell(desk, task, |machine, now| {
                let job = machine.slot().job();
                let reply = match &answer {
                    Ok(Answer::Pauses(paused)) => Ok(paused.contains(job)),
                    Ok(_) => return,
                    Err(none) => Err(none.error(Op::Pauses)),
                };
                machine.handle_pause(now, reply);
            }),
            Asked::Settlement(task, fact) => self.settled(desk, task, fact, answer),
            Asked::Inspect(round, facts) => {
                self.again.looked_up(desk, &mut self.requests, (round, facts), answer.ok());
            }
            Asked::Again(round, fact, rest) => {
                self.again.told_again(desk, &mut self.requests, (round, &fact, rest), answer.ok());
            }
            asked => return Some((asked, answer)),
        }
        None
    }

    fn settled(&mut self, desk: &mut Desk<'_>, id: u64, fact: Option<Box<Fact>>, answer: Result<Answer, NoAnswer>) {
        if let (Some(fact), Ok(_)) = (fact, &answer) {
            if desk.nature.is_bug(Bug::FailureDoneAgain) {
                self.again.keep(desk, (*fact).clone());
            }
            Again::acknowledged(desk, &fact);
        }
        match answer {
            Ok(Answer::Settlement(answer)) => self.tell(desk, id, |it, now| it.handle_settlement(now, Ok(answer))),
            Ok(Answer::Release(answer)) => self.tell(desk, id, |it, now| it.handle_release(now, Ok(answer))),
            Ok(_) => {}
            // Only the one that is on its way listens.
            Err(none) => self.tell(desk, id, |it, now| {
                it.handle_settlement(now, Err(none.error(Op::Complete)));
                it.handle_release(now, Err(none.error(Op::Fail)));
            }),
        }
    }

    fn claim_answered(
        &mut self,
        desk: &mut Desk<'_>,
        (id, token, sent): (u64, Token, Now),
        answer: Result<Answer, NoAnswer>,
    ) {
        let mistaken = desk.nature.is_bug(Bug::ErrorIsGrant);
        let reply = match answer {
            Ok(Answer::Claim(claim)) => Ok(claim),
            Ok(_) => return,
            Err(_) if mistaken => Ok(Claim::Claimed { attempt: 1, used: 1, at: desk.now.wall, revision: None }),
            Err(none) => Err(none.error(Op::Claim)),
        };
        if let (Some(task), Ok(Claim::Claimed { attempt, .. })) = (self.tasks.get_mut(&id), &reply) {
            task.granted = Some((token, *attempt)).filter(|_| !mistaken);
        }
        let stopped = desk.nature.is_bug(Bug::ClockStops);
        self.tell(desk, id, |machine, now| machine.handle_claim(if stopped { sent } else { now }, reply));
    }

    /// The command is started now, or cannot be.
    pub(super) fn started(&mut self, desk: &mut Desk<'_>, id: u64, context: &RunContext) {
        let rate = if desk.nature.is_calm() { 0 } else { desk.nature.scenario.rates.no_start };
        if desk.nature.dice.chance(rate) {
            desk.nature.strike(Fault::NoStart);
            let now = desk.nature.now;
            desk.nature.story(&context.slot).into_iter().for_each(|story| story.not_started = Some(now));
            let status = ExitStatus::NotStarted { code: 127, message: "not found".to_owned() };
            self.tasks.get_mut(&id).into_iter().for_each(|task| task.is_over(desk));
            return self.tell(desk, id, |machine, now| {
                machine.handle_started(now);
                machine.handle_exit(now, exit(status));
            });
        }
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let token = task.granted.map_or(Token::from_bits(0), |(token, _)| token);
        let run = begin(desk, id, (token, task.asked), context);
        task.run = Some(run);
        // A node that stood still between the order and the start did so under the run as well.
        let paused = desk.nature.now > task.ordered + SLOWEST_START;
        desk.nature.runs.get_mut(run).into_iter().for_each(|run| run.paused |= paused);
        self.tell(desk, id, |machine, now| machine.handle_started(now));
    }

    /// The node notices that the command has ended.
    pub(super) fn ended(&mut self, desk: &mut Desk<'_>, (id, run): (u64, usize), code: Result<i32, i32>) {
        let Some(task) = self.tasks.get_mut(&id).filter(|task| task.run == Some(run)) else { return };
        task.is_over(desk);
        let status = code.map_or_else(ExitStatus::Signal, ExitStatus::Code);
        let length = [1, LONG_OUTPUT].into_iter().nth(run % 2).filter(|_| desk.nature.scenario.has_outputs());
        let output = OutputTail { text: "x".repeat(length.unwrap_or(0)), ..OutputTail::default() };
        self.tell(desk, id, |machine, now| machine.handle_exit(now, Exit { output, ..exit(status) }));
    }
}

/// What is only of locks.
impl Drives {
    /// The slot is over; its locks may still have to be released.
    fn leave(&mut self, desk: &mut Desk<'_>, id: u64, mut task: Task, told: ToNode) {
        if !task.machine.leaves_locks() {
            return self.told.push(told);
        }
        let until = desk.now.mono + LAST_RELEASES;
        let when = desk.clock.when(until).max(desk.nature.now);
        desk.nature.queue.push(when, Event::LockTimer { of: desk.process, task: id, at: until });
        task.set_lock_timer(desk, id);
        self.leaving.insert(id, (task, until, told));
    }

    /// Tells a task's machine something of its locks, also while it leaves them.
    fn tell_of_locks(&mut self, desk: &mut Desk<'_>, id: u64, what: impl FnOnce(&mut SlotMachine, Now)) {
        let Some((mut task, until, told)) = self.leaving.remove(&id) else { return self.tell(desk, id, what) };
        what(&mut task.machine, desk.now);
        if !task.carry_out(desk, id, (&mut self.requests, &self.again)) {
            return;
        }
        while let Some(event) = task.machine.poll_event() {
            desk.nature.hear(desk.process, desk.uncorrected.wall, task.machine.slot(), &event);
        }
        if !task.machine.leaves_locks() || desk.now.mono >= until {
            return self.told.push(told);
        }
        task.set_lock_timer(desk, id);
        self.leaving.insert(id, (task, until, told));
    }

    /// Something may be due about a task's locks.
    pub(super) fn lock_timer(&mut self, desk: &mut Desk<'_>, id: DriveId, at: Mono) {
        let leaves = self.leaving.get_mut(&id).map(|(task, until, _)| (task, *until <= at));
        let due = match leaves {
            Some((task, is_last)) => Some((task, is_last)),
            None => self.tasks.get_mut(&id).map(|task| (task, false)),
        };
        let due = due.filter(|(task, is_last)| *is_last || task.lock_timer == Some(at));
        if due.map(|(task, _)| task.lock_timer = None).is_some() {
            self.tell_of_locks(desk, id, |machine, now| machine.handle_lock_timeout(now));
        }
    }

    /// A hint on locks: each drive hears it that has asked for some.
    pub(super) fn hear_of_locks(&mut self, desk: &mut Desk<'_>, hint: LockHint) {
        let listen: Vec<DriveId> = self.tasks.iter().filter(|(_, task)| task.listens).map(|(id, _)| *id).collect();
        for id in listen {
            self.tell(desk, id, |machine, now| machine.handle_lock_hint(now, hint));
        }
    }

    fn locks_answered(
        &mut self,
        desk: &mut Desk<'_>,
        (id, of, sent): (u64, Token, Mono),
        (op, answer): (Op, Result<Answer, NoAnswer>),
    ) {
        let mistaken = desk.nature.is_bug(Bug::LocksNeverLost);
        if let Ok(answer) = &answer {
            desk.nature.hears_of_locks(of, sent, answer);
        }
        let reply = match (op, answer) {
            (_, Ok(Answer::Acquired(answer))) => LockReply::Acquired(Ok(answer)),
            (Op::RenewLock, _) if mistaken => LockReply::Renewed(Ok(LockRenewal::Renewed)),
            (_, Ok(Answer::LockRenewal(answer))) => LockReply::Renewed(Ok(answer)),
            (_, Ok(Answer::LockRelease(answer))) => LockReply::Released(Ok(answer)),
            (_, Ok(_)) => return,
            (Op::Acquire, Err(none)) => LockReply::Acquired(Err(none.error(op))),
            (Op::RenewLock, Err(none)) => LockReply::Renewed(Err(none.error(op))),
            (_, Err(none)) => LockReply::Released(Err(none.error(op))),
        };
        self.tell_of_locks(desk, id, |machine, now| machine.handle_lock_reply(now, of, reply));
    }
}

/// Longer than what is sent again where no answer came.
const LONG_OUTPUT: usize = 5_000;

fn exit(status: ExitStatus) -> Exit {
    Exit::of(status)
}
