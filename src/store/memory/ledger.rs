//! The ledger: all that one namespace's store keeps, as plain data. It never reads a clock and never fails.
//!
//! A slot is a [`SlotState`], on which the rules of `store::rules` decide; its outputs, which no rule asks for, stand beside it. The
//! mark has its own TTL, all else is kept for the retention after its last change. Beside the slots stand which jobs and nodes there
//! are, which jobs are paused, and what was noted on slots, which no rule reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::{JobName, LockName, NodeName};
use crate::slot::{
    Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotKey, SlotRecord, Token,
};
use crate::store::rules::{Change, LockState, MarkChange, SlotStep, TopicState};
use crate::store::state::{Moment, SlotQuery, SlotState, StoredMark};
use crate::store::{
    ChangeHint, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, LATEST_KEPT, NodeEntry,
    NodeReport, Pause, Release, Renewal, Settlement, Topic, Wake,
};

/// The most slots that one [`Ledger::purge`] removes.
const PURGE_AT_ONCE: u64 = 1_000;

/// The identity of a slot: its end is no part of it.
type SlotId = (JobName, SlotKey);

pub(super) fn id(slot: &Slot) -> SlotId {
    (slot.job().clone(), slot.key())
}

/// One namespace's slots and registry. Each operation takes `now`, the store's clock; cloning it takes a snapshot, which is how
/// a test makes a failover lose writes.
#[derive(Clone, Debug)]
pub struct Ledger {
    retention: Duration,
    pub(super) slots: BTreeMap<SlotId, Kept>,
    /// Where a lease was placed and nothing has taken its place: a job's leases are found without looking at all its slots.
    leased: BTreeSet<SlotId>,
    pub(super) jobs: BTreeMap<JobName, JobEntry>,
    nodes: BTreeMap<NodeName, NodeEntry>,
    pauses: BTreeMap<JobName, Pause>,
    /// What each job has come to lately, and since when it is that.
    pub(super) latest: BTreeMap<JobName, (JobLatest, DateTime<Utc>)>,
    notes: BTreeMap<SlotId, Noted>,
    pub(super) locks: BTreeMap<LockName, LockState>,
    pub(super) lock_wakes: Vec<(Token, Token)>,
    pub(super) topics: BTreeMap<Topic, TopicState>,
    wakes: Vec<Wake>,
    changes: Vec<ChangeHint>,
}

/// One slot's pages.
#[derive(Clone, Debug, Default)]
struct Noted {
    pages: BTreeMap<String, NotePage>,
    /// The last change or the slot's end, whichever is later: the retention counts from there.
    kept_from: DateTime<Utc>,
}

impl Noted {
    fn is_kept(&self, at: Moment) -> bool {
        later(self.kept_from, at.retention) > at.now
    }
}

/// What is kept of a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) state: SlotState,
    outputs: BTreeMap<(Attempt, Token), OutputTail>,
}

impl Kept {
    /// All but the mark is gone.
    pub(super) fn forget(&mut self) {
        self.outputs.clear();
        self.state = SlotState { mark: self.state.mark.take(), ..SlotState::default() };
    }

    fn write(&mut self, change: Change) {
        if change.forgets {
            self.outputs.clear();
        }
        if let Some(run) = change.run {
            let id = (run.attempt, run.token);
            match run.output {
                Some(output) => {
                    self.outputs.insert(id, output);
                }
                None => {
                    self.outputs.remove(&id);
                }
            }
        }
        self.state = change.state;
    }
}

