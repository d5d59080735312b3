//! `renew`: a holder makes its lease last. It never takes anything from anybody else (I4).

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::slot::{Holder, Lease, RunRecord};
use crate::store::Renewal;
use crate::store::memory::ledger::{Ledger, Standing};

impl Ledger {
    /// Makes the lease last for its TTL from now on ([`crate::store::Store::renew`]).
    pub fn renew(&mut self, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        match self.mark(&lease.slot, now).map(|placed| placed.standing.clone()) {
            Some(Standing::Lease { token, .. }) if token == lease.token => {
                self.prolong(&lease.slot, later(now, lease.ttl));
                Renewal::Renewed
            }
            Some(Standing::Lease { by, .. }) => Renewal::Lost { to: Some(by) },
            Some(Standing::Done { mark, .. }) => Renewal::Done(mark),
            Some(Standing::Backoff { .. }) => Renewal::Lost { to: None },
            None => match self.done_mark(&lease.slot, now) {
                Some(mark) => Renewal::Done(mark),
                None => self.restore(lease, now),
            },
        }
    }

    /// The key is absent. If nothing says that this claim ended or was followed by another, its run still goes on, and
    /// the lease is set again: otherwise a store that restarted empty would let a second run start beside it.
    fn restore(&mut self, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        let log = self.log(&lease.slot, now);
        if log.has_ended(lease) || log.has_newer(lease) {
            return Renewal::Lost { to: None };
        }
        let log = self.log_mut(&lease.slot, now);
        log.raise(lease.attempt);
        log.write(RunRecord::begun(lease));
        let by = Holder { node: lease.node.clone(), attempt: lease.attempt };
        let again = Standing::Lease { by, token: lease.token, at: lease.claimed_at };
        self.place(&lease.slot, again, later(now, lease.ttl));
        Renewal::Restored
    }
}
