//! The store's side: the real `store::memory::Ledger`, each of whose steps is computed once and remembered; and the bugs
//! that can be put around it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::job::{LockName, NodeName};
use cronward::reply::{Claim, ClaimRequest, Closing, Intervention, Release, Renewal, Settlement};
use cronward::resource::{AcquireRequest, Acquired, LockEntry, LockExit, LockHold, LockRelease, LockRenewal};
use cronward::slot::{Audit, Lease, Mark, Outcome, RunRecord, Slot, SlotRecord, Token, Trigger, Verdict};
use cronward::store::memory::Ledger;
use cronward::wake::{Wake, WakeKind};

use super::judge::OPERATOR;
use super::memo::{Id, Memo, Numbered};
use super::node::Messages;
use super::rivals::Locks;
use super::setup::{Bug, MAX_ATTEMPTS, Setup, Tick, name, store_time, ticks};

/// The token of what has none.
const NOBODY: Token = Token::from_bits(1 << 64);

/// A request.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Claim(ClaimRequest),
    Renew(Lease),
    Complete(Lease, RunRecord, Duration),
    Fail(Lease, RunRecord, Duration),
    GiveBack(Lease, RunRecord),
    Acquire(AcquireRequest),
    RenewLock(LockHold),
    Release(LockExit),
    /// A node asks whether the job is paused.
    AskPause,
    /// An operator's.
    Pause,
    Resume,
    Operate(Verb),
}

/// What an operator does to the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Unlock,
    Reset,
    MarkDone,
}

/// Which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Claim,
    Renew,
    Complete,
    Fail,
    GiveBack,
    Acquire,
    RenewLock,
    Release,
    AskPause,
    Pause,
    Resume,
    Operate,
}

impl Kind {
    /// Whether it is about locks, and not about the slot.
    pub(crate) const fn is_of_locks(self) -> bool {
        matches!(self, Self::Acquire | Self::RenewLock | Self::Release)
    }

    /// Whether it is about the slot: what the judge is asked of.
    pub(crate) const fn is_of_slot(self) -> bool {
        matches!(self, Self::Claim | Self::Renew | Self::Complete | Self::Fail | Self::GiveBack)
    }
}

/// The store's answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Claim(Claim),
    Renewal(Renewal),
    Settlement(Settlement),
    Release(Release),
    Acquired(Acquired),
    LockRenewal(LockRenewal),
    LockRelease(LockRelease),
    /// Whether the job is paused.
    Pause(bool),
    Intervention(Intervention),
}

impl Op {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Claim(_) => Kind::Claim,
            Self::Renew(_) => Kind::Renew,
            Self::Complete(..) => Kind::Complete,
            Self::Fail(..) => Kind::Fail,
            Self::GiveBack(..) => Kind::GiveBack,
            Self::Acquire(_) => Kind::Acquire,
            Self::RenewLock(_) => Kind::RenewLock,
            Self::Release(_) => Kind::Release,
            Self::AskPause => Kind::AskPause,
            Self::Pause => Kind::Pause,
            Self::Resume => Kind::Resume,
            Self::Operate(_) => Kind::Operate,
        }
    }

    pub(crate) const fn token(&self) -> Token {
        match self {
            Self::Claim(request) => request.token,
            Self::Renew(lease) | Self::Complete(lease, ..) | Self::Fail(lease, ..) | Self::GiveBack(lease, _) => {
                lease.token
            }
            Self::Acquire(request) => request.token,
            Self::RenewLock(hold) => hold.token,
            Self::Release(exit) => exit.token,
            // Of no claim.
            Self::AskPause | Self::Pause | Self::Resume | Self::Operate(_) => NOBODY,
        }
    }

    /// The attempt that the caller believes to have; none before a claim, and of locks.
    pub(crate) const fn attempt(&self) -> Option<u32> {
        match self {
            Self::Claim(_) | Self::Acquire(_) | Self::RenewLock(_) | Self::Release(_) => None,
            Self::AskPause | Self::Pause | Self::Resume | Self::Operate(_) => None,
            Self::Renew(lease) | Self::Complete(lease, ..) | Self::Fail(lease, ..) | Self::GiveBack(lease, _) => {
                Some(lease.attempt)
            }
        }
    }

    /// A record tells people when and how a run went. The protocol reads none of that, so it is left out: two histories
    /// that differ in it alone are one.
    pub(crate) fn without_times(mut self) -> Self {
        match &mut self {
            Self::Claim(request) => request.trigger = Trigger::Schedule,
            Self::Renew(lease) | Self::Complete(lease, ..) | Self::Fail(lease, ..) | Self::GiveBack(lease, _) => {
                lease.trigger = Trigger::Schedule;
                lease.claimed_at = lease.slot.start();
            }
            Self::Acquire(_) | Self::RenewLock(_) | Self::Release(_) => {}
            Self::AskPause | Self::Pause | Self::Resume | Self::Operate(_) => {}
        }
        if let Self::Complete(_, run, _) | Self::Fail(_, run, _) | Self::GiveBack(_, run) = &mut self {
            *run = RunRecord {
                trigger: Trigger::Schedule,
                claimed_at: store_time(0),
                started_at: None,
                ended_at: None,
                duration_ms: None,
                exit_code: None,
                signal: None,
                message: None,
                output: None,
                ..run.clone()
            };
        }
        self
    }
}

