//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again, with what the write found in its place.
//!
//! A claim of a slot that this store has not been asked for before does not read it: as a rule nobody has touched it, so that
//! is presumed, and the write holds only where it is so. A refusal is never given on a presumption.
//!
//! What is written is one transaction. A lease's mark is prolonged by keeping the etcd lease alive that it stands under. Beside
//! the mark stands a copy of it under the same etcd lease, in the one place of all leases of the job: a claim that has to run
//! alone holds only while no other slot's is there.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::api::{
    KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseId, LeaseKeepAliveResponse, RangeRequest, RequestOp,
    TxnRequest, TxnResponse, delete, delete_prefix, method, put,
};
use super::fault::{Fault, is_lease_gone, odd_answer};
use super::read::{Loaded, View};
use super::{CAPABILITY, EtcdStore};
use crate::clock::between;
use crate::slot::{Attempt, OutputTail, Slot, SlotRecord, Token};
use crate::store::codec::{LatestText, MarkText};
use crate::store::keyed::{Call, Keyed, Records, json};
use crate::store::rules::{Change, MarkChange, SlotStep};
use crate::store::state::{SlotQuery, StoredMark};
use crate::store::{Capability, Changes, Claim, ClaimRequest, Op, StoreError, Wakeups};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// The longest lease, 100 years in seconds.
const LONGEST: u64 = 100 * 365 * 86_400;

/// An etcd lease that was made for a mark and is not used yet.
#[derive(Clone, Copy, Debug)]
struct Spare {
    lease: i64,
    /// Its length in seconds.
    ttl: i64,
}

/// What came of a write.
enum Written {
    Yes {
        /// When the mark that stands now was written.
        mark: i64,
    },
    /// Something that was read has changed; what is there instead, where that is known.
    Overtaken(Option<Vec<Vec<KeyValue>>>),
}

impl Keyed for EtcdStore {
    fn capability() -> Capability {
        CAPABILITY
    }

    async fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        self.step(call, query, View::Unread, rule).await.map(|(answer, _)| answer)
    }

    /// It is told the revision of the mark that it stands by.
    async fn grant(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let view = if self.seen.is_new(&request.slot) { View::Presumed } else { View::Unread };
        let step = self.step(Call::new(Op::Claim), SlotQuery::claim(request), view, |step| step.claim(request));
        let (answer, written) = step.await?;
        Ok(match answer {
            Claim::Claimed { attempt, used, at, .. } => {
                Claim::Claimed { attempt, used, at, revision: u64::try_from(written).ok() }
            }
            refusal => refusal,
        })
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }

    fn changes(&self) -> Changes {
        self.onlookers.subscribe()
    }
}

impl Records for EtcdStore {
    async fn records(&self, _call: &Call, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        self.read_records(slots).await
    }

    async fn output_kept(
        &self,
        _call: &Call,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> Result<Option<OutputTail>, Fault> {
        self.output_of(slot, attempt, token).await
    }

    async fn remove_old(&self, call: &Call) -> Result<u64, Fault> {
        self.purge_slots(call).await
    }
}

impl EtcdStore {
    /// One rule on one slot, in one atomic step, with the revision of the mark that stands afterwards.
    async fn step<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        mut view: View,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<(T, i64), StoreError> {
        let mut spare = None;
        let work = async {
            for _ in 0..MOST_TRIES {
                let viewed = std::mem::replace(&mut view, View::Unread);
                let Some(loaded) = self.load(&query, viewed).await? else { continue };
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let change = Change::between(&loaded.stored, step, loaded.at);
                if loaded.presumed && change.mark == MarkChange::Keep {
                    continue;
                }
                match self.write(&call, &loaded, &change, &mut spare).await? {
                    Written::Yes { mark } => return Ok((answer, mark)),
                    Written::Overtaken(found) => view = found.map_or(View::Unread, View::Found),
                }
            }
            Err(Fault::contended())
        };
        let answer = self.within(&call, work).await;
        // Nothing stands under it, unless the answer to the write was lost: then it lapses by itself.
        if !call.is_sent() {
            spare.into_iter().for_each(|spare: Spare| self.revoke(spare.lease));
        }
        answer
    }

    /// Writes the change, all of it or nothing.
    async fn write(
        &self,
        call: &Call,
        loaded: &Loaded,
        change: &Change,
        spare: &mut Option<Spare>,
    ) -> Result<Written, Fault> {
        let slot = &loaded.slot;
        let kept_alive = is_kept_alive(call, loaded, &change.mark);
        let mut ops = self.log_ops(slot, change)?;
        if let Some(latest) = &change.latest {
            ops.push(put(&self.keys.latest(slot.job()), json(&LatestText::of(latest, loaded.at.now))?, 0));
        }
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
        let compared = change.latest.as_ref().and(loaded.read_latest.as_ref());
        let compare = loaded.read.iter().chain(compared).cloned().collect();
        let failure = loaded.ranges.iter().cloned().map(RequestOp::from).collect();
        let Some(answer) = self.txn(call, TxnRequest { failure, ..TxnRequest::when(compare, ops) }).await? else {
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
            return Err(odd_answer());
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
