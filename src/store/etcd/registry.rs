//! What stands beside the slots: jobs, nodes, pauses, and the notes, a key for each page, which no rule reads; and the purge.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::EtcdStore;
use super::api::{
    ASCEND, BY_CHANGE, KeyValue, OpReply, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, delete,
    delete_prefix, method, put, unchanged,
};
use super::fault::Fault;
use super::keys::Keys;
use super::read::{read_json, read_latest_of};
use crate::clock::later;
use crate::job::JobName;
use crate::slot::{Audit, JobLatest, MOST_PAGES, NotePage, Slot};
use crate::store::codec::{LatestText, MarkText, NodeText, NoteText, PauseText};
use crate::store::keyed::{Call, Notes, Registry, json};
use crate::store::shelf::LockShelf as _;
use crate::store::state::SlotState;
use crate::store::{HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause, Wake};

/// Changes of one transaction: a server takes 128 (`--max-txn-ops`).
const AT_ONCE: usize = 100;

/// How often a change of the registry is tried anew when others change the same entries.
const MOST_TRIES: usize = 20;

/// The most slots that one purge looks at: those that were changed the longest ago.
const PURGE_AT_ONCE: i64 = 200;

/// Slots that are removed in one transaction, four changes each.
const PURGE_IN_ONE: usize = 25;

/// Pages of one transaction, two operations each: a server takes 128 (`--max-txn-ops`).
const PAGES_AT_ONCE: usize = 50;

/// The most pages that one purge looks at, and that go in one transaction.
const PURGED_PAGES: i64 = 1_000;
const PURGED_PAGES_IN_ONE: usize = 50;

/// The most jobs whose last change one purge looks at, in one transaction.
const PURGED_LATEST: i64 = 100;

impl Registry for EtcdStore {
    async fn jobs_known(&self, _call: &Call) -> Result<Vec<JobEntry>, Fault> {
        self.range(RangeRequest::prefix(&self.keys.jobs())).await?.iter().map(read_json).collect()
    }

