//! `claim`: who may start. The checks come first, in the order of [`Claim`]; a refusal changes nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{between, later};
use crate::job::MAX_ATTEMPTS_LIMIT;
use crate::slot::{Holder, Lease, RunRecord};
use crate::store::memory::ledger::{Ledger, Standing};
use crate::store::memory::operator::stamped;
use crate::store::{Claim, ClaimRequest};

impl Ledger {
    /// Asks for the slot's lease ([`crate::store::Store::claim`]).
    pub fn claim(&mut self, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        if let Some(answer) = self.done_or_own(request, now) {
            return answer;
        }
        let again = self.unanswered(request, now);
        if again.is_none()
            && let Some(refusal) = self.outside_or_held(request, now).or_else(|| self.used_up_or_waiting(request, now))
        {
            return refusal;
        }
        match (self.paused_or_blocked(request, now), again) {
            // An attempt that is found again after the slot's end is never run: it waits for nothing.
            (Some(_), _) if is_over(request, now) => Claim::Closed,
            (Some(refusal), _) => refusal,
            (None, Some(lease)) => self.grant_again(&lease, now),
            (None, None) => self.grant(request, now),
        }
    }

    /// Done is asked before the window, so that a slot that is over still tells that it was done. The verdict says so as
    /// well: a marker that the store has lost repeats nothing (I3). And the caller's own lease: the same token is one grant whose
    /// reply was lost (I5), and whoever did not hear of it learns of it after the slot's end too, to give it back.
    fn done_or_own(&mut self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Claim> {
        if let Some(mark) = self.done_mark(&request.slot, now) {
            return Some(Claim::Done(mark));
        }
        let used = self.log(&request.slot, now).used();
        let placed = self.mark(&request.slot, now)?;
        let Standing::Lease { by, token, at } = &placed.standing else { return None };
        if *token != request.token {
            return None;
        }
        let again = Claim::Claimed { attempt: by.attempt, used, at: *at, revision: None };
        self.prolong(&request.slot, later(now, request.lease_ttl));
        Some(again)
    }

    /// Nothing is granted outside of the slot (I6), and nobody else's lease is taken (I1).
    fn outside_or_held(&self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Claim> {
        let start = request.slot.start();
        if now < start {
            return Some(Claim::Early { remaining: between(now, start) });
        }
        if is_over(request, now) {
            return Some(Claim::Closed);
        }
        let placed = self.mark(&request.slot, now)?;
        let (by, _) = placed.lease()?;
        Some(Claim::Held { by: by.clone(), remaining: placed.remaining(now) })
    }

    /// The grant whose answer was lost and whose lease has lapsed since. It is the same attempt still, while its run has no
    /// recorded end and nobody has followed it; a node that was cut off for a while costs none.
    fn unanswered(&self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Lease> {
        if self.mark(&request.slot, now).is_some() {
            return None;
        }
        let run = self.log(&request.slot, now).unanswered(request.token)?;
        Some(request.granted(run.attempt, run.claimed_at))
    }

    fn used_up_or_waiting(&self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Claim> {
        let log = self.log(&request.slot, now);
        if log.used() >= request.max_attempts || log.known() >= MAX_ATTEMPTS_LIMIT {
            return Some(Claim::Exhausted { used: log.used() });
        }
        if let Some(wait) = self.mark(&request.slot, now) {
            return Some(Claim::Backoff { remaining: wait.remaining(now) });
        }
        // A late copy of a request whose run is over: its sender has gone on, and a grant would be nobody's (I5).
        if log.is_spent(request.token) {
            return Some(Claim::Backoff { remaining: Duration::ZERO });
        }
        None
    }

    fn paused_or_blocked(&self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Claim> {
        if let Some(remaining) = self.pauses.get(request.slot.job()).and_then(|pause| pause.remaining(now)) {
            return Some(Claim::Paused { remaining });
        }
        self.blocked(request, now)
    }

    fn blocked(&self, request: &ClaimRequest, now: DateTime<Utc>) -> Option<Claim> {
        if !request.exclusive {
            return None;
        }
        let (key, placed) = self.leases(request.slot.job(), now).find(|(key, _)| *key != request.slot.key())?;
        let (by, _) = placed.lease()?;
        Some(Claim::Blocked { key, by: by.clone(), remaining: placed.remaining(now) })
    }

    /// The lease is set again; the record and its number stay.
    fn grant_again(&mut self, lease: &Lease, now: DateTime<Utc>) -> Claim {
        let log = self.log_mut(&lease.slot, now);
        log.raise(lease.attempt);
        let used = log.used();
        let by = Holder { node: lease.node.clone(), attempt: lease.attempt };
        let again = Standing::Lease { by, token: lease.token, at: lease.claimed_at };
        self.place(&lease.slot, again, later(now, lease.ttl));
        Claim::Claimed { attempt: lease.attempt, used, at: lease.claimed_at, revision: None }
    }

    /// The one write: counter, record and mark together, so that the counter rises only with a grant.
    fn grant(&mut self, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        let log = self.log_mut(&request.slot, now);
        let attempt = log.known().saturating_add(1);
        log.counter = attempt;
        log.write(RunRecord::begun(&request.granted(attempt, now)));
        log.audit.extend(request.audit.as_ref().map(|audit| stamped(audit, now)));
        let used = log.used();
        let by = Holder { node: request.node.clone(), attempt };
        let lease = Standing::Lease { by, token: request.token, at: now };
        self.place(&request.slot, lease, later(now, request.lease_ttl));
        Claim::Claimed { attempt, used, at: now, revision: None }
    }
}

/// Nothing new is granted any more, unless a person asks for the past.
fn is_over(request: &ClaimRequest, now: DateTime<Utc>) -> bool {
    now >= request.slot.end() && !request.past
}
