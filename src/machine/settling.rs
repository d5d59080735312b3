//! After the command: how its end is judged, recorded, and what comes next.

use std::time::Duration;

use crate::clock::{CLOCK_OFF, Mono, Now, earlier};
use crate::error::{Applied, ErrorKind, StoreError};
use crate::event::Event;
use crate::machine::running::{Cause, Hold, Renewing};
use crate::machine::slot::{Behind, Phase, WaitReason};
use crate::machine::{Action, End, SlotMachine, TrustWindow, pace};
use crate::reply::{Release, Settlement};
use crate::resource::Demand;
use crate::slot::{Exit, ExitStatus, Lease, NOT_STARTED, OUTPUT_LOST, Outcome, OutputLoss, Overlap, RunRecord};

/// An output of so many bytes delays no answer: the record itself has as many.
const SHORT_OUTPUT: usize = 4 * 1_024;

/// A run that is over and has to be told to the store.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    pub(super) hold: Hold,
    outcome: Outcome,
    /// Its command was never started.
    unstarted: bool,
    record: RunRecord,
    retry_after: Duration,
    /// When to send (again); none while a request is on its way.
    send_at: Option<Mono>,
    errors: u32,
    /// Given up after this.
    until: Mono,
    /// The run of who was granted the slot meanwhile, as far as it is known.
    overtaker: Option<RunRecord>,
}

impl Settling {
    /// Whether the run of who was granted the slot meanwhile went on at the same time.
    fn overlap(&self) -> Overlap {
        self.overtaker.as_ref().map_or_else(Overlap::default, |other| Overlap::of(&self.record, other))
    }

    /// Leaves out of the record what keeps the store from taking it: the end of the run is recorded whatever becomes of its output.
    /// True where the store refused the content and other content is sent next, which need not wait.
    fn lighten(&mut self, error: &StoreError) -> bool {
        if error.kind == ErrorKind::Content {
            return self.record.lighten(OutputLoss::Refused);
        }
        if error.applied == Applied::Maybe {
            self.shorten();
        }
        false
    }

    /// Leaves out an output that may delay the answer.
    fn shorten(&mut self) {
        if self.record.output.as_ref().is_some_and(|output| output.text.len() > SHORT_OUTPUT) {
            self.record.drop_output(OutputLoss::Unanswered);
        }
    }

    /// Asks for the answer again now, unless an answer is on its way.
    pub(super) fn repeat_at_once(&mut self, now: Now) {
        self.shorten();
        self.send_at = self.send_at.map(|at| at.min(now.mono));
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let renewal = if self.outcome == Outcome::Success { self.hold.renewal_due() } else { None };
        [self.send_at, renewal].into_iter().flatten().min()
    }
}

