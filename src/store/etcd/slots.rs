//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again.
//!
//! A lease's mark stands under an etcd lease of its own, so that it ends by the cluster's time and not by any node's. It
//! is read with the time that is left, and prolonged by keeping that etcd lease alive. Every other mark ends by the
//! instant in its text.

use std::time::Duration;

use super::api::{
    Answer, Compare, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseId, LeaseKeepAliveResponse,
    LeaseTimeToLiveResponse, RangeRequest, RequestOp, TxnRequest, TxnResponse, delete, delete_prefix, method, put,
    unchanged,
};
use super::fault::{Fault, is_lease_gone};
use super::store::{Call, EtcdStore};
use crate::clock::{between, later};
use crate::slot::Slot;
use crate::store::document::{Change, Document, Kept, MarkChange, MarkText, Moment, PauseText, Subject};
use crate::store::image::{Image, StoredMark};
use crate::store::{Pause, StoreError};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// What a lease that is there lasts at least: it may have run out, but the cluster has not yet removed it.
const LEAST_LEFT: Duration = Duration::from_millis(250);

/// The longest lease, 100 years in seconds.
const LONGEST: u64 = 100 * 365 * 86_400;

/// A slot as it was read, and what must not have changed when it is written.
struct Loaded {
    kept: Kept,
    at: Moment,
    pause: Option<Pause>,
    older: Vec<(Slot, StoredMark)>,
    read: Vec<Compare>,
    /// The etcd lease that the mark stands under; 0 is none.
    lease: i64,
    /// Its whole length.
    granted: Duration,
}

/// A mark as it was read.
#[derive(Default)]
pub(super) struct FoundMark {
    text: Option<MarkText>,
    /// What is left of a lease.
    left: Duration,
    /// The etcd lease that it stands under, and its whole length.
    lease: i64,
    granted: Duration,
}

impl FoundMark {
    /// As a rule sees it. A lease that is there stands, whatever this node's clock says and however long reading took.
    pub(super) fn stored(self, at: Moment) -> Option<StoredMark> {
        self.text?.stored(later(at.now, self.left)).ok()
    }
}

/// An etcd lease that was made for a mark and is not used yet.
type Spare = Option<i64>;

enum Written {
    Yes,
    /// Something that was read has changed.
    Overtaken,
}

impl EtcdStore {
    /// One rule on one slot, in one atomic step.
    pub(super) async fn on_slot<T: Send>(
        &self,
        call: Call,
        subject: Subject,
        rule: impl Fn(&mut Image) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut spare = None;
        let work = async {
            for _ in 0..MOST_TRIES {
                let Some(loaded) = self.load(&subject).await? else { continue };
                let mut image = loaded.kept.image(&subject, loaded.at, loaded.pause.clone(), loaded.older.clone());
                let answer = rule(&mut image);
                let change = loaded.kept.change(image, loaded.at);
                if matches!(self.write(&call, &loaded, change, &mut spare).await?, Written::Yes) {
                    return Ok(answer);
                }
                // The next try makes one of its own, of full length.
                spare.take().into_iter().for_each(|lease| self.revoke(lease));
            }
            Err(Fault::contended())
        };
        let answer = self.within(&call, work).await;
        // Nothing stands under it, unless the answer to the write was lost: then it lapses by itself.
        if !call.is_sent() {
            spare.into_iter().for_each(|lease| self.revoke(lease));
        }
        answer
    }

