//! `renew`: a holder makes its lease last. Nothing of anybody else's is changed (I4).

use crate::slot::Lease;
use crate::store::Renewal;
use crate::store::image::{Image, Standing};

impl Image {
    /// Makes the lease last for its TTL from now on ([`crate::store::Store::renew`]).
    pub(in crate::store) fn renew(&mut self, lease: &Lease) -> Renewal {
        let Some(mark) = self.mark().cloned() else {
            return self.done_mark().map_or_else(|| self.restore(lease), Renewal::Done);
        };
        match mark.standing {
            Standing::Lease(token) if token == lease.token => {
                self.prolong(lease.ttl);
                Renewal::Renewed
            }
            Standing::Lease(_) => Renewal::Lost { to: Some(mark.by) },
            Standing::Wait(_) => Renewal::Lost { to: None },
            Standing::Done(_) => Renewal::Done(mark.done()),
        }
    }

    /// The key is absent. Where nothing says that this claim ended or was followed by another, its run still goes on,
    /// and without its lease a second run could start beside it.
    fn restore(&mut self, lease: &Lease) -> Renewal {
        let ended = self.runs.own.as_ref().is_some_and(|run| run.outcome.is_some());
        let followed = self.known() > lease.attempt || self.overtaker(lease.attempt, lease.claimed_at).is_some();
        if ended || followed {
            return Renewal::Lost { to: None };
        }
        self.grant(lease);
        Renewal::Restored
    }
}