impl SlotMachine {
    /// The command has ended, or could not be started.
    pub fn handle_exit(&mut self, now: Now, exit: Exit) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        let Phase::Running(hold) = std::mem::replace(&mut self.phase, Phase::Ended(End::Unknown)) else { return };
        let killed = exit.lapsed.is_some();
        let ended = ended(now, &hold, &exit);
        self.doubt_at_exit(if killed { now.mono } else { ended.mono }, &hold, killed);
        self.leave_locks(now, killed);
        let outcome = self.judge(&hold, ended.mono, &exit);
        let unstarted = matches!(exit.status, ExitStatus::NoResources { .. });
        self.left = if unstarted { self.left.saturating_add(1) } else { 0 };
        let ran = hold.started.filter(|_| !unstarted).map(|started| ended.mono.since(started.mono));
        let record = record(ended, &hold, outcome, exit);
        self.tell_end(&record, outcome, ran.unwrap_or_default());
        self.settle(now, (*hold, unstarted), outcome, record);
    }

    /// A node that stalled may learn of the exit before it looks at its deadlines. The trust ended while the command may have run, so
    /// another run may have overlapped; if that one has failed meanwhile, the settlement will not tell.
    fn doubt_at_exit(&mut self, ended: Mono, hold: &Hold, killing: bool) {
        if hold.renewing != Renewing::Over && !hold.in_doubt && !hold.trust.holds(ended) {
            self.tell(Event::LeaseInDoubt { attempt: hold.lease.attempt, killing, ended: true });
        }
    }

    /// A stop that cronward began while the command ran decides the outcome, whatever the exit code: exit 0 after TERM is how
    /// many programs say that they were interrupted. A stop that came too late has stopped nothing: a node that stood still
    /// may look at its deadlines before it learns of the exit. The command's keeper may have stopped it meanwhile, for the lease. A
    /// keeper that stood still passed nothing on until it had found the command ended.
    fn judge(&self, hold: &Hold, ended: Mono, exit: &Exit) -> Outcome {
        let ended = exit.standstill.map_or(ended, |standstill| standstill.seen.min(ended));
        let own = hold.stop.filter(|stop| stop.begun <= ended).map(|stop| (stop.begun, stop.cause));
        let keepers = exit.lapsed.map(|at| (at, Cause::Lost));
        let first = [own, keepers].into_iter().flatten().min_by_key(|(at, _)| *at);
        match (first.map(|(_, cause)| cause), &exit.status) {
            (Some(Cause::Timeout), _) => Outcome::Timeout,
            (Some(Cause::Lost), _) => Outcome::LostLease,
            (Some(Cause::Drain), _) => Outcome::GivenBack,
            (Some(Cause::Replaced), _) | (None, ExitStatus::Signal(_)) => Outcome::Killed,
            (None, ExitStatus::Code(code)) if self.assignment.success_codes.contains(code) => Outcome::Success,
            // Another node may have what this one lacks. A run without a guard has no attempt to give back.
            (None, ExitStatus::NoResources { .. }) if hold.guarded => Outcome::GivenBack,
            (None, _) => Outcome::Failure,
        }
    }

    /// The run never begins: nothing may be started any more, or `locks` were waited for in vain.
    pub(super) fn give_back_unstarted(
        &mut self,
        now: Now,
        (lease, trust): (Lease, TrustWindow),
        why: &str,
        locks: Vec<Demand>,
    ) {
        self.tell(Event::Unstarted { attempt: lease.attempt, why: why.to_owned(), locks });
        let hold = Hold::guarded(lease, trust, 0);
        let status = ExitStatus::Code(0);
        let exit = Exit { note: Some(why.to_owned()), ..Exit::of(status) };
        let record = RunRecord { exit_code: None, output: None, ..record(now, &hold, Outcome::GivenBack, exit) };
        self.settle(now, (hold, true), Outcome::GivenBack, record);
    }

    fn settle(&mut self, now: Now, (mut hold, unstarted): (Hold, bool), outcome: Outcome, record: RunRecord) {
        let policy = &self.assignment.policy;
        // After a start that lacked a resource nothing has failed.
        let at_once = hold.used >= policy.max_attempts || (outcome == Outcome::GivenBack && hold.used > 0);
        let retry_after = if at_once { Duration::ZERO } else { policy.retry.delay_after(hold.used) };
        let until = self.end.max(now.mono) + policy.done_ttl_for(&self.assignment.slot);
        if outcome != Outcome::Success {
            // Nothing is done under the lease any more; letting it lapse would be right, releasing it is sooner.
            hold.renewing = Renewing::Over;
        }
        let send_at = Some(now.mono);
        let settling =
            Settling { hold, outcome, unstarted, record, retry_after, send_at, errors: 0, until, overtaker: None };
        self.phase = Phase::Settling(Box::new(settling));
        self.tend_settlement(now);
    }

    /// Sends what is due. A success goes on being renewed until the slot's end, so that nobody repeats it meanwhile; in a
    /// slot that was over before, all the time.
    pub(super) fn tend_settlement(&mut self, now: Now) {
        let Phase::Settling(settling) = &mut self.phase else { return };
        if now.mono >= self.end && !self.assignment.past {
            settling.hold.renewing = Renewing::Over;
        }
        if settling.send_at.is_some_and(|at| at <= now.mono) {
            if settling.errors > 0 && now.mono >= settling.until {
                let (attempt, outcome) = (settling.hold.lease.attempt, settling.outcome);
                return self.give_settlement_up(attempt, outcome);
            }
            settling.send_at = None;
            let action = order(settling, self.assignment.policy.done_ttl_for(&self.assignment.slot));
            self.act(action);
        }
        self.renew_if_due(now);
    }

    /// Whoever waits for the end waits no longer: the store is not told any more how the attempt ended. Before that there is
    /// nothing to give up.
    pub fn handle_impatience(&mut self) {
        let Phase::Settling(settling) = &self.phase else { return };
        let (attempt, outcome) = (settling.hold.lease.attempt, settling.outcome);
        if let Some(locks) = &mut self.locks {
            locks.forget();
        }
        self.give_settlement_up(attempt, outcome);
    }

    fn give_settlement_up(&mut self, attempt: u32, outcome: Outcome) {
        self.tell(Event::SettlementGivenUp { attempt, outcome });
        self.finish(End::Unrecorded);
    }

    /// What the store knows of the attempt that the next answer to a settlement names as the one that was granted the slot meanwhile.
    pub fn note_overtaker(&mut self, run: RunRecord) {
        if let Phase::Settling(settling) = &mut self.phase {
            settling.overtaker = Some(run);
        }
    }

    /// The answer to [`Action::Complete`].
    pub fn handle_settlement(&mut self, now: Now, reply: Result<Settlement, StoreError>) {
        let Phase::Settling(settling) = &self.phase else { return };
        if settling.send_at.is_some() || settling.outcome != Outcome::Success {
            return;
        }
        let (attempt, outcome, overlap) = (settling.hold.lease.attempt, settling.outcome, settling.overlap());
        match reply {
            Err(error) => self.settling_failed(now, &error),
            Ok(settlement) => {
                self.tell(Event::Settled { attempt, outcome });
                if let Settlement::Overtaken { by } = settlement {
                    let (by, by_attempt) = (by.node, by.attempt);
                    self.tell(Event::Overtaken { attempt, by, by_attempt, unstarted: false, overlap });
                }
                self.finish(End::Done);
            }
        }
    }

    /// The answer to [`Action::Fail`] and [`Action::GiveBack`].
    pub fn handle_release(&mut self, now: Now, reply: Result<Release, StoreError>) {
        let Phase::Settling(settling) = &self.phase else { return };
        if settling.send_at.is_some() || settling.outcome == Outcome::Success {
            return;
        }
        let (attempt, outcome) = (settling.hold.lease.attempt, settling.outcome);
        let (used, retry_after, unstarted) = (settling.hold.used, settling.retry_after, settling.unstarted);
        let overlap = settling.overlap();
        match reply {
            Err(error) => self.settling_failed(now, &error),
            Ok(release) => {
                self.errors = super::slot::Errors::default();
                self.tell(Event::Settled { attempt, outcome });
                if let Release::Overtaken { by } = &release {
                    let (by, by_attempt) = (by.node.clone(), by.attempt);
                    self.tell(Event::Overtaken { attempt, by, by_attempt, unstarted, overlap });
                }
                let is_overtaken = matches!(release, Release::Overtaken { .. });
                self.released(now, is_overtaken, (used, outcome), retry_after);
            }
        }
    }

    fn released(&mut self, now: Now, is_overtaken: bool, (used, outcome): (u32, Outcome), retry_after: Duration) {
        // Who waited for locks in vain has tried nothing.
        self.retrying |= outcome != Outcome::GivenBack || is_overtaken;
        if !is_overtaken && outcome != Outcome::GivenBack && used >= self.assignment.policy.max_attempts {
            self.tell(Event::AttemptsUsedUp { used });
            return self.finish(self.end_without_attempts());
        }
        if self.drain_until.is_some() {
            return self.finish(End::Left);
        }
        // A person asked for one run of a slot that was over: for another one they ask again.
        if self.assignment.past && now.mono >= self.end && outcome != Outcome::GivenBack {
            return self.finish(End::Closed);
        }
        let is_paused = self.locks.as_ref().is_some_and(|locks| locks.wait.paused);
        if is_paused && !is_overtaken && outcome == Outcome::GivenBack {
            // The store says until when, and the job's resume is heard; one that came meanwhile is found by that.
            let until = now.mono + self.spread(pace::SPREAD_RELEASE);
            return self.wait(until, WaitReason::Paused);
        }
        let handicap = pace::own_handicap(retry_after, self.assignment.poll);
        let wait = retry_after + handicap;
        // After the end nobody asks for the slot again.
        let is_over = now.mono >= self.end && !self.assignment.past;
        let wait = if is_over { wait } else { wait.max(pace::after_queue(self.left)) };
        let until = now.mono + wait;
        // By a clock that is ahead the slot seems over while others still wait for the retry.
        let over = self.end + CLOCK_OFF;
        let until = if now.mono < self.end { until.min(over) } else { until };
        let refused_until = now.mono + retry_after;
        self.behind = (!is_overtaken).then_some(Behind { refused_until, handicap, until });
        self.wait_behind(now, until);
    }

    /// The failing node waits longest, so that another one gets the retry.
    pub(super) fn wait_behind(&mut self, now: Now, until: Mono) {
        let look = self.behind.filter(|_| self.assignment.poll.is_some());
        let look = look.and_then(|behind| behind.allowed(now.mono + pace::LOOK_BEHIND));
        self.wait(look.map_or(until, |look| until.min(look)), WaitReason::OwnFailure);
    }

    fn settling_failed(&mut self, now: Now, error: &StoreError) {
        self.tell_error(error);
        let Phase::Settling(settling) = &mut self.phase else { return };
        settling.errors = settling.errors.saturating_add(1);
        let wait = if settling.lighten(error) { Duration::ZERO } else { pace::store_error(settling.errors) };
        settling.send_at = Some(now.mono + wait);
    }

    fn tell_end(&mut self, record: &RunRecord, outcome: Outcome, duration: Duration) {
        self.tell(Event::RunEnded {
            attempt: record.attempt,
            outcome,
            exit_code: record.exit_code,
            signal: record.signal,
            duration,
            ended_between: record.ended_between(),
            note: record.message.clone(),
        });
    }
}

