//! Drives one slot machine, as `cronward::drive` does: carries out its actions as messages and feeds it what comes of them.
//! It decides nothing, and watches that the machine starts nothing that it may not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::Mono;
use cronward::drive::Fact;
use cronward::job::{NodeName, OnStoreError};
use cronward::machine::{Action, Assignment, LockAction, LockPort, SlotMachine};
use cronward::node::Start;
use cronward::resource::LockExit;
use cronward::slot::{Attempt, Lease, OutputTail, RunContext, RunRecord, Token};
use cronward::store::Op;

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
    /// The same for its locks.
    pub(super) lock_timer: Option<Mono>,
    /// The request for the locks of its present attempt, while they are needed.
    pub(super) asked: Option<Token>,
    /// Its command was started with these.
    started_with: Option<Token>,
    /// It hears hints on locks, as from its first request on.
    pub(super) listens: bool,
    /// With [`Bug::LocksKeptInRetry`]: releases that wait for the end of the slot.
    withheld: Vec<LockExit>,
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
            lock_timer: None,
            asked: None,
            started_with: None,
            listens: false,
            withheld: Vec::new(),
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
        if self.machine.ended().is_some() {
            for exit in std::mem::take(&mut self.withheld) {
                requests.ask(desk, Asked::Lock(Op::Release, id, exit.token, desk.now.mono), Ask::Release(exit), None);
            }
        }
        let needs = self.machine.is_queueing() || self.asked == self.started_with;
        if let Some(token) = self.asked.filter(|_| !needs) {
            self.needs_no_locks(desk, token);
        }
        true
    }

    /// Its command is over, or will not be started with these.
    fn needs_no_locks(&mut self, desk: &mut Desk<'_>, token: Token) {
        desk.nature.needs_no_locks(token);
        self.asked = None;
    }

    /// Its command is over, or could not be started.
    pub(super) fn is_over(&mut self, desk: &mut Desk<'_>) {
        if let Some(token) = self.asked {
            self.needs_no_locks(desk, token);
        }
    }

    fn ask_for_locks(&mut self, desk: &mut Desk<'_>, id: u64, requests: &mut Requests, order: LockAction) {
        let of = order.token();
        let ask = match order {
            LockAction::Acquire(request) => {
                if let Some(earlier) = self.asked.filter(|earlier| *earlier != request.token) {
                    self.needs_no_locks(desk, earlier);
                }
                (self.asked, self.listens) = (Some(request.token), true);
                let attempt = self.granted.map_or(0, |(_, attempt)| attempt);
                desk.nature.needs_locks(desk.process, self.machine.slot(), attempt, &request);
                Ask::Acquire(request)
            }
            LockAction::Renew(hold) => Ask::RenewLock(hold),
            LockAction::Release(_) if desk.nature.is_bug(Bug::LocksNotReleased) => return,
            LockAction::Release(exit) => {
                if desk.nature.is_bug(Bug::LocksKeptInRetry) && self.machine.ended().is_none() {
                    return self.withheld.push(exit);
                }
                Ask::Release(exit)
            }
        };
        let asked = Asked::Lock(ask.op(), id, of, desk.now.mono);
        requests.ask(desk, asked, ask, None);
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
                let run = with_output(desk, run);
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
            Action::Lock(order) => self.ask_for_locks(desk, id, requests, order),
            Action::AskPause => requests.ask(desk, Asked::Pause(id), Ask::Pauses, None),
            Action::GiveBack { lease, run } => {
                let counts = desk.nature.is_bug(Bug::WaitingCounts) && run.started_at.is_none();
                let ask = if counts {
                    Ask::Fail { lease, run, retry_after: Duration::ZERO }
                } else {
                    Ask::GiveBack { lease, run }
                };
                requests.ask(desk, Asked::Settlement(id, None), ask, None);
            }
            Action::Spawn(context) => {
                self.ordered = desk.nature.now;
                self.started_with = self.asked;
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
        self.set_lock_timer(desk, id);
    }

    /// The same for its locks.
    pub(super) fn set_lock_timer(&mut self, desk: &mut Desk<'_>, id: u64) {
        let at = self.machine.poll_lock_timeout();
        if let Some(at) = at.filter(|_| at != self.lock_timer) {
            let when = desk.clock.when(at).max(desk.nature.now);
            desk.nature.queue.push(when, Event::LockTimer { of: desk.process, task: id, at });
        }
        self.lock_timer = at;
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
        desk.nature.spawned.push((slot.clone(), token, task.asked));
        desk.nature.look_at_locks_of_start(desk.process, desk.now.mono, &context, task.asked);
    }
    let at = desk.nature.now + desk.nature.dice.span(Duration::from_millis(1), SLOWEST_START);
    let started = Event::Started { by: desk.process, task: id, context: Box::new(context) };
    desk.nature.queue.push(at, started);
}

/// The command runs, under this token.
pub(super) fn begin(
    desk: &mut Desk<'_>,
    id: u64,
    (token, locks): (Token, Option<Token>),
    context: &RunContext,
) -> usize {
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
        locks,
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

/// With the bug of a node that insists on the output: the record as it was before the store refused it.
fn with_output(desk: &Desk<'_>, run: RunRecord) -> RunRecord {
    if !desk.nature.is_bug(Bug::OutputInsistedOn) {
        return run;
    }
    RunRecord { output: Some(OutputTail { text: "x".to_owned(), ..OutputTail::default() }), ..run }
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
    let mut policy = spec.policy.clone();
    if desk.nature.is_bug(Bug::StartsWithoutLocks) {
        policy.locks = None;
    }
    let bits = (u128::from(desk.nature.dice.bits()) << 64) | u128::from(desk.nature.dice.bits() >> 32);
    let scenario = &desk.nature.scenario;
    Assignment {
        slot,
        policy,
        success_codes: spec.command.success_codes.clone(),
        node: scenario.nodes.get(desk.process.node).cloned().unwrap_or_else(|| NodeName::nearest("n")),
        trigger,
        scheduled_at,
        past: false,
        audit: None,
        poll: scenario.poll,
        seed: Token::from_bits(bits),
        locks: Some(LockPort { instance: desk.process.instance(), poll: scenario.poll }),
    }
}
