//! The contract on a majority of masters: each operation asks all of them; what their answers come to is decided by
//! `store::redlock`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::RedlockStore;
use super::masters::{Heard, Masters};
use crate::error::Reply;
use crate::job::{JobName, NodeName};
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::{Attempt, Audit, JobLatest, Lease, Mark, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::backend::Opened;
use crate::store::hints::Hints;
use crate::store::messages;
use crate::store::redis::RedisStore;
use crate::store::redlock::{lease, median, records};
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, Finding, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport,
    Op, Pause, Release, Renewal, Settlement, Station, Store, StoreClock, StoreError, Trial, Wakeups,
};

/// How often somebody who waits looks again where a hint was lost.
const POLL: Duration = Duration::from_secs(5);

/// What it can do where the user may subscribe.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "redlock",
    clock: StoreClock::Servers,
    poll: POLL,
    locks: false,
    tells_changes: false,
    messages: false,
    ..crate::store::redis::adapter::CAPABILITY
};

/// A call to one master, with what it needs shared.
macro_rules! call {
    ($with:expr, |$master:ident, $shared:ident| $body:expr) => {{
        let shared = Arc::new($with);
        move |$master: Arc<RedisStore>| {
            let $shared = Arc::clone(&shared);
            async move { $body.await }
        }
    }};
}

#[async_trait]
impl Store for RedlockStore {
    fn capability(&self) -> Capability {
        let push = self.masters.all.iter().any(|master| master.capability().push);
        Capability { push, ..CAPABILITY }
    }