impl Ledger {
    /// An empty ledger that keeps records for `retention`.
    pub const fn new(retention: Duration) -> Self {
        Self {
            retention,
            slots: BTreeMap::new(),
            leased: BTreeSet::new(),
            jobs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pauses: BTreeMap::new(),
            latest: BTreeMap::new(),
            notes: BTreeMap::new(),
            locks: BTreeMap::new(),
            lock_wakes: Vec::new(),
            topics: BTreeMap::new(),
            wakes: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Forgets everything, as a server that restarts without its data.
    pub fn wipe(&mut self) {
        *self = Self::new(self.retention);
    }

    /// The hints to publish for what was done since the last call, in order. Those for whoever looks on are dropped with them: who
    /// wants these takes them first.
    #[must_use]
    pub fn take_wakes(&mut self) -> Vec<Wake> {
        self.changes.clear();
        std::mem::take(&mut self.wakes)
    }

    /// The same for whoever looks on.
    #[must_use]
    pub fn take_changes(&mut self) -> Vec<ChangeHint> {
        std::mem::take(&mut self.changes)
    }

    /// Asks for the slot's lease ([`crate::store::Store::claim`]).
    pub fn claim(&mut self, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        self.on_slot(&SlotQuery::claim(request), now, |step| step.claim(request))
    }

    /// Makes the lease last for its TTL from now on ([`crate::store::Store::renew`]).
    pub fn renew(&mut self, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        self.on_slot(&SlotQuery::lease(lease), now, |step| step.renew(lease))
    }

    /// Records success ([`crate::store::Store::complete`]).
    pub fn complete(&mut self, lease: &Lease, run: &RunRecord, done_ttl: Duration, now: DateTime<Utc>) -> Settlement {
        self.on_slot(&SlotQuery::end(lease), now, |step| step.complete(lease, run, done_ttl))
    }

    /// Records a failed run and releases its lease ([`crate::store::Store::fail`]).
    pub fn fail(&mut self, lease: &Lease, run: &RunRecord, retry_after: Duration, now: DateTime<Utc>) -> Release {
        self.on_slot(&SlotQuery::end(lease), now, |step| step.fail(lease, run, retry_after))
    }

    /// Releases the lease of a run that never began or was drained ([`crate::store::Store::give_back`]).
    pub fn give_back(&mut self, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        self.on_slot(&SlotQuery::end(lease), now, |step| step.give_back(lease, run))
    }

    /// Records the verdict of a slot that is over, once ([`crate::store::Store::close`]).
    pub fn close(&mut self, slot: &Slot, max_attempts: u32, by: &NodeName, now: DateTime<Utc>) -> Closing {
        self.on_slot(&SlotQuery::close(slot), now, |step| step.close(max_attempts, by))
    }

    /// Forgives all attempts so far and opens the slot again ([`crate::store::Store::reset`]).
    pub fn reset(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        self.on_slot(&SlotQuery::operate(slot), now, |step| step.reset(audit))
    }

    /// Takes the lease from its holder ([`crate::store::Store::unlock`]).
    pub fn unlock(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        self.on_slot(&SlotQuery::slot(slot), now, |step| step.unlock(audit))
    }

    /// Marks the slot done without a run ([`crate::store::Store::mark_done`]).
    pub fn mark_done(&mut self, slot: &Slot, audit: &Audit, done_ttl: Duration, now: DateTime<Utc>) -> Intervention {
        self.on_slot(&SlotQuery::operate(slot), now, |step| step.mark_done(audit, done_ttl))
    }

    /// What is known of each slot, in the order asked ([`crate::store::Store::inspect`]).
    pub fn inspect(&self, slots: &[Slot], now: DateTime<Utc>) -> Vec<SlotRecord> {
        let untouched = SlotState::default();
        let state = |slot| self.slots.get(&id(slot)).map_or(&untouched, |kept| &kept.state);
        slots.iter().map(|slot| state(slot).record(slot, self.at(now))).collect()
    }

    /// The end of the output of one run ([`crate::store::Store::output`]).
    pub fn output(&self, slot: &Slot, attempt: Attempt, token: Token, now: DateTime<Utc>) -> Option<OutputTail> {
        let kept = self.slots.get(&id(slot)).filter(|kept| !kept.state.is_outdated(self.at(now)))?;
        kept.outputs.get(&(attempt, token)).cloned()
    }

    /// Removes what was kept for its time ([`crate::store::Store::purge`]).
    pub fn purge(&mut self, now: DateTime<Utc>) -> u64 {
        let (at, mut gone) = (self.at(now), 0);
        self.purge_notes(at);
        self.purge_locks(now);
        self.purge_messages(now);
        self.latest.retain(|_, (_, changed)| later(*changed, LATEST_KEPT) > now);
        self.slots.retain(|_, kept| {
            if kept.state.mark(now).is_none() {
                kept.state.mark = None;
            }
            if gone < PURGE_AT_ONCE && kept.state.is_outdated(at) {
                kept.forget();
                gone += 1;
            }
            kept.state != SlotState::default()
        });
        self.leased.retain(|id| self.slots.get(id).is_some_and(|kept| kept.state.mark.is_some()));
        gone
    }

    pub(super) const fn retention(&self) -> Duration {
        self.retention
    }

    pub(super) const fn at(&self, now: DateTime<Utc>) -> Moment {
        Moment { now, retention: self.retention }
    }

    /// One rule on one slot.
    pub(super) fn on_slot<T>(
        &mut self,
        query: &SlotQuery,
        now: DateTime<Utc>,
        rule: impl FnOnce(&mut SlotStep) -> T,
    ) -> T {
        let (at, slot, untouched) = (self.at(now), &query.slot, SlotState::default());
        let stored = self.slots.get(&id(slot)).map_or(&untouched, |kept| &kept.state);
        let pause = self.pauses.get(slot.job()).filter(|_| query.pause).cloned();
        let other = if query.exclusive { self.other_lease(slot, now) } else { None };
        let latest = self.latest.get(slot.job()).filter(|_| query.latest).map(|(latest, _)| latest.clone());
        let step = SlotStep { pause, other, ..SlotStep::new(slot, stored.current(at), now) };
        let mut step = step.with_latest(Some(latest.unwrap_or_default()));
        let answer = rule(&mut step);
        let change = Change::between(stored, step, at);
        if let Some(latest) = &change.latest {
            self.latest.insert(slot.job().clone(), (latest.clone(), now));
        }
        self.changes.extend(change.hint(slot));
        self.write(id(slot), change);
        answer
    }

    fn write(&mut self, id: SlotId, change: Change) {
        if change.is_none() {
            return;
        }
        self.wakes.extend(change.wake.clone());
        match &change.mark {
            MarkChange::Keep | MarkChange::Prolong(_) => {}
            MarkChange::Put(mark) if mark.is_lease() => {
                self.leased.insert(id.clone());
            }
            MarkChange::Put(_) | MarkChange::Remove => {
                self.leased.remove(&id);
            }
        }
        self.slots.entry(id).or_default().write(change);
    }

    /// The oldest other slot of the job that is leased now.
    fn other_lease(&self, slot: &Slot, now: DateTime<Utc>) -> Option<(SlotKey, StoredMark)> {
        let (job, own) = (slot.job(), slot.key());
        let of_job = self.leased.range((job.clone(), SlotKey::FIRST)..).take_while(|(name, _)| name == job);
        of_job.filter(|(_, key)| *key != own).find_map(|id| {
            let mark = self.slots.get(id)?.state.mark(now)?;
            Some((id.1, mark.clone()))
        })
    }

    /// What each job has come to lately ([`crate::store::Store::latest`]).
    pub fn latest(&self, jobs: &[JobName]) -> Vec<JobLatest> {
        let known = |job| self.latest.get(job).map(|(latest, _)| latest.clone());
        jobs.iter().map(|job| known(job).unwrap_or_default()).collect()
    }

    fn tell_job(&mut self, job: &JobName) {
        self.wakes.push(Wake::Job(job.clone()));
        self.changes.push(ChangeHint::Job(job.clone()));
    }
}

impl Ledger {
    /// Makes the registry know these jobs ([`crate::store::Store::register`]).
    pub fn register(&mut self, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        for job in jobs {
            if let Some(entry) = job.registered(self.jobs.get(&job.name), now) {
                self.jobs.insert(job.name.clone(), entry);
            }
        }
        self.jobs()
    }

    /// Every known job, by name ([`crate::store::Store::jobs`]).
    pub fn jobs(&self) -> Vec<JobEntry> {
        self.jobs.values().cloned().collect()
    }

    /// Records that the node is alive ([`crate::store::Store::heartbeat`]). There is one entry per name: an instance
    /// replaces the earlier one.
    pub fn heartbeat(&mut self, report: &NodeReport, now: DateTime<Utc>) -> HeartbeatReply {
        let at = self.at(now);
        self.nodes.retain(|_, entry| entry.is_kept(at));
        let before = self.nodes.insert(report.name.clone(), NodeEntry { report: report.clone(), seen: now });
        HeartbeatReply { now, was_known: before.is_some() }
    }

    /// Every known node, by name ([`crate::store::Store::nodes`]).
    pub fn nodes(&self, now: DateTime<Utc>) -> Vec<NodeEntry> {
        self.nodes.values().filter(|entry| entry.is_kept(self.at(now))).cloned().collect()
    }

    /// Grants no slot of the job for a while ([`crate::store::Store::pause`]).
    pub fn pause(
        &mut self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
        now: DateTime<Utc>,
    ) -> Intervention {
        self.pauses.insert(job.clone(), Pause::begun(until, audit, now));
        self.tell_job(job);
        Intervention::Applied
    }

    /// Ends the pause now ([`crate::store::Store::resume`]). Its record then names who ended it, too.
    pub fn resume(&mut self, job: &JobName, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        let Some(ended) = self.pauses.get(job).cloned().and_then(|pause| pause.end(audit, now)) else {
            return Intervention::Unchanged;
        };
        self.pauses.insert(job.clone(), ended);
        self.tell_job(job);
        Intervention::Applied
    }

    /// Every job's last pause, by name ([`crate::store::Store::pauses`]).
    pub fn pauses(&self) -> Vec<(JobName, Pause)> {
        self.pauses.iter().map(|(job, pause)| (job.clone(), pause.clone())).collect()
    }

    /// The last pause of one job ([`crate::store::Store::pause_of`]).
    pub fn pause_of(&self, job: &JobName) -> Option<Pause> {
        self.pauses.get(job).cloned()
    }
}

impl Ledger {
    /// Keeps pages ([`crate::store::Store::note`]).
    pub fn note(&mut self, pages: &[(Slot, NotePage)], now: DateTime<Utc>) {
        let at = self.at(now);
        for (slot, page) in pages {
            let noted = self.notes.entry(id(slot)).or_default();
            if !noted.is_kept(at) {
                noted.pages.clear();
            }
            noted.kept_from = now.max(slot.end());
            noted.pages.insert(page.id.clone(), page.clone());
            let kept = noted.pages.values().map(|page| (page.last, page.id.clone(), ())).collect();
            for (id, ()) in NotePage::surplus(kept) {
                noted.pages.remove(&id);
            }
        }
    }

    /// The slot's pages ([`crate::store::Store::notes`]).
    pub fn notes(&self, slot: &Slot, now: DateTime<Utc>) -> Vec<NotePage> {
        let noted = self.notes.get(&id(slot)).filter(|noted| noted.is_kept(self.at(now)));
        let mut pages: Vec<NotePage> = noted.into_iter().flat_map(|noted| noted.pages.values().cloned()).collect();
        NotePage::sort(&mut pages);
        pages
    }

    /// The slot's pages become as old as can be: for probes.
    pub fn age_notes(&mut self, slot: &Slot) {
        if let Some(noted) = self.notes.get_mut(&id(slot)) {
            noted.kept_from = DateTime::UNIX_EPOCH;
        }
    }

    /// Removes what was kept for its time.
    fn purge_notes(&mut self, at: Moment) {
        self.notes.retain(|_, noted| noted.is_kept(at));
    }
}