    /// Reads the slot; none when its lease ended in the middle of it.
    async fn load(&self, subject: &Subject) -> Result<Option<Loaded>, Fault> {
        let slot = &subject.slot;
        let mut keys = vec![self.keys.mark(slot), self.keys.attempts(slot), self.keys.document(slot)];
        keys.extend(subject.pause.then(|| self.keys.pause(slot.job())));
        keys.extend(subject.older.iter().map(|older| self.keys.mark(older)));
        let found = self.read(keys.iter().map(|key| RangeRequest::key(key)).collect()).await?;
        let found: Vec<Option<KeyValue>> = found.into_iter().map(|mut kvs| kvs.pop()).collect();
        let read = keys.iter().zip(&found).map(|(key, kv)| unchanged(key, kv.as_ref().map_or(0, |kv| kv.mod_revision)));
        let read = read.collect();
        let mut rest = found.into_iter();
        let (mark, counter, document) = (rest.next().flatten(), rest.next().flatten(), rest.next().flatten());
        let pause = if subject.pause { rest.next().flatten() } else { None };
        let Some(mark) = self.found_mark(mark).await? else { return Ok(None) };
        let mut older = Vec::new();
        for (slot, kv) in subject.older.iter().zip(rest) {
            let Some(found) = self.found_mark(kv).await? else { return Ok(None) };
            older.push((slot.clone(), found));
        }
        let counter = read_counter(counter.as_ref())?;
        let document = read_document(document.as_ref())?;
        let pause = pause.map(|kv| read_json::<PauseText>(&kv)).transpose()?.map(PauseText::pause);
        // After everything was read: what was found gone had run out before this instant.
        let at = self.moment();
        let older = older.into_iter().filter_map(|(slot, found)| Some((slot, found.stored(at)?))).collect();
        let (lease, granted) = (mark.lease, mark.granted);
        let kept = Kept { slot: slot.clone(), mark: mark.stored(at), counter, document };
        Ok(Some(Loaded { kept, at, pause, older, read, lease, granted }))
    }

    /// Reads several ranges as they are at one moment.
    pub(super) async fn read(&self, ranges: Vec<RangeRequest>) -> Result<Vec<Vec<KeyValue>>, Fault> {
        let request = TxnRequest { compare: Vec::new(), success: ranges.into_iter().map(RequestOp::from).collect() };
        let answer: TxnResponse = self.link.ask(method::TXN, request).await?;
        let kvs = answer.responses.into_iter().map(|response| match response.response {
            Some(Answer::Range(range)) => range.kvs,
            None => Vec::new(),
        });
        Ok(kvs.collect())
    }

    /// A mark with the time that is left to it; none when its lease has just ended.
    pub(super) async fn found_mark(&self, kv: Option<KeyValue>) -> Result<Option<FoundMark>, Fault> {
        let Some(kv) = kv else { return Ok(Some(FoundMark::default())) };
        let foreign = |why: &str| Fault::foreign(&String::from_utf8_lossy(&kv.key), why);
        let text = MarkText::read(&kv.value).map_err(|why| foreign(&why))?;
        if !text.is_lease() {
            text.until().ok_or_else(|| foreign("a mark without an end"))?;
            return Ok(Some(FoundMark { text: Some(text), ..FoundMark::default() }));
        }
        if kv.lease == 0 {
            return Err(foreign("a lease that never ends"));
        }
        let left: LeaseTimeToLiveResponse = self.link.ask(method::LEASE_TIME_TO_LIVE, LeaseId { id: kv.lease }).await?;
        // -1 is no lease; what it held is gone as well.
        let Ok(seconds) = u64::try_from(left.ttl) else { return Ok(None) };
        Ok(Some(FoundMark {
            text: Some(text.without_end()),
            left: Duration::from_secs(seconds).max(LEAST_LEFT),
            lease: kv.lease,
            granted: Duration::from_secs(u64::try_from(left.granted_ttl).unwrap_or(0)),
        }))
    }

    async fn write(&self, call: &Call, loaded: &Loaded, change: Change, spare: &mut Spare) -> Result<Written, Fault> {
        let mut ops = self.log_ops(&loaded.kept.slot, &change)?;
        let left = |mark: &StoredMark| between(loaded.at.now, mark.until);
        let mark_key = self.keys.mark(&loaded.kept.slot);
        match &change.mark {
            MarkChange::Keep => {}
            MarkChange::Remove => ops.push(delete(&mark_key)),
            MarkChange::Prolong(mark) if left(mark) <= loaded.granted => {
                if !self.keep_alive(call, loaded.lease).await? {
                    return Ok(Written::Overtaken);
                }
            }
            MarkChange::Prolong(mark) | MarkChange::Put(mark) => {
                ops.push(self.mark_op(&mark_key, mark, left(mark), spare).await?);
            }
        }
        if ops.is_empty() {
            let sound = change.mark == MarkChange::Keep || self.still(loaded).await?;
            return Ok(if sound { Written::Yes } else { Written::Overtaken });
        }
        ops.extend(change.wake.as_ref().map(|wake| put(&self.keys.wake(), wake.to_string(), 0)));
        let compare = loaded.read.clone();
        if !self.commit(call, TxnRequest { compare, success: ops }).await? {
            return Ok(Written::Overtaken);
        }
        self.settle_leases(loaded, &change.mark, spare);
        Ok(Written::Yes)
    }