    fn location(&self) -> &str {
        &self.location
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        self.claim_slot(request).await
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        let quorum = self.masters.quorum;
        let heard = self.masters.ask(call!(lease.clone(), |master, lease| master.renew_counted(&lease))).await;
        let longest = self.longest_lease(lease.slot.job(), lease.ttl);
        let answer = lease::renewal(quorum, lease, longest, &heard.said);
        self.settled(Op::Renew, heard, answer)
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        let with = (lease.clone(), run.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.complete(&with.0, &with.1, done_ttl))).await;
        let answer = lease::settlement(self.masters.quorum, &heard.said);
        if heard.answers().all(|answer| *answer == Settlement::Recorded) || answer.is_none() {
            return self.settled(Op::Complete, heard, answer);
        }
        // Who set the marker is for all of them together to say: two may have finished at once, each first somewhere.
        let reading =
            |error: StoreError| StoreError { op: Op::Complete, applied: crate::store::Applied::Maybe, ..error };
        let (_, record) = self.inspect_one(&lease.slot).await.map_err(reading)?;
        match record.mark {
            Mark::Done(mark) if mark.by.attempt != lease.attempt || mark.by.node != lease.node => {
                Ok(Settlement::Overtaken { by: mark.by })
            }
            _ => self.settled(Op::Complete, heard, answer),
        }
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        let with = (lease.clone(), run.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.fail(&with.0, &with.1, retry_after))).await;
        let answer = lease::release(self.masters.quorum, &heard.said);
        self.settled(Op::Fail, heard, answer)
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        let with = (lease.clone(), run.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.give_back(&with.0, &with.1))).await;
        let answer = lease::release(self.masters.quorum, &heard.said);
        self.settled(Op::GiveBack, heard, answer)
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.inspect_slots(slots).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        let heard = self.masters.ask(call!(slot.clone(), |master, slot| master.output(&slot, attempt, token))).await;
        // Each master keeps it, or has no room for it: one is enough.
        let answer = self.is_enough(&heard).then(|| heard.answers().flatten().next().cloned());
        self.settled(Op::Output, heard, answer)
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        self.close_slot(slot, max_attempts, by).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        if let Some(held) = self.held(Op::Reset, slot).await? {
            return Ok(held);
        }
        let with = (slot.clone(), audit.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.reset(&with.0, &with.1))).await;
        self.intervened(Op::Reset, heard)
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        if self.held(Op::Unlock, slot).await?.is_none() {
            return Ok(Intervention::Unchanged);
        }
        let with = (slot.clone(), audit.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.unlock(&with.0, &with.1))).await;
        self.intervened(Op::Unlock, heard)
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        if let Some(held) = self.held(Op::MarkDone, slot).await? {
            return Ok(held);
        }
        let with = (slot.clone(), audit.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.mark_done(&with.0, &with.1, done_ttl))).await;
        self.intervened(Op::MarkDone, heard)
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        let with = (job.clone(), audit.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.pause(&with.0, until, &with.1))).await;
        self.intervened(Op::Pause, heard)
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        let with = (job.clone(), audit.clone());
        let heard = self.masters.ask(call!(with, |master, with| master.resume(&with.0, &with.1))).await;
        self.intervened(Op::Resume, heard)
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.all_pauses().await
    }

    async fn pause_of(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        let heard = self.masters.ask(call!(job.clone(), |master, job| master.pause_of(&job))).await;
        let now = median(heard.answers().map(|(now, _)| *now)).filter(|_| self.is_enough(&heard));
        let pauses = heard.answers().filter_map(|(_, pause)| pause.as_ref());
        let last = pauses.max_by_key(|pause| pause.last().at).cloned();
        self.settled(Op::Pauses, heard, now.map(|now| (now, last)))
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        let heard = self.masters.ask(call!(jobs.to_vec(), |master, jobs| master.register(&jobs))).await;
        let answer = self.is_enough(&heard).then(|| records::jobs(&heard.said));
        self.settled(Op::Register, heard, answer)
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        let heard = self.masters.ask(|master: Arc<RedisStore>| async move { master.jobs().await }).await;
        let answer = self.is_enough(&heard).then(|| records::jobs(&heard.said));
        self.settled(Op::Jobs, heard, answer)
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        let heard = self.masters.ask(call!(report.clone(), |master, report| master.heartbeat(&report))).await;
        let now = median(heard.answers().map(|reply| reply.now)).filter(|_| self.is_enough(&heard));
        // One master that came back empty is no loss.
        let was_known = heard.answers().any(|reply| reply.was_known);
        self.settled(Op::Heartbeat, heard, now.map(|now| HeartbeatReply { now, was_known }))
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        let heard = self.masters.ask(|master: Arc<RedisStore>| async move { master.nodes().await }).await;
        let now = median(heard.answers().map(|(now, _)| *now)).filter(|_| self.is_enough(&heard));
        let known: Vec<Option<Vec<NodeEntry>>> =
            heard.said.iter().map(|said| said.as_ref().map(|(_, nodes)| nodes.clone())).collect();
        self.settled(Op::Nodes, heard, now.map(|now| (now, records::nodes(&known))))
    }

    async fn purge(&self) -> Reply<u64> {
        Ok(0)
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        let heard = self.masters.ask(call!(pages.to_vec(), |master, pages| master.note(&pages))).await;
        let answer = self.is_enough(&heard).then_some(());
        self.settled(Op::Note, heard, answer)
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        let heard = self.masters.ask(call!(slot.clone(), |master, slot| master.notes(&slot))).await;
        let answer = self.is_enough(&heard).then(|| records::notes(&heard.said));
        self.settled(Op::Notes, heard, answer)
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        let heard = self.masters.ask(call!(jobs.to_vec(), |master, jobs| master.latest(&jobs))).await;
        let answer = self.is_enough(&heard).then(|| records::latest(jobs.len(), &heard.said));
        self.settled(Op::Latest, heard, answer)
    }

    async fn tell(&self, _: &MessageKey, _: &NodeName, _: Token, _: Duration) -> Reply<Telling> {
        messages::unkept(Op::Tell, &self.location)
    }

    async fn told(&self, _: &MessageKey, _: Token, _: &Delivery) -> Reply<DeliveryReply> {
        messages::unkept(Op::Told, &self.location)
    }

    async fn untold(&self, _: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        messages::unkept(Op::Untold, &self.location)
    }

    fn subscribe(&self) -> Wakeups {
        self.hints.subscribe(|hints| {
            let all = self.masters.all.iter().map(|master| hints.clone().pass_on(master.subscribe()));
            join_all(all).map(drop)
        })
    }
}

