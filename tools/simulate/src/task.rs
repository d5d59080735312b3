//! Drives one slot machine, as `cronward::drive` does: carries out its actions as messages and feeds it what comes of them.
//! It decides nothing, and watches that the machine starts nothing that it may not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::{Mono, Now};
use cronward::drive::Fact;
use cronward::guard::{Action, Assignment, SlotMachine};
use cronward::job::{NodeName, OnStoreError};
use cronward::node::Start;
use cronward::slot::{Attempt, Exit, ExitStatus, Lease, RunContext, Token};
use cronward::store::{Claim, Op};

use crate::checks::Bug;
use crate::checks::Check;
use crate::daemon::{Asked, Daemon, Desk};
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::Run;
use crate::message::{Answer, Ask, NoAnswer};
use crate::nature::Event;

/// From the order to start a command to its start, at the most.
const SLOWEST_START: Duration = Duration::from_millis(20);

/// One slot being driven.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) machine: SlotMachine,
    scheduled_at: DateTime<Utc>,
    /// The claim that the store last answered with a grant.
    pub(super) granted: Option<(Token, Attempt)>,
    /// The token of its last claim.
    pub(super) claimed: Option<Token>,
    lease: Option<Lease>,
    pub(super) run: Option<usize>,
    pub(super) timer: Option<Mono>,
    /// When the start of the command was ordered.
    ordered: Time,
    /// Shown to the node: the command may be running.
    holding: Arc<AtomicBool>,
}

impl Task {
    pub(super) const fn new(machine: SlotMachine, scheduled_at: DateTime<Utc>, holding: Arc<AtomicBool>) -> Self {
        Self {
            machine,
            scheduled_at,
            granted: None,
            claimed: None,
            lease: None,
            run: None,
            timer: None,
            ordered: Time::ZERO,
            holding,
        }
    }
}

impl Daemon {
    /// Tells a task's machine something, then does what it wants.
    pub(super) fn tell(&mut self, desk: &mut Desk<'_>, id: u64, what: impl FnOnce(&mut SlotMachine, Now)) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        what(&mut task.machine, desk.now);
        let slot = task.machine.slot().clone();
        while let Some(action) = task.machine.poll_action() {
            self.act(desk, id, &mut task, action);
            if desk.dying {
                return;
            }
        }
        task.holding.store(task.machine.is_holding(), Ordering::Relaxed);
        while let Some(event) = task.machine.poll_event() {
            desk.nature.hear(desk.process, desk.uncorrected.wall, &slot, &event);
            self.overheard(&slot, &event);
        }
        if let Some(end) = task.machine.ended() {
            if let Some(run) = task.run.and_then(|run| desk.nature.runs.get_mut(run)) {
                run.settled = true;
            }
            self.outlive(desk, &task);
            return self.task_ended(desk, &slot, (id, end), task.scheduled_at);
        }
        if !task.machine.is_holding()
            && let Some(run) = task.run.take().and_then(|run| desk.nature.runs.get_mut(run))
        {
            run.settled = true;
        }
        set_timer(desk, id, &mut task);
        self.tasks.insert(id, task);
    }

    fn act(&mut self, desk: &mut Desk<'_>, id: u64, task: &mut Task, action: Action) {
        let rate = if desk.nature.is_calm() { 0 } else { desk.nature.scenario.rates.crash_at_step };
        let dies = desk.nature.dice.chance(rate);
        if dies {
            desk.nature.strike(Fault::CrashAtStep);
            desk.dying = true;
            if desk.nature.dice.below(2) == 0 {
                return;
            }
        }
        let process = desk.process;
        desk.nature.note(|_| format!("  n{} {}: {}", process.node + 1, task.machine.slot(), words(&action)));
        match action {
            Action::Claim(request) => {
                task.granted = None;
                let token = request.token;
                task.claimed = Some(token);
                let now = desk.now;
                self.ask(desk, Asked::Claim(id, token, now), Ask::Claim(request), None);
            }
            Action::Renew { lease, within } => {
                self.ask(desk, Asked::Renewal(id, lease.token), Ask::Renew(lease), Some(within));
            }
            Action::Complete { lease, run, done_ttl } => {
                task.lease = Some(lease.clone());
                let fact = Fact { lease: lease.clone(), run: run.clone(), done_ttl };
                self.keep(desk, fact.clone());
                self.ask(
                    desk,
                    Asked::Settlement(id, Some(Box::new(fact))),
                    Ask::Complete { lease, run, done_ttl },
                    None,
                );
            }
            Action::Fail { lease, run, retry_after } => {
                task.lease = Some(lease.clone());
                let fact = Fact { lease: lease.clone(), run: run.clone(), done_ttl: lease.ttl };
                let fact = desk.nature.is_bug(Bug::FailureDoneAgain).then(|| Box::new(fact));
                let ask = if desk.nature.is_bug(Bug::FailureIsDone) {
                    Ask::Complete { done_ttl: lease.ttl, lease, run }
                } else {
                    Ask::Fail { lease, run, retry_after }
                };
                self.ask(desk, Asked::Settlement(id, fact), ask, None);
            }
            Action::GiveBack { lease, run } => {
                self.ask(desk, Asked::Settlement(id, None), Ask::GiveBack { lease, run }, None);
            }
            Action::Spawn(context) => {
                task.ordered = desk.nature.now;
                spawn(desk, id, task, context);
            }
            Action::Terminate => stop(desk, task, false),
            Action::Kill => stop(desk, task, true),
        }
    }