fn order(settling: &Settling, done_ttl: Duration) -> Action {
    let (lease, run) = (settling.hold.lease.clone(), settling.record.clone());
    match settling.outcome {
        Outcome::Success => Action::Complete { lease, run, done_ttl },
        Outcome::GivenBack => Action::GiveBack { lease, run },
        _ => Action::Fail { lease, run, retry_after: settling.retry_after },
    }
}

/// When the command ended: as its keeper saw it, not before it was started and not after now.
fn ended(now: Now, hold: &Hold, exit: &Exit) -> Now {
    let least = hold.started.map_or(Mono::default(), |started| started.mono);
    let ended = exit.ended.map_or(now.mono, |ended| ended.max(least).min(now.mono));
    Now { mono: ended, wall: earlier(now.wall, now.mono.since(ended)) }
}

fn record(ended: Now, hold: &Hold, outcome: Outcome, exit: Exit) -> RunRecord {
    let unstarted = matches!(exit.status, ExitStatus::NoResources { .. });
    let (exit_code, signal, failure) = match exit.status {
        ExitStatus::Code(code) => (Some(code), None, None),
        ExitStatus::Signal(signal) => (None, Some(signal), None),
        ExitStatus::OutputLost => (Some(OUTPUT_LOST.into()), None, None),
        ExitStatus::NotStarted { code, message } => (Some(code), None, Some(message)),
        ExitStatus::NoResources { message } => (Some(NOT_STARTED), None, Some(message)),
    };
    let started = hold.started.filter(|_| !unstarted);
    let still = exit.standstill;
    let ran = started.filter(|_| still.is_none()).map(|started| ended.mono.since(started.mono));
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    RunRecord {
        started_at: started.map(|started| started.wall),
        ended_at: Some(ended.wall),
        ended_after: still.map(|still| earlier(ended.wall, ended.mono.since(still.seen))),
        cpu_ms: still.map(|still| millis(still.cpu)),
        duration_ms: ran.map(millis),
        outcome: Some(outcome),
        exit_code,
        signal,
        message: failure.or(exit.note),
        output: Some(exit.output),
        ..RunRecord::begun(&hold.lease)
    }
}
