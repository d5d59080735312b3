//! How a holder has its lease: `claim`, who may start, checked in the order of [`Claim`], where a refusal changes nothing; and `renew`,
//! by which a holder makes its lease last and nothing of anybody else's is changed (I4).

use std::time::Duration;

use super::SlotStep;
use crate::clock::between;
use crate::job::MAX_ATTEMPTS_LIMIT;
use crate::slot::Lease;
use crate::store::state::{MarkKind, StoredMark};
use crate::store::{Claim, ClaimRequest, Renewal};

impl SlotStep {
    /// Asks for the lease ([`crate::store::Store::claim`]).
    pub(in crate::store) fn claim(&mut self, request: &ClaimRequest) -> Claim {
        if let Some(answer) = self.done_or_own(request) {
            return answer;
        }
        let again = self.unanswered(request);
        if again.is_none()
            && let Some(refusal) = self.outside_or_held(request).or_else(|| self.used_up_or_waiting(request))
        {
            return refusal;
        }
        if let Some(refusal) = self.paused_or_blocked() {
            // An attempt that is found again after the slot's end is never run: it waits for nothing.
            return if self.is_over(request) { Claim::Closed } else { refusal };
        }
        if let Some(lease) = again {
            self.hold(&lease);
            return Claim::Claimed {
                attempt: lease.attempt,
                used: self.state.used(),
                at: lease.claimed_at,
                revision: None,
            };
        }
        let attempt = self.state.known().saturating_add(1);
        self.grant(&request.granted(attempt, self.now));
        if let Some(audit) = &request.audit {
            self.record_audit(audit);
        }
        Claim::Claimed { attempt, used: self.state.used(), at: self.now, revision: None }
    }

    /// Done is asked before the window: a slot that is over still tells that it was done. The verdict tells it as well as
    /// the marker, which may be lost (I3). The caller's own lease as well: whoever did not hear of its grant learns of it after
    /// the slot's end too, and gives it back.
    fn done_or_own(&mut self, request: &ClaimRequest) -> Option<Claim> {
        if let Some(done) = self.done_mark() {
            return Some(Claim::Done(done));
        }
        let own = |mark: &&StoredMark| mark.kind == MarkKind::Lease(request.token);
        let lease = self.mark().filter(own).cloned()?;
        // The same token is one grant: its reply was lost, and it is told again (I5).
        self.prolong(request.lease_ttl);
        Some(Claim::Claimed { attempt: lease.by.attempt, used: self.state.used(), at: lease.since, revision: None })
    }

    fn is_over(&self, request: &ClaimRequest) -> bool {
        self.now >= self.slot.end() && !request.past
    }

    fn outside_or_held(&self, request: &ClaimRequest) -> Option<Claim> {
        if self.now < self.slot.start() {
            return Some(Claim::Early { remaining: between(self.now, self.slot.start()) });
        }
        if self.is_over(request) {
            return Some(Claim::Closed);
        }
        let lease = self.held()?;
        Some(Claim::Held { remaining: lease.remaining(self.now), by: lease.by.clone() })
    }

    /// The grant whose answer was lost and whose lease has lapsed since. It is the same attempt still, while its run has no
    /// recorded end and nobody has followed it; a node that was cut off for a while costs none.
    fn unanswered(&self, request: &ClaimRequest) -> Option<Lease> {
        if self.mark().is_some() {
            return None;
        }
        let run = self.state.unanswered(request.token)?;
        Some(request.granted(run.attempt, run.claimed_at))
    }

    fn used_up_or_waiting(&self, request: &ClaimRequest) -> Option<Claim> {
        let used = self.state.used();
        if used >= request.max_attempts || self.state.known() >= MAX_ATTEMPTS_LIMIT {
            return Some(Claim::Exhausted { used });
        }
        if let Some(wait) = self.mark() {
            return Some(Claim::Backoff { remaining: wait.remaining(self.now) });
        }
        // A late copy of a request whose run is over: its sender has gone on, and a grant would be nobody's (I5).
        if self.state.is_spent(request.token) {
            return Some(Claim::Backoff { remaining: Duration::ZERO });
        }
        None
    }

    fn paused_or_blocked(&self) -> Option<Claim> {
        if let Some(remaining) = self.pause.as_ref().and_then(|pause| pause.remaining(self.now)) {
            return Some(Claim::Paused { remaining });
        }
        let (key, lease) = self.other.as_ref().filter(|(_, mark)| mark.is_lease() && mark.until > self.now)?;
        Some(Claim::Blocked { key: *key, by: lease.by.clone(), remaining: lease.remaining(self.now) })
    }
}

impl SlotStep {
    /// Makes the lease last for its TTL from now on ([`crate::store::Store::renew`]).
    pub(in crate::store) fn renew(&mut self, lease: &Lease) -> Renewal {
        let Some(mark) = self.mark().cloned() else {
            return self.done_mark().map_or_else(|| self.restore(lease), Renewal::Done);
        };
        match mark.kind {
            // A copy of its claim came late, and was granted anew after somebody else had come and gone.
            MarkKind::Lease(_) if self.is_granted_anew(lease) => Renewal::Lost { to: None },
            MarkKind::Lease(token) if token == lease.token => {
                self.prolong(lease.ttl);
                Renewal::Renewed
            }
            MarkKind::Lease(_) => Renewal::Lost { to: Some(mark.by) },
            MarkKind::Wait(_) => Renewal::Lost { to: None },
            MarkKind::Done(_) => Renewal::Done(mark.done()),
        }
    }

    /// The key is absent. Where nothing says that this claim ended or was followed by another, its run still goes on,
    /// and without its lease a second run could start beside it.
    fn restore(&mut self, lease: &Lease) -> Renewal {
        let followed = self.state.known() > lease.attempt || self.state.overtaker(lease).is_some();
        if self.state.has_ended(lease) || followed {
            return Renewal::Lost { to: None };
        }
        self.grant(lease);
        Renewal::Restored
    }
}
