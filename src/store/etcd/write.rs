//! Writing what a rule has changed of a slot: one transaction, under the condition that nothing of what was read has changed,
//! and the etcd lease that a lease's mark stands under. Decides nothing.

use std::time::Duration;

use super::api::{
    KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseId, LeaseKeepAliveResponse, RangeRequest, RequestOp,
    TxnRequest, TxnResponse, delete, delete_prefix, method, put,
};
use super::fault::{Fault, is_lease_gone};
use super::slots::{Loaded, json};
use super::store::{Call, EtcdStore};
use crate::clock::between;
use crate::slot::Slot;
use crate::store::Op;
use crate::store::document::MarkText;
use crate::store::rules::{Change, MarkChange};
use crate::store::state::StoredMark;

/// The longest lease, 100 years in seconds.
const LONGEST: u64 = 100 * 365 * 86_400;

/// An etcd lease that was made for a mark and is not used yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spare {
    pub(super) lease: i64,
    /// Its length in seconds.
    ttl: i64,
}

/// What came of a write.
pub(super) enum Written {
    Yes {
        /// When the mark that stands now was written.
        mark: i64,
    },
    /// Something that was read has changed; what is there instead, where that is known.
    Overtaken(Option<Vec<Vec<KeyValue>>>),
}

impl EtcdStore {
    /// Writes the change, all of it or nothing.
    pub(super) async fn write(
        &self,
        call: &Call,
        loaded: &Loaded,
        change: &Change,
        spare: &mut Option<Spare>,
    ) -> Result<Written, Fault> {
        let slot = &loaded.slot;
        let kept_alive = is_kept_alive(call, loaded, &change.mark);
        let mut ops = self.log_ops(slot, change)?;
        match &change.mark {
            MarkChange::Keep => {}
            MarkChange::Remove => {
                ops.extend([&self.keys.mark(slot), &self.keys.lease(slot)].map(|key| delete(key)));
            }
            _ if kept_alive => {
                if !self.keep_alive(call, loaded.lease).await? {
                    return Ok(Written::Overtaken(None));
                }
            }
            MarkChange::Prolong(mark) | MarkChange::Put(mark) => ops.extend(self.mark_ops(loaded, mark, spare).await?),
        }
        let kept = Written::Yes { mark: loaded.revision };
        if ops.is_empty() {
            let sound = change.mark == MarkChange::Keep || self.still(loaded).await?;
            return Ok(if sound { kept } else { Written::Overtaken(None) });
        }
        ops.extend(change.wake.as_ref().map(|wake| put(&self.keys.wake(), wake.to_string(), 0)));
        let failure = loaded.ranges.iter().cloned().map(RequestOp::from).collect();
        let Some(answer) = self.txn(call, TxnRequest { failure, ..TxnRequest::when(loaded.read.clone(), ops) }).await?
        else {
            *spare = None;
            return Ok(Written::Overtaken(None));
        };
        if !answer.succeeded {
            return Ok(Written::Overtaken(Some(answer.found())));
        }
        if change.mark == MarkChange::Keep || kept_alive {
            return Ok(kept);
        }
        self.settle_leases(loaded, &change.mark, spare);
        Ok(Written::Yes { mark: answer.header.map_or(0, |header| header.revision) })
    }

    /// The mark's new text; under an etcd lease, and once more among the job's leases, if it is a lease.
    async fn mark_ops(
        &self,
        loaded: &Loaded,
        mark: &StoredMark,
        spare: &mut Option<Spare>,
    ) -> Result<[RequestOp; 2], Fault> {
        let slot = &loaded.slot;
        let (key, among, text) = (self.keys.mark(slot), self.keys.lease(slot), MarkText::of(mark));
        if !text.is_lease() {
            return Ok([put(&key, json(&text)?, 0), delete(&among)]);
        }
        let lease = self.grant(between(loaded.at.now, mark.until), spare).await?;
        let text = json(&text.without_end())?;
        Ok([put(&key, text.clone(), lease), put(&among, text, lease)])
    }

    /// Everything of the slot but its mark.
    fn log_ops(&self, slot: &Slot, change: &Change) -> Result<Vec<RequestOp>, Fault> {
        let mut ops = Vec::new();
        let attempts = self.keys.attempts(slot);
        ops.extend(change.counter.map(|counter| match counter {
            0 => delete(&attempts),
            _ => put(&attempts, counter.to_string(), 0),
        }));
        if change.log {
            ops.push(put(&self.keys.document(slot), json(&change.state)?, 0));
        }
        let written = change.run.as_ref().map(|run| (self.keys.output(slot, run.attempt, run.token), &run.output));
        // A key may be changed once only: what was forgotten and is written again goes with the next purge.
        match (written, change.forgets) {
            (Some((key, Some(output))), _) => ops.push(put(&key, json(output)?, 0)),
            (_, true) => ops.push(delete_prefix(&self.keys.outputs(slot))),
            (Some((key, None)), false) => ops.push(delete(&key)),
            (None, false) => {}
        }
        Ok(ops)
    }

