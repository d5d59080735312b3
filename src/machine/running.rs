//! While a command runs: renewing, doubt and loss, the timeout, the drain, and how it is stopped.

use crate::clock::{Mono, Now, between, later};
use crate::error::StoreError;
use crate::event::Event;
use crate::job::{OnLost, Policy};
use crate::machine::slot::Phase;
use crate::machine::{Action, SlotMachine, TrustWindow, pace};
use crate::reply::{Renewal, RenewalAnswer};
use crate::slot::{Holder, Lease, LeaseDeadline, RunContext, RunLocks, Token};

/// A lease and the command under it.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) lease: Lease,
    /// Attempts that count, this one included; 0 without a guard.
    pub(super) used: u32,
    /// False: the store was away and the policy says to run all the same. There is nothing to renew or lose.
    pub(super) guarded: bool,
    pub(super) trust: TrustWindow,
    pub(super) renewing: Renewing,
    pub(super) in_doubt: bool,
    /// A reason to renew came while a renewal was on its way, before the command was started.
    pub(super) hinted: bool,
    /// When the command was started; none while it is being started.
    pub(super) started: Option<Now>,
    pub(super) stop: Option<Stop>,
    /// A stop that was wanted before the command was started.
    wanted: Option<(Cause, Mono)>,
}

/// Where the renewals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewing {
    /// The next is due.
    At(Mono),
    /// One is on its way.
    Sent(Mono),
    /// There is nothing more to renew.
    Over,
}

/// The command is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) cause: Cause,
    pub(super) begun: Mono,
    pub(super) kill_at: Mono,
    killed: bool,
}

/// Why the command is being stopped. The first cause is the one that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Lost,
    Drain,
    Replaced,
}

impl Hold {
    pub(super) fn guarded(lease: Lease, trust: TrustWindow, used: u32) -> Self {
        let renewing = Renewing::At(trust.renew_at());
        Self {
            lease,
            used,
            guarded: true,
            trust,
            renewing,
            in_doubt: false,
            hinted: false,
            started: None,
            stop: None,
            wanted: None,
        }
    }

    pub(super) fn unguarded(lease: Lease, now: Mono) -> Self {
        let trust = TrustWindow::granted(now, lease.ttl);
        Self { guarded: false, renewing: Renewing::Over, ..Self::guarded(lease, trust, 0) }
    }

    /// Everything that is due some time, whatever the phase of the run.
    pub(super) fn next_deadline(&self, machine: &SlotMachine) -> Option<Mono> {
        let policy = &machine.assignment.policy;
        let stop = match self.stop {
            Some(Stop { killed: true, .. }) => [None, None],
            Some(stop) => [Some(stop.kill_at), None],
            None => [self.times_out_at(policy), machine.drain_until],
        };
        // Before the command is started there is nothing to stop; `handle_started` looks at the stops again.
        let stop = if self.started.is_some() { stop } else { [None, None] };
        let held = [self.renewal_due(), self.doubt_due(policy), self.lock_stop_due(machine)];
        held.into_iter().chain(stop).flatten().min()
    }

    /// With `kill`, when the command must begin to be stopped, or its KILL be brought forward, because its locks were not renewed.
    fn lock_stop_due(&self, machine: &SlotMachine) -> Option<Mono> {
        let policy = &machine.assignment.policy;
        let trust = machine.lock_trust().filter(|_| policy.on_lost == OnLost::Kill && self.started.is_some())?;
        let is_in_time = self.stop.is_some_and(|stop| stop.killed || stop.kill_at <= trust.deadline());
        (!is_in_time).then(|| trust.stop_at(policy.kill_after))
    }

    pub(super) const fn renewal_due(&self) -> Option<Mono> {
        match self.renewing {
            Renewing::At(at) => Some(at),
            Renewing::Sent(_) | Renewing::Over => None,
        }
    }