macro_rules! read {
    ($name:ident, $variant:ident, $type:ty) => {
        pub(crate) fn $name(&self) -> $type {
            let Self::$variant(reply) = self else { unreachable!("a {} for {self:?}", stringify!($variant)) };
            reply.clone()
        }
    };
}

impl Reply {
    /// What remains after the end of the world is all one.
    fn within(mut self, longest: Duration) -> Self {
        if let Self::Claim(Claim::Held { remaining, .. } | Claim::Backoff { remaining })
        | Self::Acquired(Acquired::Waiting { remaining, .. }) = &mut self
        {
            *remaining = longest.min(*remaining);
        }
        self
    }

    read!(claim, Claim, Claim);
    read!(renewal, Renewal, Renewal);
    read!(settlement, Settlement, Settlement);
    read!(release, Release, Release);
    read!(acquired, Acquired, Acquired);
    read!(lock_renewal, LockRenewal, LockRenewal);
    read!(lock_release, LockRelease, LockRelease);
    read!(pause, Pause, bool);
    read!(intervention, Intervention, Intervention);
}

/// One step of the store.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) ledger: Id,
    pub(crate) reply: Id,
    pub(crate) before: Arc<View>,
    pub(crate) after: Arc<View>,
    pub(crate) wakes: Vec<WakeKind>,
    /// The requests that may hold now.
    pub(crate) hints: Vec<Token>,
}

/// What the contract shows of the slot.
#[derive(Debug)]
pub(crate) struct View {
    /// Its remaining times are as of some instant: see `until`.
    pub(crate) record: SlotRecord,
    pub(crate) counter: Option<u32>,
    /// When a lease or a wait runs out.
    pub(crate) until: Option<Duration>,
    /// Of each lock of the job, in order, who stands there.
    pub(crate) queues: Vec<Vec<Standing>>,
}

/// A request's entry in a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) token: Token,
    /// Of its grant, once it was told.
    pub(crate) fence: Option<u64>,
    pub(crate) holds: bool,
}

/// All ledgers that were met, as they are at an instant, and all steps that were made.
#[derive(Debug)]
pub(crate) struct Ledgers {
    known: Numbered<(Ledger, Arc<View>)>,
    served: Memo<(Id, Id, Tick), Arc<Served>>,
    aged: Memo<(Id, Tick), Id>,
    closed: Memo<(Id, Tick), (Id, Option<Verdict>)>,
    slot: Slot,
    locks: Vec<LockName>,
    far: Duration,
    bug: Option<Bug>,
}

impl Ledgers {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            known: Numbered::default(),
            served: Memo::default(),
            aged: Memo::default(),
            closed: Memo::default(),
            slot: setup.slot(),
            locks: setup.locks.map(Locks::names).unwrap_or_default(),
            far: ticks(setup.far()),
            bug: setup.bug,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// A store that knows nothing.
    pub(crate) fn empty(&mut self, now: Tick) -> Id {
        self.keep(Ledger::new(Duration::from_secs(86_400)), now)
    }