    /// An answer, or the lack of one.
    pub(super) fn answered(&mut self, desk: &mut Desk<'_>, id: u64, answer: Result<Answer, NoAnswer>) {
        let Some(asked) = self.asked.remove(&id) else { return };
        match asked {
            Asked::Claim(task, token, sent) => self.claim_answered(desk, (task, token, sent), answer),
            Asked::Renewal(task, of) => match answer {
                Ok(Answer::Renewal(answer)) => self.tell(desk, task, |it, now| it.handle_renewal(now, of, Ok(answer))),
                Ok(_) => {}
                Err(none) => self.tell(desk, task, |it, now| it.handle_renewal(now, of, Err(none.error(Op::Renew)))),
            },
            Asked::Settlement(task, fact) => self.settled(desk, task, fact, answer),
            Asked::Inspect(round, facts) => self.looked_up(desk, round, facts, answer.ok()),
            Asked::Again(round, fact, rest) => self.told_again(desk, round, (&fact, rest), answer.ok()),
            asked => self.reported(desk, asked, answer),
        }
    }

    fn settled(&mut self, desk: &mut Desk<'_>, id: u64, fact: Option<Box<Fact>>, answer: Result<Answer, NoAnswer>) {
        if let (Some(fact), Ok(_)) = (fact, &answer) {
            if desk.nature.is_bug(Bug::FailureDoneAgain) {
                self.keep(desk, (*fact).clone());
            }
            Self::acknowledged(desk, &fact);
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
            return self.tell(desk, id, |machine, now| {
                machine.handle_started(now);
                machine.handle_exit(now, exit(status));
            });
        }
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let token = task.granted.map_or(Token::from_bits(0), |(token, _)| token);
        let run = begin(desk, id, token, context);
        task.run = Some(run);
        // A node that stood still between the order and the start did so under the run as well.
        let paused = desk.nature.now > task.ordered + SLOWEST_START;
        desk.nature.runs.get_mut(run).into_iter().for_each(|run| run.paused |= paused);
        self.tell(desk, id, |machine, now| machine.handle_started(now));
    }

    /// The node notices that the command has ended.
    pub(super) fn ended(&mut self, desk: &mut Desk<'_>, id: u64, code: Result<i32, i32>) {
        let status = code.map_or_else(ExitStatus::Signal, ExitStatus::Code);
        self.tell(desk, id, |machine, now| machine.handle_exit(now, exit(status)));
    }

    /// With the bug of a watchdog that outlives its run: it goes on.
    fn outlive(&self, desk: &mut Desk<'_>, task: &Task) {
        if desk.nature.is_bug(Bug::WatchdogOutlivesTheRun)
            && let Some(lease) = &task.lease
        {
            let at = desk.nature.now + lease.ttl / 3;
            desk.nature.queue.push(at, Event::Watchdog { by: desk.process, lease: Box::new(lease.clone()) });
        }
    }
}

fn set_timer(desk: &mut Desk<'_>, id: u64, task: &mut Task) {
    let at = task.machine.poll_timeout();
    if desk.nature.is_bug(Bug::NeverLooksAgain) && !task.machine.is_holding() {
        return;
    }
    if let Some(at) = at.filter(|_| at != task.timer) {
        let when = desk.clock.when(at).max(desk.nature.now);
        let when = if desk.nature.is_bug(Bug::TimersFireAtOnce) { desk.nature.now } else { when };
        let late = desk.nature.is_bug(Bug::LooksLate) && !task.machine.is_holding();
        let when = if late { when + Duration::from_millis(500) } else { when };
        desk.nature.queue.push(when, Event::Timer { of: desk.process, task: id, at });
    }
    task.timer = at;
}

