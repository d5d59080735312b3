//! What the attempts of one slot told of their locks: from when to when each of them stood in the queues, and what it held.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::event::{Event, LeaveAnswer, LockGrant, lock_names};
use crate::machine::{after_queue, own_handicap};
use crate::reply::RenewalAnswer;
use crate::resource::Demand;
use crate::slot::Attempt;
use crate::verify::run::Grant;

/// What is known of the locks of one slot.
#[derive(Debug, Default)]
pub(super) struct SlotLocks {
    /// In the order in which they are told.
    pub(super) queued: Vec<QueuedAttempt>,
    pub(super) held: Vec<HeldLocks>,
}

/// An attempt that was granted and stood in the queues of its locks: under its lease, so nobody else could claim the slot.
#[derive(Debug)]
pub(super) struct QueuedAttempt {
    pub(super) instance: usize,
    pub(super) attempt: Attempt,
    /// Since its grant.
    pub(super) from: DateTime<Utc>,
    /// Until then its lease stands by the store's last answer.
    leased: DateTime<Utc>,
    lease_ttl: Duration,
    /// When its command was started, or the attempt was given back.
    over: Option<DateTime<Utc>>,
    /// For how long its own node asks no more: its command was not started.
    pause: Duration,
    /// What the node waits after such an attempt at the least.
    retry: Duration,
    /// What it waited for, and who held, as it was last told.
    waits_for: String,
    /// The line that first told of it.
    pub(super) source: String,
}

/// What one attempt held, without a break.
#[derive(Clone, Debug)]
pub(super) struct HeldLocks {
    pub(super) instance: usize,
    pub(super) attempt: Attempt,
    pub(super) locks: Vec<Demand>,
    pub(super) fence: u64,
    pub(super) from: DateTime<Utc>,
    /// It goes on from one that was in doubt.
    pub(super) again: bool,
    /// When the command was ordered that ran with them.
    pub(super) started: Option<DateTime<Utc>>,
    /// When the doubt was over, and it was known that nobody else had held.
    pub(super) until: Option<DateTime<Utc>>,
    /// What was told of a loss first.
    pub(super) loss: Option<ToldLoss>,
    /// The lines that tell of it.
    pub(super) lines: Vec<String>,
}

/// What an attempt told of a loss of its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldLoss {
    /// They could not be renewed in time: its node knew of nobody else.
    InDoubt,
    /// They were another's.
    Taken,
}

/// A line, as far as locks are concerned.
pub(super) struct LockLine<'a> {
    pub(super) at: DateTime<Utc>,
    pub(super) instance: usize,
    pub(super) event: &'a Event,
    pub(super) source: &'a str,
}

