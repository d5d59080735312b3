//! The one seam for stores that do not decide by themselves: [`Store`] for whoever can do one [rule](super::rules) on one slot in
//! one atomic step. An adapter brings that step, and what is no slot's: the registry, the notes, the hints.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::rules::SlotStep;
use super::state::SlotQuery;
use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
pub(super) use crate::store::contract::Reply;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Release, Renewal, Settlement, Store, Wakeups,
};

/// What an adapter does by itself. Each is the method of [`Store`] that has the same words, but for the first ones.
pub(super) trait Ruled: Debug + Send + Sync + 'static {
    fn capability(&self) -> Capability;

    fn location(&self) -> &str;

    /// Reads a slot, lets the rule change it, and writes what it has changed under the condition that nothing of what was read has
    /// changed since; otherwise all over again. The rule is pure, and may be asked more than once.
    fn on_slot<T: Send + 'static>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
    ) -> impl Future<Output = Reply<T>> + Send;

    /// A claim. A store with a way of its own to grant one overrides it.
    fn grant(&self, request: &ClaimRequest) -> impl Future<Output = Reply<Claim>> + Send {
        let (query, request) = (SlotQuery::claim(request), request.clone());
        self.on_slot(Op::Claim, query, move |step| step.claim(&request))
    }

    /// [`Store::inspect`].
    fn records(&self, slots: &[Slot]) -> impl Future<Output = Reply<(DateTime<Utc>, Vec<SlotRecord>)>> + Send;

    /// [`Store::output`].
    fn output_kept(
        &self,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> impl Future<Output = Reply<Option<OutputTail>>> + Send;

    /// [`Store::pause`].
    fn set_pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> impl Future<Output = Reply<Intervention>> + Send;

    /// [`Store::resume`].
    fn end_pause(&self, job: &JobName, audit: &Audit) -> impl Future<Output = Reply<Intervention>> + Send;

    /// [`Store::pauses`].
    fn pauses_known(&self) -> impl Future<Output = Reply<Vec<(JobName, Pause)>>> + Send;

    /// [`Store::register`].
    fn register_jobs(&self, jobs: &[JobEntry]) -> impl Future<Output = Reply<Vec<JobEntry>>> + Send;

    /// [`Store::jobs`].
    fn jobs_known(&self) -> impl Future<Output = Reply<Vec<JobEntry>>> + Send;

    /// [`Store::heartbeat`].
    fn beat(&self, report: &NodeReport) -> impl Future<Output = Reply<HeartbeatReply>> + Send;

    /// [`Store::nodes`].
    fn nodes_known(&self) -> impl Future<Output = Reply<(DateTime<Utc>, Vec<NodeEntry>)>> + Send;

    /// [`Store::purge`].
    fn remove_old(&self) -> impl Future<Output = Reply<u64>> + Send;

    /// [`Store::note`].
    fn note_pages(&self, pages: &[(Slot, NotePage)]) -> impl Future<Output = Reply<()>> + Send;

    /// [`Store::notes`].
    fn notes_known(&self, slot: &Slot) -> impl Future<Output = Reply<Vec<NotePage>>> + Send;

    /// [`Store::latest`].
    fn latest_known(&self, jobs: &[JobName]) -> impl Future<Output = Reply<Vec<JobLatest>>> + Send;

    /// [`Store::subscribe`].
    fn hints(&self) -> Wakeups;
}

#[async_trait]
impl<S: Ruled> Store for S {
    fn capability(&self) -> Capability {
        Ruled::capability(self)
    }

    fn location(&self) -> &str {
        Ruled::location(self)
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        self.grant(request).await
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        let own = lease.clone();
        self.on_slot(Op::Renew, SlotQuery::lease(lease), move |step| step.renew(&own)).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::Complete, SlotQuery::end(lease), move |step| step.complete(&own, &run, done_ttl)).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::Fail, SlotQuery::end(lease), move |step| step.fail(&own, &run, retry_after)).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::GiveBack, SlotQuery::end(lease), move |step| step.give_back(&own, &run)).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.records(slots).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        self.output_kept(slot, attempt, token).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        let by = by.clone();
        self.on_slot(Op::Close, SlotQuery::close(slot), move |step| step.close(max_attempts, &by)).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        let audit = audit.clone();
        self.on_slot(Op::Reset, SlotQuery::operate(slot), move |step| step.reset(&audit)).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        let audit = audit.clone();
        self.on_slot(Op::Unlock, SlotQuery::slot(slot), move |step| step.unlock(&audit)).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        let audit = audit.clone();
        self.on_slot(Op::MarkDone, SlotQuery::operate(slot), move |step| step.mark_done(&audit, done_ttl)).await
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        self.set_pause(job, until, audit).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        self.end_pause(job, audit).await
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.pauses_known().await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        self.register_jobs(jobs).await
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        self.jobs_known().await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        self.beat(report).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        self.nodes_known().await
    }

    async fn purge(&self) -> Reply<u64> {
        self.remove_old().await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.note_pages(pages).await
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        self.notes_known(slot).await
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        self.latest_known(jobs).await
    }

    fn subscribe(&self) -> Wakeups {
        self.hints()
    }
}
