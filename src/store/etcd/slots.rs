//! One step on one slot: read it, let the rule decide, write what it changed if nothing that was read has changed since;
//! otherwise all over again, with what the write found in its place.
//!
//! A claim of a slot that this store has not been asked for before does not read it: as a rule nobody has touched it, so that
//! is presumed, and the write holds only where it is so. A refusal is never given on a presumption.
//!
//! A lease's mark stands under an etcd lease of its own, so that it ends by the cluster's time and not by any node's. It
//! is read with the time that is left, and prolonged by keeping that etcd lease alive. Every other mark ends by the
//! instant in its text. Beside the mark stands a copy of it under the same etcd lease, in the one place of all leases of the
//! job: a claim that has to run alone holds only while no other slot's is there.

use std::time::Duration;

use futures_util::future::try_join;

use super::api::{
    Compare, KeyValue, LeaseId, LeaseTimeToLiveResponse, RangeRequest, RequestOp, TxnRequest, TxnResponse, absent,
    method, none_but, unchanged,
};
use super::fault::Fault;
use super::store::{Call, EtcdStore};
use super::write::{Spare, Written};
use crate::clock::later;
use crate::slot::{Slot, SlotKey};
use crate::store::document::{MarkText, PauseText};
use crate::store::rules::{Change, MarkChange, SlotStep};
use crate::store::state::{Moment, SlotQuery, SlotState, StoredMark};
use crate::store::{Claim, ClaimRequest, Op, Pause, StoreError};

/// How often a step is tried anew when others change the same slot meanwhile. Each time one of them has got through.
const MOST_TRIES: usize = 200;

/// What a lease that is there lasts at least: it may have run out, but the cluster has not yet removed it.
const LEAST_LEFT: Duration = Duration::from_millis(250);

/// Where a step begins.
enum View {
    /// Nobody is taken to have touched the slot.
    Presumed,
    Unread,
    /// Read already, by the write that came too late.
    Found(Vec<Vec<KeyValue>>),
}

/// A slot as it was read, and what must not have changed when it is written.
pub(super) struct Loaded {
    pub(super) slot: Slot,
    pub(super) stored: SlotState,
    pub(super) at: Moment,
    pause: Option<Pause>,
    /// The oldest of the job's other slots that is leased.
    other: Option<(SlotKey, StoredMark)>,
    pub(super) read: Vec<Compare>,
    /// What is read again where that has changed.
    pub(super) ranges: Vec<RangeRequest>,
    /// Nothing was read.
    presumed: bool,
    /// When the mark was last written; 0 is none.
    pub(super) revision: i64,
    /// The etcd lease that the mark stands under; 0 is none.
    pub(super) lease: i64,
    /// Its whole length.
    pub(super) granted: Duration,
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

impl Loaded {
    fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.other.clone());
        SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) }
    }
}

impl FoundMark {
    /// As a rule sees it. A lease that is there stands, whatever this node's clock says and however long reading took.
    pub(super) fn stored(self, at: Moment) -> Option<StoredMark> {
        self.text?.stored(later(at.now, self.left)).ok()
    }
}

impl EtcdStore {
    /// A claim, which is told the revision of the mark that it stands by.
    pub(super) async fn grant_slot(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let view = if self.known.is_new(&request.slot) { View::Presumed } else { View::Unread };
        let step = self.step(Call::new(Op::Claim), SlotQuery::claim(request), view, |step| step.claim(request));
        let (answer, written) = step.await?;
        Ok(match answer {
            Claim::Claimed { attempt, used, at, .. } => {
                Claim::Claimed { attempt, used, at, revision: u64::try_from(written).ok() }
            }
            refusal => refusal,
        })
    }

