//! The contract, method by method, for every store that has the steps. What is decided is in
//! [`rules`](crate::store::rules); what is written, in the adapter.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::call::Call;
use super::steps::Shelf;
use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Release, Renewal, Settlement, Store, StoreError, Wakeups,
};

#[async_trait]
impl<S: Shelf> Store for S {
    fn capability(&self) -> Capability {
        <S as Shelf>::capability()
    }

    fn location(&self) -> &str {
        self.frame().location
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.grant(request).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewal, StoreError> {
        self.on_slot(Call::new(Op::Renew), SlotQuery::lease(lease), |step| step.renew(lease)).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Result<Settlement, StoreError> {
        let rule = |step: &mut SlotStep| step.complete(lease, run, done_ttl);
        self.on_slot(Call::new(Op::Complete), SlotQuery::lease(lease), rule).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Result<Release, StoreError> {
        let rule = |step: &mut SlotStep| step.fail(lease, run, retry_after);
        self.on_slot(Call::new(Op::Fail), SlotQuery::lease(lease), rule).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Result<Release, StoreError> {
        self.on_slot(Call::new(Op::GiveBack), SlotQuery::lease(lease), |step| step.give_back(lease, run)).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError> {
        Call::new(Op::Inspect).within(self.frame(), self.records(slots)).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, StoreError> {
        Call::new(Op::Output).within(self.frame(), self.output_kept(slot, attempt, token)).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Result<Closing, StoreError> {
        self.on_slot(Call::new(Op::Close), SlotQuery::close(slot), |step| step.close(max_attempts, by)).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        self.on_slot(Call::new(Op::Reset), SlotQuery::slot(slot), |step| step.reset(audit)).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        self.on_slot(Call::new(Op::Unlock), SlotQuery::slot(slot), |step| step.unlock(audit)).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Result<Intervention, StoreError> {
        let rule = |step: &mut SlotStep| step.mark_done(audit, done_ttl);
        self.on_slot(Call::new(Op::MarkDone), SlotQuery::slot(slot), rule).await
    }

    async fn pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, StoreError> {
        let call = Call::new(Op::Pause);
        call.within(self.frame(), self.set_pause(&call, job, until, audit)).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError> {
        let call = Call::new(Op::Resume);
        call.within(self.frame(), self.end_pause(&call, job, audit)).await
    }

    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError> {
        Call::new(Op::Pauses).within(self.frame(), self.pauses_known()).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError> {
        let call = Call::new(Op::Register);
        call.within(self.frame(), self.register_jobs(&call, jobs)).await
    }

    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError> {
        Call::new(Op::Jobs).within(self.frame(), self.jobs_known()).await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError> {
        let call = Call::new(Op::Heartbeat);
        call.within(self.frame(), self.beat(&call, report)).await
    }

    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> {
        Call::new(Op::Nodes).within(self.frame(), self.nodes_known()).await
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        let call = Call::new(Op::Purge);
        call.within(self.frame(), self.remove_old(&call)).await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        let call = Call::new(Op::Note);
        call.within(self.frame(), self.note_pages(&call, pages)).await
    }

    async fn notes(&self, slot: &Slot) -> Result<Vec<NotePage>, StoreError> {
        Call::new(Op::Notes).within(self.frame(), self.notes_known(slot)).await
    }

    fn subscribe(&self) -> Wakeups {
        Shelf::subscribe(self)
    }
}