    /// When the trust ends, or with `kill` when the command must begin to be stopped.
    fn doubt_due(&self, policy: &Policy) -> Option<Mono> {
        if self.in_doubt || self.renewing == Renewing::Over {
            return None;
        }
        let stopping = self.stop.is_some() || self.started.is_none();
        Some(match policy.on_lost {
            OnLost::Kill if !stopping => self.trust.stop_at(policy.kill_after),
            OnLost::Kill | OnLost::Continue => self.trust.deadline(),
        })
    }

    fn times_out_at(&self, policy: &Policy) -> Option<Mono> {
        Some(self.started?.mono + policy.timeout?)
    }
}

impl SlotMachine {
    /// By when the command has to be over unless the lease and the locks are renewed: with `on_lost = "kill"`, while one runs. For whoever
    /// keeps the command; the machine itself goes by the same.
    #[must_use]
    pub fn lease_deadline(&self) -> Option<LeaseDeadline> {
        let Phase::Running(hold) = &self.phase else { return None };
        let policy = &self.assignment.policy;
        if !hold.guarded || policy.on_lost != OnLost::Kill {
            return None;
        }
        let windows = [Some(hold.trust), self.lock_trust()].into_iter().flatten();
        windows
            .map(|trust| trust.command_deadline(policy.kill_after))
            .reduce(|a, b| LeaseDeadline { stop_at: a.stop_at.min(b.stop_at), kill_at: a.kill_at.min(b.kill_at) })
    }

    /// How long the lease of the run can be trusted unless it is renewed; none without a run, and once the lease is lost.
    #[must_use]
    pub fn lease_trust(&self) -> Option<TrustWindow> {
        let Phase::Running(hold) = &self.phase else { return None };
        (hold.guarded && hold.renewing != Renewing::Over).then_some(hold.trust)
    }

    pub(super) fn spawn(&mut self, now: Now, hold: Hold) {
        let context = self.context(now, &hold);
        self.tell(Event::RunStarted {
            attempt: hold.lease.attempt,
            fence: hold.lease.fence(),
            trigger: hold.lease.trigger,
            guarded: hold.guarded,
            late: between(self.assignment.scheduled_at, now.wall),
        });
        self.phase = Phase::Running(Box::new(hold));
        self.act(Action::Spawn(context));
    }

    fn context(&self, now: Now, hold: &Hold) -> RunContext {
        let a = &self.assignment;
        RunContext {
            slot: a.slot.clone(),
            scheduled_at: a.scheduled_at,
            attempt: hold.lease.attempt,
            max_attempts: a.policy.max_attempts,
            fence: hold.lease.fence(),
            fence_revision: hold.lease.revision,
            // Unique for each start because the token is; mixed, so that it does not tell the token.
            run_id: format!("{:016x}", pace::mix(hold.lease.token.bits(), u64::from(hold.lease.attempt))),
            node: a.node.clone(),
            trigger: hold.lease.trigger,
            deadline: a.policy.timeout.map(|timeout| later(now.wall, timeout)),
            token: hold.guarded.then_some(hold.lease.token),
            lease_held: hold.guarded,
            locks: self.locks_held(now).map(RunLocks::of),
        }
    }

    /// The command was started, or could not be; in both cases `handle_exit` follows.
    pub fn handle_started(&mut self, now: Now) {
        if let Phase::Running(hold) = &mut self.phase {
            hold.started = Some(now);
            if let Some((cause, kill_at)) = hold.wanted.take() {
                self.stop(now, cause, kill_at);
            }
            self.tend_run(now);
        }
    }

    /// The job's next slot is due and its policy is `replace`.
    pub fn handle_replaced(&mut self, now: Now) {
        if self.is_queueing() {
            return self.leave_queue(now, self.while_waiting("a newer slot of the job was due"));
        }
        self.stop(now, Cause::Replaced, now.mono + self.assignment.policy.kill_after);
    }

