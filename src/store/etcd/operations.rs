//! The contract, method by method. What is decided is in [`rules`](crate::store::rules); what is written, in `slots`.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::store::{Call, EtcdStore};
use crate::job::{JobName, NodeName};
use crate::slot::{Audit, Lease, RunRecord, Slot, SlotRecord};
use crate::store::document::Subject;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Reach, Release, Renewal, Settlement, Store, StoreClock, StoreError, Wakeups,
};

/// How often somebody who waits looks again while there is no watch.
const POLL: Duration = Duration::from_secs(5);

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "etcd",
    reach: Reach::Network,
    clock: StoreClock::Node,
    push: true,
    poll: POLL,
    durable: true,
    expires_records: false,
};

#[async_trait]
impl Store for EtcdStore {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn location(&self) -> &str {
        &self.location
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let subject = Subject {
            token: Some(request.token),
            older: request.not_during.clone(),
            pause: true,
            ..Subject::slot(&request.slot)
        };
        self.on_slot(Call::new(Op::Claim), subject, |image| image.claim(request)).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewal, StoreError> {
        self.on_slot(Call::new(Op::Renew), Subject::lease(lease), |image| image.renew(lease)).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Result<Settlement, StoreError> {
        let rule = |image: &mut crate::store::image::Image| image.complete(lease, run, done_ttl);
        self.on_slot(Call::new(Op::Complete), Subject::lease(lease), rule).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Result<Release, StoreError> {
        let rule = |image: &mut crate::store::image::Image| image.fail(lease, run, retry_after);
        self.on_slot(Call::new(Op::Fail), Subject::lease(lease), rule).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Result<Release, StoreError> {
        self.on_slot(Call::new(Op::GiveBack), Subject::lease(lease), |image| image.give_back(lease, run)).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError> {
        self.within(&Call::new(Op::Inspect), self.records(slots)).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Result<Closing, StoreError> {
        let subject = Subject { pause: true, ..Subject::slot(slot) };
        self.on_slot(Call::new(Op::Close), subject, |image| image.close(max_attempts, by)).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        self.on_slot(Call::new(Op::Reset), Subject::slot(slot), |image| image.reset(audit)).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        self.on_slot(Call::new(Op::Unlock), Subject::slot(slot), |image| image.unlock(audit)).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Result<Intervention, StoreError> {
        let rule = |image: &mut crate::store::image::Image| image.mark_done(audit, done_ttl);
        self.on_slot(Call::new(Op::MarkDone), Subject::slot(slot), rule).await
    }

    async fn pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, StoreError> {
        let call = Call::new(Op::Pause);
        self.within(&call, self.set_pause(&call, job, until, audit)).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError> {
        let call = Call::new(Op::Resume);
        self.within(&call, self.end_pause(&call, job, audit)).await
    }

    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError> {
        self.within(&Call::new(Op::Pauses), self.pauses_known()).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError> {
        let call = Call::new(Op::Register);
        self.within(&call, self.register_jobs(&call, jobs)).await
    }

    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError> {
        self.within(&Call::new(Op::Jobs), self.jobs_known()).await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError> {
        let call = Call::new(Op::Heartbeat);
        self.within(&call, self.beat(&call, report)).await
    }

    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> {
        self.within(&Call::new(Op::Nodes), self.nodes_known()).await
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        let call = Call::new(Op::Purge);
        self.within(&call, self.remove_old(&call)).await
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }
}