/// The command is going to be started; nothing of that is to be heard without a grant (I8), or after the trust.
fn spawn(desk: &mut Desk<'_>, id: u64, task: &Task, context: RunContext) {
    let slot = &context.slot;
    let policy = desk.nature.scenario.job(slot.job()).map(|(_, job)| job.spec.policy.on_store_error);
    let allowed = match task.granted {
        Some((_, attempt)) => context.lease_held && attempt == context.attempt,
        None => !context.lease_held && policy == Some(OnStoreError::Run),
    };
    if !allowed {
        desk.nature.break_off(Check::I8, format!("n{} starts {slot} without a grant", desk.process.node + 1));
    }
    // No store says that the slot has begun: the node's own clock has to, as it is put right by then.
    if !context.lease_held && desk.now.wall < slot.start() {
        let text =
            format!("n{} starts {slot} without a guard, and it has not begun by its clock", desk.process.node + 1);
        desk.nature.break_off(Check::I6, text);
    }
    if let Some((token, _)) = task.granted {
        desk.nature.spawned.push((slot.clone(), token));
    }
    let at = desk.nature.now + desk.nature.dice.span(Duration::from_millis(1), SLOWEST_START);
    let started = Event::Started { by: desk.process, task: id, context: Box::new(context) };
    desk.nature.queue.push(at, started);
}

fn begin(desk: &mut Desk<'_>, id: u64, token: Token, context: &RunContext) -> usize {
    let nature = &mut *desk.nature;
    let index = nature.runs.len();
    let habit = nature.scenario.job(context.slot.job()).map(|(_, job)| job.habit);
    let dice = &mut nature.dice;
    let (mut ends, mut code, mut stubborn) = (Some(Duration::ZERO), Ok(0), false);
    if let Some(habit) = habit {
        let usual = dice.span(habit.usual.0, habit.usual.1);
        let long = dice.span(habit.usual.1, habit.longest);
        ends = Some(if dice.chance(habit.long) { long } else { usual }).filter(|_| !dice.chance(habit.hangs));
        code = if dice.chance(habit.success) { Ok(0) } else { dice.pick(&[Ok(1), Err(11)], Ok(1)) };
        stubborn = dice.chance(habit.stubborn);
    }
    nature.runs.push(Run {
        by: desk.process,
        task: id,
        attempt: context.attempt,
        token,
        guarded: context.lease_held,
        started: nature.now,
        ended: None,
        code: None,
        stopped: false,
        orphaned: false,
        paused: false,
        settled: false,
        unnameable: Vec::new(),
        stubborn,
        plan: 0,
    });
    nature.summary.classes.runs += 1;
    if let Some(story) = nature.story(&context.slot) {
        story.runs.push(index);
    }
    if let Some(after) = ends {
        nature.queue.push(nature.now + after, Event::Ends { run: index, plan: 0, code });
    }
    index
}

/// TERM or KILL to the command.
fn stop(desk: &mut Desk<'_>, task: &Task, kill: bool) {
    if desk.nature.is_bug(Bug::KillIgnored) {
        return;
    }
    let nature = &mut *desk.nature;
    let quickly = nature.dice.span(Duration::from_millis(1), Duration::from_millis(if kill { 5 } else { 200 }));
    let heeds = nature.dice.pick(&[Ok(0), Err(15)], Err(15));
    let Some(index) = task.run else { return };
    let Some(run) = nature.runs.get_mut(index) else { return };
    // It may just have ended by itself: the node says that it was stopped, and that counts.
    run.stopped = true;
    if run.ended.is_none() && (kill || !run.stubborn) {
        run.plan += 1;
        let code = if kill { Err(9) } else { heeds };
        nature.queue.push(nature.now + quickly, Event::Ends { run: index, plan: run.plan, code });
    }
}

fn exit(status: ExitStatus) -> Exit {
    Exit::of(status)
}

fn words(action: &Action) -> String {
    match action {
        Action::Claim(request) => format!("claim {}", request.token),
        Action::Renew { lease, within } => format!("renew attempt {} within {within:?}", lease.attempt),
        Action::Spawn(context) => format!("start attempt {}", context.attempt),
        Action::Terminate => "terminate".to_owned(),
        Action::Kill => "kill".to_owned(),
        Action::Complete { lease, .. } => format!("complete attempt {}", lease.attempt),
        Action::Fail { lease, run, retry_after } => {
            format!("fail attempt {} ({:?}), retry after {retry_after:?}", lease.attempt, run.outcome)
        }
        Action::GiveBack { lease, .. } => format!("give back attempt {}", lease.attempt),
    }
}

/// What a task of a slot is to do.
pub(super) fn assignment(start: Start, desk: &mut Desk<'_>) -> Assignment {
    let Start { spec, slot, scheduled_at, trigger, .. } = start;
    let bits = (u128::from(desk.nature.dice.bits()) << 64) | u128::from(desk.nature.dice.bits() >> 32);
    let scenario = &desk.nature.scenario;
    Assignment {
        slot,
        policy: spec.policy.clone(),
        success_codes: spec.command.success_codes.clone(),
        node: scenario.nodes.get(desk.process.node).cloned().unwrap_or_else(|| NodeName::nearest("n")),
        trigger,
        scheduled_at,
        past: false,
        audit: None,
        poll: scenario.poll,
        seed: Token::from_bits(bits),
    }
}
