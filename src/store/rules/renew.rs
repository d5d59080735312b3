//! `renew`: a holder makes its lease last. Nothing of anybody else's is changed (I4).

use super::SlotStep;
use crate::slot::Lease;
use crate::store::Renewal;
use crate::store::state::MarkKind;

impl SlotStep {
    /// Makes the lease last for its TTL from now on ([`crate::store::Store::renew`]).
    pub(in crate::store) fn renew(&mut self, lease: &Lease) -> Renewal {
        let Some(mark) = self.mark().cloned() else {
            return self.done_mark().map_or_else(|| self.restore(lease), Renewal::Done);
        };
        match mark.kind {
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