    /// One rule on one slot, in one atomic step.
    pub(super) async fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        self.step(call, query, View::Unread, rule).await.map(|(answer, _)| answer)
    }

    /// The same, with the revision of the mark that stands afterwards.
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

    /// The keys of a slot: mark, counter, document; the job's pause, if it counts.
    fn keys_of(&self, query: &SlotQuery) -> Vec<String> {
        let slot = &query.slot;
        let mut keys = vec![self.keys.mark(slot), self.keys.attempts(slot), self.keys.document(slot)];
        keys.extend(query.pause.then(|| self.keys.pause(slot.job())));
        keys
    }

    /// The same, each as a range of one; then what is leased of the job, if that counts.
    fn ranges_of(&self, query: &SlotQuery) -> Vec<RangeRequest> {
        let mut ranges: Vec<_> = self.keys_of(query).iter().map(|key| RangeRequest::key(key)).collect();
        ranges.extend(query.exclusive.then(|| RangeRequest::prefix(&self.keys.leases(query.slot.job()))));
        ranges
    }

    /// True while no other slot of the job is leased, if that counts.
    fn alone(&self, query: &SlotQuery) -> impl Iterator<Item = Compare> {
        let slot = &query.slot;
        let alone = query.exclusive.then(|| none_but(&self.keys.leases(slot.job()), &self.keys.lease(slot)));
        alone.into_iter().flatten()
    }

    /// The slot; none when its lease ended while it was read.
    async fn load(&self, query: &SlotQuery, view: View) -> Result<Option<Loaded>, Fault> {
        match view {
            View::Presumed => Ok(Some(self.untouched(query))),
            View::Unread => self.loaded(query, self.read(self.ranges_of(query)).await?).await,
            View::Found(found) => self.loaded(query, found).await,
        }
    }

    /// A slot that nobody has touched, of a job that was never paused, with no lease at another slot.
    fn untouched(&self, query: &SlotQuery) -> Loaded {
        let read = self.keys_of(query).iter().map(|key| absent(key)).chain(self.alone(query)).collect();
        Loaded {
            slot: query.slot.clone(),
            stored: SlotState::default(),
            at: self.moment(),
            pause: None,
            other: None,
            read,
            ranges: self.ranges_of(query),
            presumed: true,
            revision: 0,
            lease: 0,
            granted: Duration::ZERO,
        }
    }

    /// What was found at the slot's keys.
    async fn loaded(&self, query: &SlotQuery, found: Vec<Vec<KeyValue>>) -> Result<Option<Loaded>, Fault> {
        let mut found = found.into_iter();
        let keys = self.keys_of(query);
        let own: Vec<Option<KeyValue>> = found.by_ref().take(keys.len()).map(|mut kvs| kvs.pop()).collect();
        let revisions = own.iter().map(|kv| kv.as_ref().map_or(0, |kv| kv.mod_revision));
        let mut read: Vec<_> = keys.iter().zip(revisions).map(|(key, revision)| unchanged(key, revision)).collect();
        let mut own = own.into_iter();
        let (mark, counter, document) = (own.next().flatten(), own.next().flatten(), own.next().flatten());
        let pause = own.next().flatten();
        let revision = mark.as_ref().map_or(0, |kv| kv.mod_revision);
        let other = self.oldest_but(&query.slot, found.next().unwrap_or_default());
        if other.is_none() {
            read.extend(self.alone(query));
        }
        let (key, other) = other.unzip();
        let found = try_join(self.found_mark(mark), self.found_mark(other)).await?;
        let (Some(mark), Some(other)) = found else { return Ok(None) };
        let counter = read_counter(counter.as_ref())?;
        let document = read_document(document.as_ref())?;
        let pause = pause.map(|kv| read_json::<PauseText>(&kv)).transpose()?.map(PauseText::pause);
        // After everything was read: what was found gone had run out before this instant.
        let at = self.moment();
        let other = key.zip(other.stored(at));
        let (lease, granted) = (mark.lease, mark.granted);
        let stored = SlotState { mark: mark.stored(at), counter, ..document };
        let (slot, ranges) = (query.slot.clone(), self.ranges_of(query));
        Ok(Some(Loaded { slot, stored, at, pause, other, read, ranges, presumed: false, revision, lease, granted }))
    }

    /// The oldest of a job's leased slots, but for this one.
    fn oldest_but(&self, slot: &Slot, leases: Vec<KeyValue>) -> Option<(SlotKey, KeyValue)> {
        let keyed = leases.into_iter().filter_map(|kv| Some((self.keys.slot_key_of(&kv.key)?.1, kv)));
        keyed.filter(|(key, _)| *key != slot.key()).min_by_key(|(key, _)| *key)
    }

    /// Reads several ranges as they are at one moment.
    pub(super) async fn read(&self, ranges: Vec<RangeRequest>) -> Result<Vec<Vec<KeyValue>>, Fault> {
        let request = TxnRequest::when(Vec::new(), ranges.into_iter().map(RequestOp::from).collect());
        Ok(self.link.ask::<_, TxnResponse>(method::TXN, request).await?.found())
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
}

/// The counter; 0 where there is none.
pub(super) fn read_counter(kv: Option<&KeyValue>) -> Result<u32, Fault> {
    let Some(kv) = kv else { return Ok(0) };
    let number = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no number of attempts"))
}

/// All of a slot but the mark and the counter.
pub(super) fn read_document(kv: Option<&KeyValue>) -> Result<SlotState, Fault> {
    kv.map(read_json).transpose().map(Option::unwrap_or_default)
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