    /// False when something has changed.
    pub(super) async fn commit(&self, call: &Call, request: TxnRequest) -> Result<bool, Fault> {
        Ok(self.txn(call, request).await?.is_some_and(|answer| answer.succeeded))
    }

    /// None when the etcd lease is gone that something was to stand under; then nothing was done.
    async fn txn(&self, call: &Call, request: TxnRequest) -> Result<Option<TxnResponse>, Fault> {
        call.sending();
        match self.link.call::<_, TxnResponse>(method::TXN, request).await {
            Ok(answer) => {
                call.answered();
                Ok(Some(answer))
            }
            Err(fault) if is_lease_gone(&fault) => {
                call.answered();
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// An etcd lease for at least this long. One that an earlier try of the same call has made is as good: nobody's trust began
    /// before the call.
    async fn grant(&self, span: Duration, spare: &mut Option<Spare>) -> Result<i64, Fault> {
        let ttl = i64::try_from(whole_seconds(span)).unwrap_or(i64::MAX);
        match spare.take() {
            Some(made) if made.ttl == ttl => {
                *spare = Some(made);
                return Ok(made.lease);
            }
            Some(made) => self.revoke(made.lease),
            None => {}
        }
        let granted: LeaseGrantResponse = self.link.ask(method::LEASE_GRANT, LeaseGrantRequest { ttl }).await?;
        if granted.id == 0 {
            tracing::debug!(error = granted.error, "etcd grants no lease");
            return Err(Fault::odd_answer());
        }
        *spare = Some(Spare { lease: granted.id, ttl });
        Ok(granted.id)
    }

    /// The etcd lease lasts for its whole length from now on. False when it is gone.
    async fn keep_alive(&self, call: &Call, lease: i64) -> Result<bool, Fault> {
        call.sending();
        let kept: LeaseKeepAliveResponse = self.link.ask(method::LEASE_KEEP_ALIVE, LeaseId { id: lease }).await?;
        call.answered();
        Ok(kept.ttl > 0)
    }

    /// Whether nothing has changed since it was read. Asked of a majority: a leader that has been replaced without noticing
    /// keeps leases alive that nobody else knows to be, but cannot answer this.
    async fn still(&self, loaded: &Loaded) -> Result<bool, Fault> {
        let success = vec![RangeRequest::key(&self.keys.mark(&loaded.slot)).into()];
        let request = TxnRequest::when(loaded.read.clone(), success);
        Ok(self.link.ask::<_, TxnResponse>(method::TXN, request).await?.succeeded)
    }

    /// What the mark stood under is not needed any more; what it stands under now is no longer spare.
    fn settle_leases(&self, loaded: &Loaded, change: &MarkChange, spare: &mut Option<Spare>) {
        if let MarkChange::Prolong(mark) | MarkChange::Put(mark) = change
            && MarkText::of(mark).is_lease()
        {
            *spare = None;
        }
        if loaded.lease != 0 {
            self.revoke(loaded.lease);
        }
    }
}

/// Whether keeping the mark's etcd lease alive is enough: it then lasts for the whole length that it was made with. A renewal wants
/// what was made for its claim, or what the cluster makes at the least, and leaves the mark's revision as it is; a claim may ask for
/// less than the one before it with the same token, and its lease lasts no longer than that.
fn is_kept_alive(call: &Call, loaded: &Loaded, change: &MarkChange) -> bool {
    let MarkChange::Prolong(mark) = change else { return false };
    let wanted = between(loaded.at.now, mark.until);
    let too_long = call.is_a(Op::Claim) && loaded.granted > Duration::from_secs(whole_seconds(wanted));
    wanted <= loaded.granted && !too_long
}

/// Whole seconds, at least so long. The cluster makes a lease of less than two seconds last two.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0)).clamp(1, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_at_least_as_long_as_was_asked() {
        let seconds = |millis| whole_seconds(Duration::from_millis(millis));
        assert_eq!([seconds(0), seconds(1), seconds(1_000), seconds(1_001), seconds(59_999)], [1, 1, 1, 2, 60]);
        assert_eq!(whole_seconds(Duration::MAX), LONGEST);
    }
}
