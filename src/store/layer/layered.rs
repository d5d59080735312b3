//! A store under a layer: the one place that spells out every operation. It decides nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Release, Renewal, Settlement, Store, StoreError, Wakeups,
};

/// What an operation comes to.
pub type Reply<T> = Result<T, StoreError>;

/// One operation with its arguments. It may be made any number of times; each is a request of its own.
pub type Call<'a, T> = &'a (dyn Fn() -> BoxFuture<'a, Reply<T>> + Send + Sync);

/// What a decorator does with each operation.
#[async_trait]
pub trait Layer: Debug + Send + Sync + 'static {
    /// Carries out `call`, which is operation `op` on the store at `location`.
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T>;
}

/// A store with a layer around each of its operations.
#[derive(Clone, Debug)]
pub struct Layered<L> {
    inner: Arc<dyn Store>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Puts `layer` around `inner`.
    pub fn new(inner: Arc<dyn Store>, layer: L) -> Self {
        Self { inner, layer }
    }

    /// The layer.
    pub const fn layer(&self) -> &L {
        &self.layer
    }

    async fn around<'a, T: Send + 'a>(&'a self, op: Op, call: Call<'a, T>) -> Reply<T> {
        self.layer.around(op, self.inner.location(), call).await
    }
}

#[async_trait]
impl<L: Layer> Store for Layered<L> {
    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn location(&self) -> &str {
        self.inner.location()
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        self.around(Op::Claim, &|| self.inner.claim(request)).await
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        self.around(Op::Renew, &|| self.inner.renew(lease)).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        self.around(Op::Complete, &|| self.inner.complete(lease, run, done_ttl)).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        self.around(Op::Fail, &|| self.inner.fail(lease, run, retry_after)).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        self.around(Op::GiveBack, &|| self.inner.give_back(lease, run)).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.around(Op::Inspect, &|| self.inner.inspect(slots)).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        self.around(Op::Output, &|| self.inner.output(slot, attempt, token)).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        self.around(Op::Close, &|| self.inner.close(slot, max_attempts, by)).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Reset, &|| self.inner.reset(slot, audit)).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Unlock, &|| self.inner.unlock(slot, audit)).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        self.around(Op::MarkDone, &|| self.inner.mark_done(slot, audit, done_ttl)).await
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Pause, &|| self.inner.pause(job, until, audit)).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Resume, &|| self.inner.resume(job, audit)).await
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.around(Op::Pauses, &|| self.inner.pauses()).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        self.around(Op::Register, &|| self.inner.register(jobs)).await
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        self.around(Op::Jobs, &|| self.inner.jobs()).await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        self.around(Op::Heartbeat, &|| self.inner.heartbeat(report)).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        self.around(Op::Nodes, &|| self.inner.nodes()).await
    }

    async fn purge(&self) -> Reply<u64> {
        self.around(Op::Purge, &|| self.inner.purge()).await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.around(Op::Note, &|| self.inner.note(pages)).await
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        self.around(Op::Notes, &|| self.inner.notes(slot)).await
    }

    fn subscribe(&self) -> Wakeups {
        self.inner.subscribe()
    }
}