    /// What is known of the slot, as it was when this ledger was kept.
    pub(crate) fn view(&self, ledger: Id) -> &Arc<View> {
        &self.known.get(ledger).1
    }

    /// Whether the request that was granted with this number holds in every lock of the job.
    pub(crate) fn holds(&self, ledger: Id, fence: u64) -> bool {
        let own = |entry: &Standing| entry.holds && entry.fence == Some(fence);
        self.view(ledger).queues.iter().all(|queue| queue.iter().any(own))
    }

    /// The same ledger later: what has run out is gone.
    pub(crate) fn age(&mut self, ledger: Id, now: Tick) -> Id {
        if let Some(id) = self.aged.get(&(ledger, now)) {
            return *id;
        }
        let id = self.keep(self.known.get(ledger).0.clone(), now);
        self.aged.insert((ledger, now), id);
        id
    }

    pub(crate) fn serve(&mut self, ledger: Id, op: Id, now: Tick, messages: &mut Messages) -> Arc<Served> {
        let key = (ledger, op, now);
        if !self.served.contains_key(&key) {
            let mut moved = self.known.get(ledger).0.clone();
            let before = Arc::clone(self.view(ledger));
            let reply = self.apply(&mut moved, messages.ops.get(op).clone(), store_time(now));
            let reply = reply.within(self.far.saturating_sub(ticks(now)));
            let reply = messages.replies.id(format!("{reply:?}"), reply);
            let wakes = moved.take_wakes().into_iter().filter_map(what).collect();
            let hints = moved.take_lock_wakes().into_iter().map(|(_, token)| token).collect();
            let ledger = self.keep(moved, now);
            let after = Arc::clone(self.view(ledger));
            self.served.insert(key, Arc::new(Served { ledger, reply, before, after, wakes, hints }));
        }
        Arc::clone(&self.served[&key])
    }

    /// Some node closes the slot; the verdict if it is the first to do so.
    pub(crate) fn close(&mut self, ledger: Id, now: Tick) -> (Id, Option<Verdict>) {
        if let Some(closed) = self.closed.get(&(ledger, now)) {
            return *closed;
        }
        let mut moved = self.known.get(ledger).0.clone();
        let verdict = match moved.close(&self.slot, MAX_ATTEMPTS, &name(0), store_time(now)) {
            Closing::First(verdict) => Some(verdict),
            Closing::Already(verdict) if self.bug == Some(Bug::ClosedAgain) => Some(verdict),
            Closing::Already(_) | Closing::Running { .. } | Closing::Open { .. } => None,
        };
        let closed = (self.keep(moved, now), verdict);
        self.closed.insert((ledger, now), closed);
        closed
    }

