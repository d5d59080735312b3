//! The machine itself: what it knows, its phases, and its outlets. What it does in each phase is in `claiming`, `queueing`,
//! `running` and `settling`.
//!
//! **Rules that hold in every phase.** A store's error never starts a command (I8); the one exception is asked for by
//! name (`on_store_error = "run"`) and is loud. The wall clock alone never ends a slot: the store's answer does, or its silence
//! until the end, and for one lease longer where a claim may have been granted. Every request that may have been applied is
//! repeated with the same token.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Mono, Now, between};
use crate::event::Event;
use crate::job::{NodeName, Policy};
use crate::machine::job_locks::JobLocks;
use crate::machine::running::Hold;
use crate::machine::settling::Settling;
use crate::machine::{Action, pace};
use crate::reply::ClaimRequest;
use crate::slot::{Audit, Slot, Token, Trigger};

/// One slot to guard, as its driver hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The slot.
    pub slot: Slot,
    /// The job's limits and policies.
    pub policy: Policy,
    /// Exit codes that count as success.
    pub success_codes: Vec<i32>,
    /// This node.
    pub node: NodeName,
    /// Why it is looked at.
    pub trigger: Trigger,
    /// The tick, or when the run was asked for.
    pub scheduled_at: DateTime<Utc>,
    /// Asked for by name although the slot is over; see [`ClaimRequest::past`]. Never set by a schedule.
    pub past: bool,
    /// The person who asked; see [`ClaimRequest::audit`]. Told with the first attempt alone.
    pub audit: Option<Audit>,
    /// How often to look again while waiting; none for a store that wakes its waiters.
    pub poll: Option<Duration>,
    /// 128 random bits: the first claim's token, and the seed of every spread wait.
    pub seed: Token,
    /// How the store tells of locks; none where it keeps none.
    pub locks: Option<LockPort>,
}

/// How a store that keeps locks tells this process of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockPort {
    /// The process that is told when it may hold.
    pub instance: Token,
    /// How often to look again while waiting; none where all hints come.
    pub poll: Option<Duration>,
}

/// How a slot ended on this node. The store may know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is done, here or elsewhere.
    Done,
    /// The attempts are used up.
    Exhausted,
    /// The store says that it is over.
    Closed,
    /// The start deadline passed.
    TooLate,
    /// The store was silent until the end, and for one lease longer where it may have granted one; or others had the slot until
    /// then, and a full node did not ask what became of it.
    Unknown,
    /// An attempt ended here, or was given back, and the store never confirmed that it knows.
    Unrecorded,
    /// It waited for room on this node until its end.
    Shed,
    /// This node stopped looking: it shuts down, or the job changed.
    Left,
}

/// The protocol for one slot on one node.
#[derive(Clone, Debug)]
pub struct SlotMachine {
    pub(super) assignment: Assignment,
    pub(super) phase: Phase,
    pub(super) token: Token,
    /// When the slot ends, as far as this node can tell. Put right whenever the store's time is learnt.
    pub(super) end: Mono,
    /// Not to be started at or after this.
    pub(super) start_until: Option<Mono>,
    /// Set once a shutdown was asked for: until when the command may go on.
    pub(super) drain_until: Option<Mono>,
    pub(super) errors: Errors,
    /// A failed attempt has been seen: the next one is a retry.
    pub(super) retrying: bool,
    /// The last answer to a claim was that somebody holds the slot.
    pub(super) held: bool,
    /// The last hint that came while a claim was on its way.
    pub(super) hint: Option<crate::wake::Wake>,
    /// A run without a guard was made; there is no second one.
    pub(super) ran_unguarded: bool,
    /// What is asked for besides the lease; none for a job that names no locks.
    pub(super) locks: Option<Box<JobLocks>>,
    /// How often in a row its locks were waited for in vain, or this machine lacked a resource to start its command.
    pub(super) left: u32,
    /// Of the last own attempt that failed, or waited in vain; none where another had followed it.
    pub(super) behind: Option<Behind>,
    draws: u64,
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
}