impl SlotLocks {
    /// Takes over what a line says of locks. `granted` finds the grant of an attempt of the line's instance.
    pub(super) fn hear<'g>(&mut self, line: &LockLine<'_>, granted: impl Fn(Attempt) -> Option<&'g Grant>) {
        match line.event {
            Event::LockWaiting(wait) => {
                let holder = if wait.by_label.is_empty() { String::new() } else { format!("{} ", wait.by_label) };
                let waits_for = format!("{}, held by {holder}on {}", lock_names(&wait.locks), wait.by);
                self.queue(line, wait.attempt, granted(wait.attempt), Some(waits_for));
            }
            Event::LockHeld(grant) => {
                self.queue(line, grant.attempt, granted(grant.attempt), None);
                self.hold(line, grant);
            }
            // Before it is settled: by then the locks that it leaves may not have answered.
            Event::Unstarted { attempt, locks, .. } if !locks.is_empty() => {
                self.queue(line, *attempt, granted(*attempt), None);
            }
            Event::LockLost(loss) => {
                self.lose(line, loss.attempt, if loss.in_doubt { ToldLoss::InDoubt } else { ToldLoss::Taken });
            }
            Event::LockLeft(leave) if leave.why.is_some() => {
                self.queue(line, leave.attempt, granted(leave.attempt), None);
            }
            Event::LockLeft(leave) if leave.answer == LeaveAnswer::Overtaken => {
                self.lose(line, leave.attempt, ToldLoss::Taken);
            }
            Event::RenewalAnswered { answer: RenewalAnswer::Renewed | RenewalAnswer::Restored } => {
                let own = self.queued.iter_mut().filter(|it| it.instance == line.instance && it.over.is_none());
                own.for_each(|it| it.leased = later(line.at, it.lease_ttl));
            }
            Event::RunStarted { attempt, .. } => {
                self.end_queue(line, *attempt, false);
                let mut own = self.held.iter_mut().rev().filter(|it| it.is_of(line.instance, *attempt));
                if let Some(held) = own.next().filter(|held| held.started.is_none()) {
                    held.started = Some(line.at);
                }
            }
            Event::Settled { attempt, .. }
            | Event::SettlementGivenUp { attempt, .. }
            | Event::LeaseLost { attempt, .. } => {
                self.end_queue(line, *attempt, true);
            }
            _ => {}
        }
    }

    /// It stands in the queues, or did until now; one that is over is not begun anew by a late word.
    fn queue(&mut self, line: &LockLine<'_>, attempt: Attempt, grant: Option<&Grant>, waits_for: Option<String>) {
        let known = self.queued.iter_mut().rev().find(|it| it.instance == line.instance && it.attempt == attempt);
        let since = grant.map_or(line.at, |grant| grant.at);
        if let Some(known) = known.filter(|known| known.over.is_none() || since <= known.from) {
            if let Some(waits_for) = waits_for {
                known.waits_for = waits_for;
            }
            return;
        }
        let Some(grant) = grant else { return };
        let poll = Some(grant.poll).filter(|poll| !poll.is_zero());
        self.queued.push(QueuedAttempt {
            instance: line.instance,
            attempt,
            from: since,
            leased: later(since, grant.lease_ttl),
            lease_ttl: grant.lease_ttl,
            over: None,
            pause: Duration::ZERO,
            retry: grant.retry_delay + own_handicap(grant.retry_delay, poll),
            waits_for: waits_for.unwrap_or_else(|| "its locks".to_owned()),
            source: line.source.to_owned(),
        });
    }

    fn end_queue(&mut self, line: &LockLine<'_>, attempt: Attempt, in_vain: bool) {
        let of_instance = || self.queued.iter().filter(|it| it.instance == line.instance);
        let row = of_instance().rev().take_while(|it| it.over.is_none() || !it.pause.is_zero()).count();
        let open = self
            .queued
            .iter_mut()
            .rev()
            .find(|it| it.instance == line.instance && it.attempt == attempt && it.over.is_none());
        if let Some(open) = open {
            open.over = Some(line.at);
            open.pause = if in_vain {
                open.retry.max(after_queue(u32::try_from(row).unwrap_or(u32::MAX)))
            } else {
                Duration::ZERO
            };
        }
    }

    fn hold(&mut self, line: &LockLine<'_>, grant: &LockGrant) {
        let held = HeldLocks {
            instance: line.instance,
            attempt: grant.attempt,
            locks: grant.locks.clone(),
            fence: grant.fence.0,
            from: line.at,
            again: grant.again,
            started: None,
            until: None,
            loss: None,
            lines: vec![line.source.to_owned()],
        };
        let mut own = self.held.iter_mut().rev().filter(|it| it.is_of(line.instance, grant.attempt));
        let Some(before) = own.next().filter(|_| grant.again) else { return self.held.push(held) };
        before.lines.push(line.source.to_owned());
        if before.loss.is_some() {
            before.until = Some(line.at);
            let started = before.started;
            self.held.push(HeldLocks { started, ..held });
        }
    }

    fn lose(&mut self, line: &LockLine<'_>, attempt: Attempt, loss: ToldLoss) {
        let own = self.held.iter_mut().rev().find(|it| it.is_of(line.instance, attempt));
        if let Some(held) = own {
            held.loss.get_or_insert(loss);
            held.lines.push(line.source.to_owned());
        }
    }

    /// Whether in some part of a span an attempt stood in the queues, whosever; or whether this instance made the pause after one that
    /// stood there in vain.
    pub(super) fn keep(&self, instance: usize, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> bool {
        self.queued.iter().any(|it| {
            let until = if it.instance == instance { it.back() } else { it.until() };
            it.from <= to && until >= from
        })
    }

    /// Whether the lease of an attempt may have lapsed before its node, which stood still, left the queues.
    pub(super) fn may_have_lapsed(&self, (instance, attempt): (usize, Attempt)) -> bool {
        let of = |it: &&QueuedAttempt| (it.instance, it.attempt) == (instance, attempt);
        self.queued.iter().filter(of).any(|it| it.over.is_some_and(|over| it.leased < over))
    }

    /// Attempts that stood in the queues when their node was last heard of.
    pub(super) fn never_left(&self) -> impl Iterator<Item = (usize, Attempt)> + '_ {
        self.queued.iter().filter(|it| it.over.is_none()).map(|it| (it.instance, it.attempt))
    }

    /// Every instant at which that may change.
    pub(super) fn cuts(&self) -> impl Iterator<Item = DateTime<Utc>> + '_ {
        self.queued.iter().flat_map(|it| [it.from, it.until(), it.back()])
    }

    /// The attempt that stood in the queues the longest within a span.
    pub(super) fn longest(&self, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> Option<&QueuedAttempt> {
        let within = |it: &&QueuedAttempt| it.until().min(to) - it.from.max(from);
        self.queued.iter().filter(|it| within(it) > TimeDelta::zero()).max_by_key(within)
    }

    /// Since when the first attempt stood in the queues that was granted after an instant.
    pub(super) fn first_after(&self, granted: Option<DateTime<Utc>>) -> Option<&QueuedAttempt> {
        let later = self.queued.iter().filter(|it| granted.is_none_or(|granted| it.from > granted));
        later.min_by_key(|it| it.from)
    }
}

impl QueuedAttempt {
    /// Until when nobody else could claim the slot.
    pub(super) fn until(&self) -> DateTime<Utc> {
        self.over.unwrap_or(self.leased)
    }

    /// When its own node asks again.
    fn back(&self) -> DateTime<Utc> {
        later(self.until(), self.pause)
    }

    /// For people: what it waited for.
    pub(super) fn waits_for(&self) -> &str {
        &self.waits_for
    }
}

impl HeldLocks {
    pub(super) fn is_of(&self, instance: usize, attempt: Attempt) -> bool {
        (self.instance, self.attempt) == (instance, attempt)
    }
}