    /// A ledger's key is what the contract shows of it at this instant, without the times of records; but when a run was
    /// claimed that goes on is told to its claimer once more, who asks again. The contract does not show
    /// whose token a wait or a done marker has: the record of that attempt does, unless two runs of one node have one
    /// number (the store was wiped in between), and then the whole ledger is the key.
    fn keep(&mut self, mut ledger: Ledger, now: Tick) -> Id {
        // Nobody looks on.
        drop(ledger.take_changes());
        // What has run out is gone for good: at another tick the same key may not bring it back.
        ledger.purge(store_time(now));
        let record = ledger.inspect(std::slice::from_ref(&self.slot), store_time(now)).remove(0);
        let until = ledger.mark_ttl(&self.slot, store_time(now)).map(|left| (ticks(now) + left).min(self.far));
        let mut runs: Vec<_> = record.runs.iter().map(shown).collect();
        runs.sort_by_key(|run| (run.0, run.1, run.2));
        let twice = runs.windows(2).any(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1));
        let whole = twice.then_some(&ledger);
        let mark = match &record.mark {
            Mark::Free => String::new(),
            Mark::Leased { by, token, .. } => format!("lease {by:?} {token}"),
            Mark::Backoff { by, .. } => format!("wait {by:?}"),
            Mark::Done(mark) => format!("done {:?}", mark.by),
        };
        let until = if matches!(record.mark, Mark::Done(_)) { None } else { until };
        let verdict = record.verdict.as_ref().map(|recorded| recorded.verdict);
        let counted = (ledger.counter(&self.slot), record.attempts, record.forgiven);
        let queues = self.queues(&ledger, now);
        let locks =
            if self.locks.is_empty() { String::new() } else { format!("{queues:?} {}", kept_of_locks(&ledger)) };
        let pause = ledger.pause_of(self.slot.job()).map_or_else(String::new, |pause| format!("{pause:?}"));
        let key = format!("{mark} {until:?} {verdict:?} {counted:?} {runs:?} {whole:?}{locks}{pause}");
        let counter = ledger.counter(&self.slot);
        self.known.id(key, (ledger, Arc::new(View { record, counter, until, queues })))
    }

    fn queues(&self, ledger: &Ledger, now: Tick) -> Vec<Vec<Standing>> {
        if self.locks.is_empty() {
            return Vec::new();
        }
        let records = ledger.lock_records(&self.locks, store_time(now));
        let standing = |entry: LockEntry| {
            let fence = entry.by.fence.map(|fence| fence.0);
            Standing { token: entry.token, fence, holds: entry.holds }
        };
        records.into_iter().map(|record| record.entries.into_iter().map(standing).collect()).collect()
    }

    fn apply(&self, ledger: &mut Ledger, op: Op, now: DateTime<Utc>) -> Reply {
        let op = self.bug.map_or_else(|| op.clone(), |bug| self.spoil(bug, ledger, op.clone(), now));
        match op {
            Op::Claim(request) => Reply::Claim(match ledger.claim(&request, now) {
                Claim::Early { .. } if self.bug == Some(Bug::EarlyForLong) => Claim::Early { remaining: ticks(100) },
                answer => answer,
            }),
            Op::Renew(lease) => Reply::Renewal(ledger.renew(&lease, now)),
            Op::Complete(lease, run, done_ttl) => Reply::Settlement(ledger.complete(&lease, &run, done_ttl, now)),
            Op::Fail(lease, run, _) if self.bug == Some(Bug::FailureIsDone) => {
                ledger.complete(&lease, &run, ticks(100), now);
                Reply::Release(Release::Released)
            }
            Op::Fail(lease, run, retry_after) if self.bug == Some(Bug::CounterForgotten) => {
                let answer = ledger.fail(&lease, &run, retry_after, now);
                ledger.forget_log(&self.slot);
                Reply::Release(answer)
            }
            Op::Fail(lease, run, retry_after) => Reply::Release(ledger.fail(&lease, &run, retry_after, now)),
            Op::GiveBack(lease, run) => Reply::Release(ledger.give_back(&lease, &run, now)),
            Op::Acquire(request) => Reply::Acquired(ledger.acquire(&request, now)),
            Op::RenewLock(hold) => Reply::LockRenewal(ledger.renew_lock(&hold, now)),
            Op::Release(_) if self.bug == Some(Bug::LocksKept) => Reply::LockRelease(LockRelease::Released),
            Op::Release(exit) => Reply::LockRelease(ledger.release(&exit, now)),
            Op::AskPause => Reply::Pause(self.is_paused(ledger, now)),
            Op::Operate(Verb::Unlock) if self.bug == Some(Bug::UnlockIgnored) => {
                Reply::Intervention(Intervention::Applied)
            }
            Op::Operate(verb) => {
                let (slot, audit) = (&self.slot, audit(now));
                Reply::Intervention(match verb {
                    Verb::Unlock => ledger.unlock(slot, &audit, now),
                    Verb::Reset => ledger.reset(slot, &audit, now),
                    Verb::MarkDone => ledger.mark_done(slot, &audit, ticks(100), now),
                })
            }
            Op::Pause | Op::Resume => {
                let (job, audit) = (self.slot.job(), audit(now));
                match op {
                    Op::Pause => ledger.pause(job, None, &audit, now),
                    _ => ledger.resume(job, &audit, now),
                };
                Reply::Pause(self.is_paused(ledger, now))
            }
        }
    }

    fn is_paused(&self, ledger: &Ledger, now: DateTime<Utc>) -> bool {
        ledger.pause_of(self.slot.job()).is_some_and(|pause| pause.remaining(now).is_some())
    }

    /// Does beforehand what a store with this bug would do, or changes the request to what such a store would see.
    fn spoil(&self, bug: Bug, ledger: &mut Ledger, op: Op, now: DateTime<Utc>) -> Op {
        let view = ledger.inspect(std::slice::from_ref(&self.slot), now).remove(0);
        let held = match view.mark {
            Mark::Leased { token, .. } => Some(token),
            _ => None,
        };
        match (bug, op) {
            (Bug::TokenIgnored, Op::Claim(request)) if held == Some(request.token) => {
                ledger.expire_mark(&self.slot, now);
                let token = Token::from_bits(request.token.bits() + 0x80);
                Op::Claim(ClaimRequest { token, ..request })
            }
            (Bug::ClosedFirst, Op::Claim(request)) if now >= self.slot.end() => {
                let token = Token::from_bits(request.token.bits() + 0x80);
                Op::Claim(ClaimRequest { token, ..request })
            }
            (Bug::HeldIgnored, Op::Claim(request)) if held.is_some_and(|token| token != request.token) => {
                ledger.expire_mark(&self.slot, now);
                Op::Claim(request)
            }
            (Bug::PauseIgnored, op @ Op::Claim(_)) => {
                ledger.resume(self.slot.job(), &audit(now), now);
                op
            }
            (Bug::LimitIgnored, Op::Claim(request)) => Op::Claim(ClaimRequest { max_attempts: 9, ..request }),
            (Bug::EndIgnored, Op::Claim(request)) => {
                let slot = Slot::new(self.slot.job().clone(), self.slot.start(), store_time(Tick::MAX)).unwrap();
                Op::Claim(ClaimRequest { slot, ..request })
            }
            (Bug::RenewsAnybodys, Op::Renew(lease)) => match &view.mark {
                Mark::Leased { token, by, .. } => Op::Renew(Lease { token: *token, attempt: by.attempt, ..lease }),
                _ => Op::Renew(lease),
            },
            (Bug::PlainDelete, op @ (Op::Fail(..) | Op::GiveBack(..))) => {
                ledger.expire_mark(&self.slot, now);
                op
            }
            (Bug::RefundsAgain, op @ Op::GiveBack(..)) if held != Some(op.token()) => {
                ledger.set_forgiven(&self.slot, view.forgiven + 1);
                op
            }
            (Bug::DoneAgain, op @ Op::Complete(..)) => {
                ledger.mark_done(&self.slot, &audit(now), ticks(100), now);
                op
            }
            (Bug::DoneOverwritten, op @ Op::Complete(..)) => {
                ledger.expire_mark(&self.slot, now);
                op
            }
            (_, op) => op,
        }
    }
}

fn audit(at: DateTime<Utc>) -> Audit {
    let none = String::new();
    Audit { verb: none.clone(), who: name(OPERATOR).to_string(), host: none.clone(), why: none, at }
}

/// Everything that is kept of locks, which the contract does not show: the numbers that were given, and the tokens that are spent.
fn kept_of_locks(ledger: &Ledger) -> String {
    let whole = format!("{ledger:?}");
    let (whole, _) = whole.rsplit_once(", lock_wakes: ").expect("a ledger has hints");
    let (_, locks) = whole.rsplit_once(", locks: ").expect("its locks stand before them");
    locks.to_owned()
}

type Shown<'a> = (&'a NodeName, u32, Token, Option<Outcome>, Option<DateTime<Utc>>);

fn shown(run: &RunRecord) -> Shown<'_> {
    let claimed_at = run.outcome.is_none().then_some(run.claimed_at);
    (&run.node, run.attempt, run.token, run.outcome, claimed_at)
}

fn what(wake: Wake) -> Option<WakeKind> {
    match wake {
        Wake::Slot { what, .. } => Some(what),
        Wake::Job(_) | Wake::Resync => None,
    }
}
