//! Drives one slot machine, as `cronward::drive` does: carries out its actions as messages and feeds it what comes of them.
//! It decides nothing, and watches that the machine starts nothing that it may not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::Mono;
use cronward::drive::Fact;
use cronward::job::{NodeName, OnStoreError};
use cronward::machine::{Action, Assignment, SlotMachine};
use cronward::node::Start;
use cronward::slot::{Attempt, Lease, RunContext, Token};

use crate::again::Again;
use crate::checks::Bug;
use crate::checks::Check;
use crate::desk::Desk;
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::SimulatedRun;
use crate::message::Ask;
use crate::nature::Event;
use crate::requests::{Asked, Requests};

/// From the order to start a command to its start, at the most.
pub(super) const SLOWEST_START: Duration = Duration::from_millis(20);

/// One slot being driven.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) machine: SlotMachine,
    pub(super) scheduled_at: DateTime<Utc>,
    /// The claim that the store last answered with a grant.
    pub(super) granted: Option<(Token, Attempt)>,
    /// The token of its last claim.
    pub(super) claimed: Option<Token>,
    lease: Option<Lease>,
    pub(super) run: Option<usize>,
    pub(super) timer: Option<Mono>,
    /// When the start of the command was ordered.
    pub(super) ordered: Time,
    /// Shown to the node: the command may be running.
    pub(super) holding: Arc<AtomicBool>,
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

    /// Does what the machine wants. False where its process dies of it.
    pub(super) fn carry_out(
        &mut self,
        desk: &mut Desk<'_>,
        id: u64,
        (requests, again): (&mut Requests, &Again),
    ) -> bool {
        while let Some(action) = self.machine.poll_action() {
            self.act(desk, id, (&mut *requests, again), action);
            if desk.dying {
                return false;
            }
        }
        true
    }

    fn act(&mut self, desk: &mut Desk<'_>, id: u64, (requests, again): (&mut Requests, &Again), action: Action) {
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
        desk.nature.note(|_| format!("  n{} {}: {}", process.node + 1, self.machine.slot(), words(&action)));
        match action {
            Action::Claim(request) => {
                self.granted = None;
                let token = request.token;
                self.claimed = Some(token);
                let now = desk.now;
                requests.ask(desk, Asked::Claim(id, token, now), Ask::Claim(request), None);
            }
            Action::Renew { lease, within } => {
                requests.ask(desk, Asked::Renewal(id, lease.token), Ask::Renew(lease), Some(within));
            }
            Action::Complete { lease, run, done_ttl } => {
                self.lease = Some(lease.clone());
                let fact = Fact { lease: lease.clone(), run: run.clone(), done_ttl };
                again.keep(desk, fact.clone());
                requests.ask(
                    desk,
                    Asked::Settlement(id, Some(Box::new(fact))),
                    Ask::Complete { lease, run, done_ttl },
                    None,
                );
            }
            Action::Fail { lease, run, retry_after } => {
                self.lease = Some(lease.clone());
                let fact = Fact { lease: lease.clone(), run: run.clone(), done_ttl: lease.ttl };
                let fact = desk.nature.is_bug(Bug::FailureDoneAgain).then(|| Box::new(fact));
                let ask = if desk.nature.is_bug(Bug::FailureIsDone) {
                    Ask::Complete { done_ttl: lease.ttl, lease, run }
                } else {
                    Ask::Fail { lease, run, retry_after }
                };
                requests.ask(desk, Asked::Settlement(id, fact), ask, None);
            }
            // No job of a world names locks.
            Action::Lock(_) | Action::AskPause => {}
            Action::GiveBack { lease, run } => {
                requests.ask(desk, Asked::Settlement(id, None), Ask::GiveBack { lease, run }, None);
            }
            Action::Spawn(context) => {
                self.ordered = desk.nature.now;
                spawn(desk, id, self, context);
            }
            Action::Terminate => stop(desk, self, false),
            Action::Kill => stop(desk, self, true),
        }
    }

    /// With the bug of a watchdog that outlives its run: it goes on.
    pub(super) fn outlive(&self, desk: &mut Desk<'_>) {
        if desk.nature.is_bug(Bug::WatchdogOutlivesTheRun)
            && let Some(lease) = &self.lease
        {
            let at = desk.nature.now + lease.ttl / 3;
            desk.nature.queue.push(at, Event::Watchdog { by: desk.process, lease: Box::new(lease.clone()) });
        }
    }

    /// Lets the world know when the machine is due again.
    pub(super) fn set_timer(&mut self, desk: &mut Desk<'_>, id: u64) {
        let at = self.machine.poll_timeout();
        if desk.nature.is_bug(Bug::NeverLooksAgain) && !self.machine.is_holding() {
            return;
        }
        if let Some(at) = at.filter(|_| at != self.timer) {
            let when = desk.clock.when(at).max(desk.nature.now);
            let when = if desk.nature.is_bug(Bug::TimersFireAtOnce) { desk.nature.now } else { when };
            let late = desk.nature.is_bug(Bug::LooksLate) && !self.machine.is_holding();
            let when = if late { when + Duration::from_millis(500) } else { when };
            desk.nature.queue.push(when, Event::Timer { of: desk.process, task: id, at });
        }
        self.timer = at;
    }
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

/// The command runs, under this token.
pub(super) fn begin(desk: &mut Desk<'_>, id: u64, token: Token, context: &RunContext) -> usize {
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
    nature.runs.push(SimulatedRun {
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

/// An action in a trace.
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
        Action::Lock(order) => format!("{order:?}"),
        Action::AskPause => "ask for a pause".to_owned(),
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
        locks: None,
    }
}