    /// The mark's new text, under an etcd lease if it is a lease.
    async fn mark_op(
        &self,
        key: &str,
        mark: &StoredMark,
        left: Duration,
        spare: &mut Spare,
    ) -> Result<RequestOp, Fault> {
        let text = MarkText::of(mark);
        if !text.is_lease() {
            return Ok(put(key, json(&text)?, 0));
        }
        let lease = self.grant(left, spare).await?;
        Ok(put(key, json(&text.without_end())?, lease))
    }

    /// Everything of the slot but its mark.
    fn log_ops(&self, slot: &Slot, change: &Change) -> Result<Vec<RequestOp>, Fault> {
        let mut ops = Vec::new();
        let attempts = self.keys.attempts(slot);
        ops.extend(change.counter.map(|counter| match counter {
            0 => delete(&attempts),
            _ => put(&attempts, counter.to_string(), 0),
        }));
        if let Some(document) = &change.document {
            ops.push(put(&self.keys.document(slot), json(document)?, 0));
        }
        let written = change.output.as_ref().map(|run| (self.keys.output(slot, run.attempt, run.token), &run.output));
        // A key may be changed once only: what was forgotten and is written again goes with the next purge.
        match (written, change.forgets_outputs) {
            (Some((key, Some(output))), _) => ops.push(put(&key, json(output)?, 0)),
            (_, true) => ops.push(delete_prefix(&self.keys.outputs(slot))),
            (Some((key, None)), false) => ops.push(delete(&key)),
            (None, false) => {}
        }
        Ok(ops)
    }

    /// False when something has changed.
    pub(super) async fn commit(&self, call: &Call, request: TxnRequest) -> Result<bool, Fault> {
        call.sending();
        match self.link.call::<_, TxnResponse>(method::TXN, request).await {
            Ok(answer) => {
                call.answered();
                Ok(answer.succeeded)
            }
            Err(fault) if is_lease_gone(&fault) => {
                call.answered();
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// An etcd lease for at least this long.
    async fn grant(&self, span: Duration, spare: &mut Spare) -> Result<i64, Fault> {
        let ttl = i64::try_from(whole_seconds(span)).unwrap_or(i64::MAX);
        let granted: LeaseGrantResponse = self.link.ask(method::LEASE_GRANT, LeaseGrantRequest { ttl }).await?;
        if granted.id == 0 {
            tracing::debug!(error = granted.error, "etcd grants no lease");
            return Err(Fault::odd_answer());
        }
        *spare = Some(granted.id);
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
        let success = vec![RangeRequest::key(&self.keys.mark(&loaded.kept.slot)).into()];
        let request = TxnRequest { compare: loaded.read.clone(), success };
        Ok(self.link.ask::<_, TxnResponse>(method::TXN, request).await?.succeeded)
    }

    /// What the mark stood under is not needed any more; what it stands under now is no longer spare.
    fn settle_leases(&self, loaded: &Loaded, change: &MarkChange, spare: &mut Spare) {
        let is_lease = |mark: &StoredMark| MarkText::of(mark).is_lease();
        let left = |mark: &StoredMark| between(loaded.at.now, mark.until);
        match change {
            MarkChange::Keep => return,
            MarkChange::Prolong(mark) if left(mark) <= loaded.granted => return,
            MarkChange::Prolong(mark) | MarkChange::Put(mark) if is_lease(mark) => *spare = None,
            _ => {}
        }
        if loaded.lease != 0 {
            self.revoke(loaded.lease);
        }
    }
}

/// Whole seconds, at least so long. The cluster makes a lease of less than two seconds last two.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0)).clamp(1, LONGEST)
}

/// The counter; 0 where there is none.
pub(super) fn read_counter(kv: Option<&KeyValue>) -> Result<u32, Fault> {
    let Some(kv) = kv else { return Ok(0) };
    let number = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no number of attempts"))
}

pub(super) fn read_document(kv: Option<&KeyValue>) -> Result<Option<Document>, Fault> {
    kv.map(read_json).transpose()
}

/// A value in JSON.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(kv: &KeyValue) -> Result<T, Fault> {
    let odd = |error: serde_json::Error| Fault::foreign(&String::from_utf8_lossy(&kv.key), &error.to_string());
    serde_json::from_slice(&kv.value).map_err(odd)
}

/// A record's JSON. Its types have no key or number that JSON lacks.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::foreign("a record", &error.to_string()))
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