    /// Writes only what is new or has changed: nodes say the same again and again.
    async fn register_jobs(&self, call: &Call, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, Fault> {
        for part in jobs.chunks(AT_ONCE) {
            let mut tries = 0..MOST_TRIES;
            while !self.register_part(call, part).await? {
                tries.next().ok_or_else(Fault::contended)?;
            }
        }
        self.jobs_known(call).await
    }

    async fn beat(&self, call: &Call, report: &NodeReport) -> Result<HeartbeatReply, Fault> {
        let known = self.range(RangeRequest::prefix(&self.keys.nodes())).await?;
        let at = self.moment();
        let key = self.keys.node(&report.name);
        let text = json(&NodeText::of(NodeEntry { report: report.clone(), seen: at.now }))?;
        let mut success = vec![put(&key, text, 0)];
        for kv in known.iter().filter(|kv| kv.key != key.as_bytes()) {
            let old = !read_json::<NodeText>(kv)?.entry().is_kept(at);
            success.extend((old && success.len() < AT_ONCE).then(|| delete(&String::from_utf8_lossy(&kv.key))));
        }
        let was_known = known.iter().any(|kv| kv.key == key.as_bytes());
        self.commit(call, TxnRequest::when(Vec::new(), success)).await?;
        Ok(HeartbeatReply { now: at.now, was_known })
    }

    async fn nodes_known(&self, _call: &Call) -> Result<(DateTime<Utc>, Vec<NodeEntry>), Fault> {
        let known = self.range(RangeRequest::prefix(&self.keys.nodes())).await?;
        let at = self.moment();
        let mut entries = Vec::with_capacity(known.len());
        for kv in &known {
            let entry = read_json::<NodeText>(kv)?.entry();
            entries.extend(entry.is_kept(at).then_some(entry));
        }
        Ok((at.now, entries))
    }

    async fn pauses_known(&self, _call: &Call) -> Result<Vec<(JobName, Pause)>, Fault> {
        let known = self.range(RangeRequest::prefix(&self.keys.pauses())).await?;
        let read = |kv: &KeyValue| {
            let name = Keys::name_of(&kv.key).and_then(|name| name.parse().ok());
            let job =
                name.ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no job has such a name"))?;
            Ok((job, read_json::<PauseText>(kv)?.pause()))
        };
        known.iter().map(read).collect()
    }

    async fn pause_known(&self, _call: &Call, job: &JobName) -> Result<(DateTime<Utc>, Option<Pause>), Fault> {
        let found = self.range(RangeRequest::key(&self.keys.pause(job))).await?;
        let pause = found.first().map(|kv| Ok::<_, Fault>(read_json::<PauseText>(kv)?.pause())).transpose()?;
        Ok((self.moment().now, pause))
    }

    async fn set_pause(
        &self,
        call: &Call,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, Fault> {
        let pause = Pause::begun(until, audit, self.moment().now);
        let success = self.pause_ops(job, pause)?;
        self.commit(call, TxnRequest::when(Vec::new(), success)).await?;
        Ok(Intervention::Applied)
    }

    async fn end_pause(&self, call: &Call, job: &JobName, audit: &Audit) -> Result<Intervention, Fault> {
        let key = self.keys.pause(job);
        for _ in 0..MOST_TRIES {
            let found = self.range(RangeRequest::key(&key)).await?;
            let Some(kv) = found.first() else { return Ok(Intervention::Unchanged) };
            let Some(ended) = read_json::<PauseText>(kv)?.pause().end(audit, self.moment().now) else {
                return Ok(Intervention::Unchanged);
            };
            let (compare, success) = (vec![unchanged(&key, kv.mod_revision)], self.pause_ops(job, ended)?);
            if self.commit(call, TxnRequest::when(compare, success)).await? {
                return Ok(Intervention::Applied);
            }
        }
        Err(Fault::contended())
    }

    async fn latest_known(&self, _call: &Call, jobs: &[JobName]) -> Result<Vec<JobLatest>, Fault> {
        let mut latest = Vec::with_capacity(jobs.len());
        for part in jobs.chunks(AT_ONCE) {
            let found = self.read(part.iter().map(|job| RangeRequest::key(&self.keys.latest(job))).collect()).await?;
            for kvs in &found {
                latest.push(read_latest_of(kvs.first())?);
            }
        }
        Ok(latest)
    }
}

impl EtcdStore {
    async fn range(&self, range: RangeRequest) -> Result<Vec<KeyValue>, Fault> {
        Ok(self.link.ask::<_, RangeResponse>(method::RANGE, range).await?.kvs)
    }

    async fn register_part(&self, call: &Call, jobs: &[JobEntry]) -> Result<bool, Fault> {
        let jobs = JobEntry::by_name(jobs);
        let found = self.read(jobs.keys().map(|name| RangeRequest::key(&self.keys.job(name))).collect()).await?;
        let now = self.moment().now;
        let mut changes = BTreeMap::new();
        for ((name, job), kvs) in jobs.into_iter().zip(&found) {
            let known = kvs.first().map(|kv| Ok::<_, Fault>((read_json::<JobEntry>(kv)?, kv.mod_revision)));
            let (known, revision) = known.transpose()?.unzip();
            if let Some(entry) = job.registered(known.as_ref(), now) {
                changes.insert(self.keys.job(name), (entry, revision.unwrap_or(0)));
            }
        }
        if changes.is_empty() {
            return Ok(true);
        }
        let compare = changes.iter().map(|(key, (_, revision))| unchanged(key, *revision)).collect();
        let puts = changes.iter().map(|(key, (entry, _))| Ok(put(key, json(entry)?, 0)));
        let success = puts.collect::<Result<_, Fault>>()?;
        self.commit(call, TxnRequest::when(compare, success)).await
    }

    fn pause_ops(&self, job: &JobName, pause: Pause) -> Result<Vec<RequestOp>, Fault> {
        let told = put(&self.keys.wake(), Wake::Job(job.clone()).to_string(), 0);
        Ok(vec![put(&self.keys.pause(job), json(&PauseText::of(pause))?, 0), told])
    }

    /// Removes a batch of what is older than the retention; answers how many slots went. A slot whose marker lasts longer
    /// than its records is left until that has ended.
    pub(super) async fn purge_slots(&self, call: &Call) -> Result<u64, Fault> {
        self.remove_old_notes(call).await?;
        self.remove_old_latest(call).await?;
        self.remove_old_messages(call).await?;
        self.purge_idle(call).await?;
        let oldest = RangeRequest {
            limit: PURGE_AT_ONCE,
            sort_order: ASCEND,
            sort_target: BY_CHANGE,
            ..RangeRequest::prefix(&self.keys.documents())
        };
        let at = self.moment();
        let mut old = Vec::new();
        for kv in self.range(oldest).await? {
            old.extend(read_json::<SlotState>(&kv)?.is_outdated(at).then_some(kv));
        }
        let mut gone = 0;
        for part in old.chunks(PURGE_IN_ONE) {
            gone += self.remove_part(call, part, at.now).await?;
        }
        Ok(gone)
    }

    async fn remove_part(&self, call: &Call, documents: &[KeyValue], now: DateTime<Utc>) -> Result<u64, Fault> {
        let names: Vec<&str> = documents.iter().filter_map(|kv| self.keys.slot_of(&kv.key)).collect();
        let keys: Vec<_> = names.iter().map(|name| self.keys.all_of(name)).collect();
        let marks = self.read(keys.iter().map(|([mark, ..], _)| RangeRequest::key(mark)).collect()).await?;
        let (mut compare, mut success, mut count) = (Vec::new(), Vec::new(), 0);
        for ((([mark, attempts, document], outputs), kv), marks) in keys.iter().zip(documents).zip(&marks) {
            let text = marks.first().map(|kv| MarkText::read(&kv.value).map_err(|why| Fault::foreign(mark, &why)));
            let text = text.transpose()?;
            if text.is_some_and(|text| text.until().is_none_or(|until| until > now)) {
                continue;
            }
            compare.push(unchanged(document, kv.mod_revision));
            compare.push(unchanged(mark, marks.first().map_or(0, |kv| kv.mod_revision)));
            success.extend([mark, attempts, document].map(|key| delete(key)));
            success.push(delete_prefix(outputs));
            count += 1;
        }
        let done = count > 0 && self.commit(call, TxnRequest::when(compare, success)).await?;
        Ok(if done { count } else { 0 })
    }
}

impl Notes for EtcdStore {
    async fn note_pages(&self, call: &Call, pages: &[(Slot, NotePage)]) -> Result<(), Fault> {
        for part in pages.chunks(PAGES_AT_ONCE) {
            let now = self.moment().now;
            let mut success = Vec::with_capacity(part.len() * 2);
            for (slot, page) in part {
                let text = NoteText { kept_from: now.max(slot.end()), page: page.clone() };
                success.push(put(&self.keys.note(slot, &page.id), json(&text)?, 0));
            }
            // How many there are, with those that were changed the longest ago; what this very step writes is counted.
            success.extend(part.iter().map(|(slot, _)| RequestOp::from(self.oldest(slot))));
            call.sending();
            let answer: TxnResponse = self.link.call(method::TXN, TxnRequest::when(Vec::new(), success)).await?;
            call.answered();
            self.trim(call, answer).await?;
        }
        Ok(())
    }

    async fn notes_known(&self, _call: &Call, slot: &Slot) -> Result<Vec<NotePage>, Fault> {
        let found = self.read(vec![RangeRequest::prefix(&self.keys.notes(slot))]).await?;
        let at = self.moment();
        let mut pages = Vec::new();
        for kv in found.iter().flatten() {
            let text: NoteText = read_json(kv)?;
            pages.extend((later(text.kept_from, at.retention) > at.now).then_some(text.page));
        }
        NotePage::sort(&mut pages);
        Ok(pages)
    }
}

impl EtcdStore {
    fn oldest(&self, slot: &Slot) -> RangeRequest {
        let all = RangeRequest::prefix(&self.keys.notes(slot));
        RangeRequest { limit: 1, sort_order: ASCEND, sort_target: BY_CHANGE, ..all }
    }

    async fn trim(&self, call: &Call, answer: TxnResponse) -> Result<(), Fault> {
        let most = i64::try_from(MOST_PAGES).unwrap_or(i64::MAX);
        for response in answer.responses {
            let Some(OpReply::Range(RangeResponse { kvs, count })) = response.response else { continue };
            // A page at a time: each step adds few, and there is always a next one.
            if let Some(kv) = kvs.first().filter(|_| count > most) {
                let key = String::from_utf8_lossy(&kv.key);
                let (compare, success) = (vec![unchanged(&key, kv.mod_revision)], vec![delete(&key)]);
                self.commit(call, TxnRequest::when(compare, success)).await?;
            }
        }
        Ok(())
    }

    /// Removes a batch of what is older than the retention.
    async fn remove_old_notes(&self, call: &Call) -> Result<(), Fault> {
        let all = RangeRequest::prefix(&self.keys.all_notes());
        let oldest = RangeRequest { limit: PURGED_PAGES, sort_order: ASCEND, sort_target: BY_CHANGE, ..all };
        let at = self.moment();
        let mut old: Vec<KeyValue> = Vec::new();
        for kv in self.read(vec![oldest]).await?.into_iter().flatten() {
            let text: NoteText = read_json(&kv)?;
            old.extend((later(text.kept_from, at.retention) <= at.now).then_some(kv));
        }
        for part in old.chunks(PURGED_PAGES_IN_ONE) {
            let success = part.iter().map(|kv| delete(&String::from_utf8_lossy(&kv.key))).collect();
            self.commit(call, TxnRequest::when(Vec::new(), success)).await?;
        }
        Ok(())
    }

    /// Removes a batch of what jobs came to that have come to nothing since.
    async fn remove_old_latest(&self, call: &Call) -> Result<(), Fault> {
        let all = RangeRequest::prefix(&self.keys.all_latest());
        let oldest = RangeRequest { limit: PURGED_LATEST, sort_order: ASCEND, sort_target: BY_CHANGE, ..all };
        let now = self.moment().now;
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        for kv in self.range(oldest).await? {
            // What cannot be read stays: somebody else wrote it.
            if read_json::<LatestText>(&kv).is_ok_and(|text| text.is_outdated(now)) {
                let key = String::from_utf8_lossy(&kv.key);
                compare.push(unchanged(&key, kv.mod_revision));
                success.push(delete(&key));
            }
        }
        if !success.is_empty() {
            // Where somebody came in between, the next purge will do.
            self.commit(call, TxnRequest::when(compare, success)).await?;
        }
        Ok(())
    }
}