/// What the machine is at.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Nothing is held and nothing is asked; the next look is due at an instant.
    Waiting(Wait),
    /// A claim is on its way.
    Claiming {
        /// The instant before it was sent.
        sent: Mono,
        /// It asks for a short lease: whatever it is granted is to be given back.
        brief: bool,
    },
    /// The lease is held, and the job's locks are waited for.
    Queueing(Box<Hold>),
    /// The command is being started, or runs.
    Running(Box<Hold>),
    /// The command has ended; the store is being told.
    Settling(Box<Settling>),
    /// Nothing more to do. Should an operator open the slot again, the driver makes a new machine for it.
    Ended(End),
}

/// A wait before the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) until: Mono,
    pub(super) why: WaitReason,
}

/// Why the machine waits; decides which wake-ups shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// Somebody holds the lease, or waits out a failure.
    Others,
    /// This node's own attempt failed: it waits longest.
    OwnFailure,
    /// An older slot runs.
    Older,
    /// The job is paused.
    Paused,
    /// The slot has not begun.
    Early,
    /// The store could not be asked.
    StoreError,
}

/// How a node whose own attempt failed, or waited in vain for its locks, lets the others go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// Until then the store refuses everybody, as far as this node can tell.
    pub(super) refused_until: Mono,
    /// So much longer it waits than the others.
    pub(super) handicap: Duration,
    /// Until when it waits, where nobody ends the wait before.
    pub(super) until: Mono,
}

impl Behind {
    /// When to look, after everybody else, for a reason that came now; none near the end of the wait, where that could take the retry from another.
    /// What a look starts before that is what an operator has opened.
    pub(super) fn look(self, now: Mono) -> Option<Mono> {
        self.allowed(now + self.handicap)
    }

    pub(super) fn allowed(self, look: Mono) -> Option<Mono> {
        (look + self.handicap < self.refused_until).then_some(look)
    }
}

/// Store errors in a row while claiming.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Errors {
    pub(super) in_a_row: u32,
    pub(super) since: Option<Mono>,
    pub(super) told: Option<crate::error::ErrorKind>,
    /// When the first claim was sent that may have been applied.
    pub(super) maybe_since: Option<Mono>,
    /// When the lease of the last such claim will have lapsed that was sent to start something.
    pub(super) maybe_until: Option<Mono>,
    /// The longest that a claim was waited for in vain.
    pub(super) slowest: Duration,
}

impl SlotMachine {
    /// A machine that looks at its slot at once.
    pub fn new(assignment: Assignment, now: Now) -> Self {
        let mut machine = Self::waiting(assignment, now);
        machine.look(now);
        machine
    }

    /// A machine that is due to look at its slot, and does so at the next [`SlotMachine::handle_timeout`].
    pub fn waiting(assignment: Assignment, now: Now) -> Self {
        let token = assignment.seed;
        let mut machine = Self {
            assignment,
            phase: Phase::Waiting(Wait { until: now.mono, why: WaitReason::Others }),
            token,
            end: now.mono,
            start_until: None,
            drain_until: None,
            errors: Errors::default(),
            retrying: false,
            held: false,
            hint: None,
            ran_unguarded: false,
            locks: None,
            left: 0,
            behind: None,
            draws: 0,
            actions: VecDeque::new(),
            events: VecDeque::new(),
        };
        machine.handle_clock_set(now);
        machine
    }