impl RedlockStore {
    pub(super) fn is_enough<T>(&self, heard: &Heard<T>) -> bool {
        heard.answers().count() >= self.masters.quorum.majority()
    }

    /// Who holds the slot for all masters together: asked before a verb, so that it changes none of them under a running
    /// node, and is not kept from all by a claim that came to nothing at one.
    async fn held(&self, op: Op, slot: &Slot) -> Reply<Option<Intervention>> {
        let reading = |error: StoreError| StoreError { op, ..error };
        let (_, record) = self.inspect_one(slot).await.map_err(reading)?;
        Ok(match record.mark {
            Mark::Leased { by, remaining, .. } => Some(Intervention::Held { by, remaining }),
            _ => None,
        })
    }

    fn intervened(&self, op: Op, heard: Heard<Intervention>) -> Reply<Intervention> {
        let answer = lease::intervention(self.masters.quorum, &heard.said);
        self.settled(op, heard, answer)
    }
}

#[async_trait]
impl Opened for RedlockStore {
    /// Looks at each master; what is found is told with its place.
    async fn examine(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for master in &self.masters.all {
            findings.extend(master.examine_as_one_of_many().await);
        }
        findings
    }

    /// Removes what a trial wrote, from each master that can be reached: nothing was written on another.
    async fn forget(&self, trial: &Trial) -> Reply<()> {
        let mut refused = Ok(());
        for master in &self.masters.all {
            if let Err(error) = master.forget_all(trial).await
                && !error.is_transient()
            {
                refused = Err(error);
            }
        }
        refused
    }

    /// Each master by itself, to be tried.
    async fn stations(self: Arc<Self>) -> Vec<Station> {
        let alone = |master: &Arc<RedisStore>| {
            let station = Self {
                masters: Masters::of_one(Arc::clone(master), self.options.op_timeout),
                hints: Hints::of_many(),
                options: self.options.clone(),
                location: master.location.clone(),
                longest_lease: self.longest_lease,
                asked: Mutex::default(),
                clock: Arc::clone(&self.clock),
            };
            Station::of_all(Arc::new(station))
        };
        self.masters.all.iter().map(alone).collect()
    }
}

impl RedlockStore {
    pub(super) async fn inspect_slots(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        let asked: Arc<[Slot]> = slots.into();
        let call = |master: Arc<RedisStore>| {
            let asked = Arc::clone(&asked);
            async move { master.inspect(&asked).await }
        };
        let mut heard = self.masters.ask(call).await;
        let now = median(heard.answers().map(|(now, _)| *now));
        let mut merged = Vec::with_capacity(slots.len());
        for _ in slots {
            // One slot at a time, from the last: each master's record of it.
            let records: Vec<Option<SlotRecord>> =
                heard.said.iter_mut().map(|said| said.as_mut().and_then(|(_, records)| records.pop())).collect();
            merged.extend(records::merge(self.masters.quorum, &records));
        }
        merged.reverse();
        let enough = heard.answers().count() >= self.masters.quorum.majority() && merged.len() == slots.len();
        let answer = now.filter(|_| enough).map(|now| (now, merged));
        self.settled(Op::Inspect, heard, answer)
    }

    pub(super) async fn inspect_one(&self, slot: &Slot) -> Reply<(DateTime<Utc>, SlotRecord)> {
        let (now, records) = self.inspect_slots(std::slice::from_ref(slot)).await?;
        let untouched = || SlotRecord::untouched(slot.clone());
        Ok((now, records.into_iter().next().unwrap_or_else(untouched)))
    }

    pub(super) async fn all_pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        let heard = self.masters.ask(|master: Arc<RedisStore>| async move { master.pauses().await }).await;
        let answer = (heard.answers().count() >= self.masters.quorum.majority()).then(|| records::pauses(&heard.said));
        self.settled(Op::Pauses, heard, answer)
    }
}