    /// Does what is due while the command runs.
    pub(super) fn tend_run(&mut self, now: Now) {
        self.renew_if_due(now);
        self.doubt_if_due(now);
        let Phase::Running(hold) = &self.phase else { return };
        let policy = &self.assignment.policy;
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now.mono);
        let kill_at = now.mono + policy.kill_after;
        if hold.stop.is_none() && due(hold.times_out_at(policy)) {
            let attempt = hold.lease.attempt;
            self.tell(Event::RunTimedOut { attempt });
            self.stop(now, Cause::Timeout, kill_at);
        } else if hold.stop.is_none() && due(self.drain_until) {
            self.stop(now, Cause::Drain, kill_at);
        }
        self.stop_for_locks_if_due(now);
        self.kill_if_due(now);
    }

    fn stop_for_locks_if_due(&mut self, now: Now) {
        let Phase::Running(hold) = &self.phase else { return };
        let (due, trust) = (hold.lock_stop_due(self), self.lock_trust());
        if let Some(trust) = trust.filter(|_| due.is_some_and(|at| at <= now.mono)) {
            self.stop(now, Cause::Lost, trust.deadline());
        }
    }

    fn doubt_if_due(&mut self, now: Now) {
        let Phase::Running(hold) = &mut self.phase else { return };
        let policy = &self.assignment.policy;
        if hold.doubt_due(policy).is_none_or(|at| now.mono < at) {
            return;
        }
        let killing = policy.on_lost == OnLost::Kill;
        let deadline = hold.trust.deadline();
        if !hold.trust.holds(now.mono) {
            hold.in_doubt = true;
            let attempt = hold.lease.attempt;
            self.tell(Event::LeaseInDoubt { attempt, killing, ended: false });
        }
        if killing {
            self.stop(now, Cause::Lost, deadline);
        }
    }

    /// Begins to stop the command; a second cause can only bring the KILL forward. Before the command is started only
    /// the wish is kept: [`SlotMachine::handle_started`] acts on it.
    pub(super) fn stop(&mut self, now: Now, cause: Cause, kill_at: Mono) {
        let Phase::Running(hold) = &mut self.phase else { return };
        if let Some(stop) = &mut hold.stop {
            stop.kill_at = stop.kill_at.min(kill_at);
        } else if hold.started.is_some() {
            hold.stop = Some(Stop { cause, begun: now.mono, kill_at, killed: false });
            self.act(Action::Terminate);
        } else {
            let kill_at = hold.wanted.map_or(kill_at, |(_, before)| before.min(kill_at));
            hold.wanted = Some((hold.wanted.map_or(cause, |(first, _)| first), kill_at));
        }
        self.kill_if_due(now);
    }

    fn kill_if_due(&mut self, now: Now) {
        let Phase::Running(hold) = &mut self.phase else { return };
        let Some(stop) = &mut hold.stop else { return };
        if stop.kill_at <= now.mono && !stop.killed {
            stop.killed = true;
            self.act(Action::Kill);
        }
    }

    /// Sends the next renewal now.
    pub(super) fn renew_now(&mut self, now: Now) {
        if let Some(hold) = self.hold_mut()
            && let Renewing::At(at) = &mut hold.renewing
        {
            *at = now.mono.min(*at);
            self.renew_if_due(now);
        }
    }

    /// Sends the renewal that is due, while running and while a success waits to be recorded.
    pub(super) fn renew_if_due(&mut self, now: Now) {
        let Some(hold) = self.hold_mut() else { return };
        if hold.renewal_due().is_none_or(|at| now.mono < at) {
            return;
        }
        hold.renewing = Renewing::Sent(now.mono);
        // Once the trust is over the answer only tells what became of the lease; a third of the TTL is patience enough.
        let left = hold.trust.remaining(now.mono);
        let within = if left.is_zero() { hold.lease.ttl / 3 } else { left };
        let lease = hold.lease.clone();
        self.act(Action::Renew { lease, within });
    }

    /// The answer to [`Action::Renew`] of the lease with this token. Ignored when none is on its way, and when it is of an
    /// attempt that has ended here: its answer may come when the next attempt has a renewal of its own on its way.
    pub fn handle_renewal(&mut self, now: Now, of: Token, reply: Result<Renewal, StoreError>) {
        let Some(hold) = self.hold_mut().filter(|hold| hold.lease.token == of) else { return };
        let Renewing::Sent(sent) = hold.renewing else { return };
        match reply {
            Ok(Renewal::Renewed) => self.renewed(sent, false),
            Ok(Renewal::Restored) => self.renewed(sent, true),
            Ok(Renewal::Lost { to }) => self.lost(now, RenewalAnswer::Lost, to),
            Ok(Renewal::Done(mark)) if mark.token == Some(of) => self.recorded(now),
            Ok(Renewal::Done(mark)) => self.lost(now, RenewalAnswer::Done, Some(mark.by)),
            Err(error) => {
                hold.renewing = Renewing::At(now.mono + pace::renewal_error(hold.lease.ttl));
                self.tell_error(&error);
            }
        }
        self.handle_timeout(now);
    }

    fn renewed(&mut self, sent: Mono, restored: bool) {
        let Some(hold) = self.hold_mut() else { return };
        hold.trust = TrustWindow::granted(sent, hold.lease.ttl);
        // What the hint told of may be younger than this answer.
        let again = std::mem::take(&mut hold.hinted);
        hold.renewing = Renewing::At(if again { sent } else { hold.trust.renew_at() });
        hold.in_doubt = false;
        let attempt = hold.lease.attempt;
        self.errors = super::slot::Errors::default();
        let answer = if restored { RenewalAnswer::Restored } else { RenewalAnswer::Renewed };
        self.tell(Event::RenewalAnswered { answer });
        if restored {
            self.tell(Event::LeaseRestored { attempt });
        }
        self.ask_for_a_pause();
    }

    /// The done marker has the lease's own token: the success was recorded. The completion is repeated without delay all the same: an
    /// operator may have unlocked the slot, and only the answer to a completion names an attempt that ran meanwhile.
    fn recorded(&mut self, now: Now) {
        let Some(hold) = self.hold_mut() else { return };
        hold.renewing = Renewing::Over;
        self.errors = super::slot::Errors::default();
        self.tell(Event::RenewalAnswered { answer: RenewalAnswer::Done });
        if let Phase::Settling(settling) = &mut self.phase {
            settling.repeat_at_once(now);
        }
    }

    fn lost(&mut self, now: Now, answer: RenewalAnswer, to: Option<Holder>) {
        let killing = self.is_killing();
        let Some(hold) = self.hold_mut() else { return };
        hold.renewing = Renewing::Over;
        let attempt = hold.lease.attempt;
        self.errors = super::slot::Errors::default();
        self.tell(Event::RenewalAnswered { answer });
        // Only the verdict may be left of a success that was recorded.
        let own = |by: &Holder| by.attempt == attempt && by.node == self.assignment.node;
        let is_own_success = answer == RenewalAnswer::Done && to.as_ref().is_some_and(own);
        // Of a command that has ended the settlement names who was granted the slot meanwhile.
        if !is_own_success && !matches!(self.phase, Phase::Settling(_)) {
            let (to, to_attempt) = to.map(|to| (to.node, to.attempt)).unzip();
            let unstarted = self.is_queueing();
            self.tell(Event::LeaseLost { attempt, to, to_attempt, killing, unstarted });
        }
        if killing {
            self.stop(now, Cause::Lost, now.mono);
        }
        if self.is_queueing() {
            self.leave_queue(now, self.while_waiting("its lease was lost"));
        }
    }

    fn hold_mut(&mut self) -> Option<&mut Hold> {
        match &mut self.phase {
            Phase::Queueing(hold) | Phase::Running(hold) => Some(hold),
            Phase::Settling(settling) => Some(&mut settling.hold),
            _ => None,
        }
    }
}