    /// The next thing to do, until there is none. The driver asks after every `handle_*`.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next thing worth telling, until there is none.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`SlotMachine::handle_timeout`]; none when only something from outside can move the machine.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        match &self.phase {
            Phase::Waiting(wait) => Some(wait.until),
            Phase::Claiming { .. } | Phase::Ended(_) => None,
            Phase::Queueing(hold) => self.queue_deadline(hold),
            Phase::Running(hold) => hold.next_deadline(self),
            Phase::Settling(settling) => settling.next_deadline(),
        }
    }

    /// How the slot ended here; none while there is something to do.
    pub const fn ended(&self) -> Option<End> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// True from the grant (or the unguarded start) until the settlement: this node may be running the slot.
    pub const fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Queueing(_) | Phase::Running(_) | Phase::Settling(_))
    }

    /// A claim may have been granted without an answer: this node may hold the lease, and nobody would know.
    pub const fn maybe_held(&self) -> bool {
        self.errors.maybe_since.is_some()
    }

    /// True while nothing is held or asked, and nothing may be held unknown to this node: the next look can wait for its turn.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_)) && !self.maybe_held()
    }

    /// Until when a look that waits for its turn is worth anything; none where the slot's end does not matter.
    pub fn worth_until(&self) -> Option<Mono> {
        let until = self.start_until.map_or(self.end, |until| until.min(self.end));
        (!self.assignment.past).then_some(until)
    }

    /// The slot.
    pub const fn slot(&self) -> &Slot {
        &self.assignment.slot
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        match &self.phase {
            Phase::Waiting(wait) if wait.until <= now.mono => self.look(now),
            Phase::Queueing(_) => self.tend_queue(now),
            Phase::Running(_) => self.tend_run(now),
            Phase::Settling(_) => self.tend_settlement(now),
            _ => {}
        }
    }

    /// The look that is due has waited for its turn since then, and did not get it until [`SlotMachine::worth_until`]. One that
    /// was due no sooner than that was kept from the slot by something else than a full node: another run, or the store.
    pub fn handle_shed(&mut self, now: Now, since: Mono) {
        let worth_until = self.worth_until().filter(|until| self.is_waiting() && *until <= now.mono);
        match worth_until {
            None => {}
            Some(until) if since < until => {
                self.tell(Event::Shed);
                self.finish(End::Shed);
            }
            Some(_) if self.is_past_deadline(now) => self.finish_too_late(),
            Some(_) => self.finish(End::Unknown),
        }
    }

    /// The node shuts down, or the job is gone from its file: nothing new is begun; a running command may go on for
    /// `drain`, then it is stopped and its attempt given back.
    pub fn handle_shutdown(&mut self, now: Now, drain: Duration) {
        self.drain_until = Some(now.mono + drain);
        match &self.phase {
            Phase::Waiting(_) if self.maybe_held() => self.look(now),
            Phase::Waiting(_) => self.finish(End::Left),
            Phase::Queueing(_) => self.tend_queue(now),
            Phase::Running(_) => self.tend_run(now),
            _ => {}
        }
    }

    /// The wall clock was put right by the store's: when the slot ends, and until when it may be started, is told by it. A
    /// guard that went on by the wrong time would give a slot up that is not over, should the store be away.
    pub fn handle_clock_set(&mut self, now: Now) {
        self.end = now.mono + between(now.wall, self.assignment.slot.end());
        let scheduled_at = self.assignment.scheduled_at;
        self.start_until = self.assignment.policy.start_deadline.map(|span| deadline(now, scheduled_at, span));
    }

    /// No attempt is left. A machine that was told to leave, because its job has changed, does not know of how many: whoever
    /// comes after it looks again.
    pub(super) const fn end_without_attempts(&self) -> End {
        if self.drain_until.is_some() { End::Left } else { End::Exhausted }
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn finish(&mut self, end: End) {
        self.phase = Phase::Ended(end);
    }

    pub(super) fn wait(&mut self, until: Mono, why: WaitReason) {
        self.phase = Phase::Waiting(Wait { until, why });
    }

    /// A fresh draw in `[0, span)`.
    pub(super) fn spread(&mut self, span: Duration) -> Duration {
        self.draws += 1;
        pace::spread(span, self.assignment.seed.bits(), self.draws)
    }

    pub(super) fn request(&self) -> ClaimRequest {
        let a = &self.assignment;
        let retry = self.retrying && a.trigger == Trigger::Schedule;
        ClaimRequest {
            slot: a.slot.clone(),
            token: self.token,
            node: a.node.clone(),
            lease_ttl: a.policy.lease_ttl,
            max_attempts: a.policy.max_attempts,
            trigger: if retry { Trigger::Retry } else { a.trigger },
            exclusive: a.policy.concurrency.is_exclusive(),
            past: a.past,
            audit: a.audit.clone(),
        }
    }

    /// Tells a store error once for each kind in a row, so that a long outage is two lines and not thousands.
    pub(super) fn tell_error(&mut self, error: &crate::error::StoreError) {
        if self.errors.told != Some(error.kind) {
            self.errors.told = Some(error.kind);
            self.tell(Event::StoreFailed { op: error.op, kind: error.kind, error: error.to_string() });
        }
    }
}

/// The monotonic instant of `from + span` on the wall, as seen now.
fn deadline(now: Now, from: DateTime<Utc>, span: Duration) -> Mono {
    let passed = between(from, now.wall);
    let ahead = between(now.wall, from);
    now.mono + span.saturating_add(ahead).saturating_sub(passed)
}
