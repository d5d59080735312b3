//! A slot as it is read, for a step that changes it or for people who look at many.
//!
//! A lease's mark stands under an etcd lease of its own, so that it ends by the cluster's time and not by any node's. It
//! is read with the time that is left. Every other mark ends by the instant in its text. What stands among the leases of the job
//! is read where a slot has to run alone.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{try_join, try_join_all};

use super::EtcdStore;
use super::api::{
    Compare, KeyValue, LeaseId, LeaseTimeToLiveResponse, RangeRequest, RequestOp, TxnRequest, TxnResponse, absent,
    method, none_but, unchanged,
};
use super::fault::{Fault, odd_answer};
use crate::clock::later;
use crate::slot::{Attempt, JobLatest, OutputTail, Slot, SlotKey, SlotRecord, Token};
use crate::store::Pause;
use crate::store::codec::{LatestText, MarkText, PauseText};
use crate::store::rules::SlotStep;
use crate::store::state::{Moment, SlotQuery, SlotState, StoredMark};

/// What a lease that is there lasts at least: it may have run out, but the cluster has not yet removed it.
const LEAST_LEFT: Duration = Duration::from_millis(250);

/// Slots of one transaction, three ranges each: a server takes 128 (`--max-txn-ops`).
const AT_ONCE: usize = 40;
const RANGES: usize = 3;

/// Where a step begins.
pub(super) enum View {
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
    /// None where it was not asked for, or cannot be read.
    latest: Option<JobLatest>,
    /// The same, for a step that changes what the job has come to lately.
    pub(super) read_latest: Option<Compare>,
    pub(super) read: Vec<Compare>,
    /// What is read again where that has changed.
    pub(super) ranges: Vec<RangeRequest>,
    /// Nothing was read.
    pub(super) presumed: bool,
    /// When the mark was last written; 0 is none.
    pub(super) revision: i64,
    /// The etcd lease that the mark stands under; 0 is none.
    pub(super) lease: i64,
    /// Its whole length.
    pub(super) granted: Duration,
}

/// A mark as it was read.
#[derive(Default)]
struct FoundMark {
    text: Option<MarkText>,
    /// What is left of a lease.
    left: Duration,
    /// The etcd lease that it stands under, and its whole length.
    lease: i64,
    granted: Duration,
}

impl Loaded {
    pub(super) fn step(&self) -> SlotStep {
        let (pause, other) = (self.pause.clone(), self.other.clone());
        let step = SlotStep { pause, other, ..SlotStep::new(&self.slot, self.stored.current(self.at), self.at.now) };
        step.with_latest(self.latest.clone())
    }
}

impl FoundMark {
    /// As a rule sees it. A lease that is there stands, whatever this node's clock says and however long reading took.
    pub(super) fn stored(self, at: Moment) -> Option<StoredMark> {
        self.text?.stored(later(at.now, self.left)).ok()
    }
}

impl EtcdStore {
    /// The keys of a slot: mark, counter, document; the job's pause, if it counts.
    fn keys_of(&self, query: &SlotQuery) -> Vec<String> {
        let slot = &query.slot;
        let mut keys = vec![self.keys.mark(slot), self.keys.attempts(slot), self.keys.document(slot)];
        keys.extend(query.pause.then(|| self.keys.pause(slot.job())));
        keys
    }

    /// The same, each as a range of one; then what the job has come to lately, if that may change, and what is leased of it, if that
    /// counts.
    fn ranges_of(&self, query: &SlotQuery) -> Vec<RangeRequest> {
        let mut ranges: Vec<_> = self.keys_of(query).iter().map(|key| RangeRequest::key(key)).collect();
        ranges.extend(query.latest.then(|| RangeRequest::key(&self.keys.latest(query.slot.job()))));
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
    pub(super) async fn load(&self, query: &SlotQuery, view: View) -> Result<Option<Loaded>, Fault> {
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
            latest: None,
            read_latest: None,
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
        let latest_key = query.latest.then(|| self.keys.latest(query.slot.job()));
        let latest = latest_key.as_ref().and_then(|_| found.next()).and_then(|mut kvs| kvs.pop());
        let read_latest = latest_key.map(|key| unchanged(&key, latest.as_ref().map_or(0, |kv| kv.mod_revision)));
        let latest = query.latest.then(|| read_latest_of(latest.as_ref()).ok()).flatten();
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
        Ok(Some(Loaded {
            slot,
            stored,
            at,
            pause,
            other,
            latest,
            read_latest,
            read,
            ranges,
            presumed: false,
            revision,
            lease,
            granted,
        }))
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
    async fn found_mark(&self, kv: Option<KeyValue>) -> Result<Option<FoundMark>, Fault> {
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

    /// The clock, and what is known of each slot, in the order asked.
    pub(super) async fn read_records(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Fault> {
        if slots.is_empty() {
            // An empty question asks for the clock, and whether the store is there.
            self.read(vec![RangeRequest::key(&self.keys.wake())]).await?;
        }
        let mut records = Vec::with_capacity(slots.len());
        for part in slots.chunks(AT_ONCE) {
            let ranges = part.iter().flat_map(|slot| {
                [
                    RangeRequest::key(&self.keys.mark(slot)),
                    RangeRequest::key(&self.keys.attempts(slot)),
                    RangeRequest::key(&self.keys.document(slot)),
                ]
            });
            let found = self.read(ranges.collect()).await?;
            let read = part.iter().zip(found.chunks(RANGES)).map(|(slot, found)| self.record(slot, found));
            records.extend(try_join_all(read).await?);
        }
        Ok((self.moment().now, records))
    }

    async fn record(&self, slot: &Slot, found: &[Vec<KeyValue>]) -> Result<SlotRecord, Fault> {
        let [mark, counter, document] = found else { return Err(odd_answer()) };
        // A lease that has just ended is gone.
        let mark = self.found_mark(mark.first().cloned()).await?.unwrap_or_default();
        let at = self.moment();
        let mark = mark.stored(at);
        let counter = read_counter(counter.first())?;
        let stored = SlotState { mark, counter, ..read_document(document.first())? };
        Ok(stored.record(slot, at))
    }

    /// The end of one run's output.
    pub(super) async fn output_of(
        &self,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> Result<Option<OutputTail>, Fault> {
        let found = self.read(vec![RangeRequest::key(&self.keys.output(slot, attempt, token))]).await?;
        found.first().and_then(|found| found.first()).map(read_json).transpose()
    }
}

/// The counter; 0 where there is none.
pub(super) fn read_counter(kv: Option<&KeyValue>) -> Result<u32, Fault> {
    let Some(kv) = kv else { return Ok(0) };
    let number = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no number of attempts"))
}

/// What a job has come to lately.
pub(super) fn read_latest_of(kv: Option<&KeyValue>) -> Result<JobLatest, Fault> {
    Ok(kv.map(read_json::<LatestText>).transpose()?.map(|text| text.latest).unwrap_or_default())
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
