//! What stores of keys and values have in common: the frame of a call, with one time limit and whether it may have been applied,
//! in one place. Each adapter brings its few own steps ([`Keyed`], [`Registry`], [`Notes`]); this knows no server, keeps nothing
//! and decides nothing about slots: that is done by [`rules`](super::rules), on a [`state`](super::state).

use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    StoreError, Wakeups,
};

/// One call: what it is, and whether something was sent that may be applied and has no answer.
pub(in crate::store) struct Call {
    op: Op,
    sent: AtomicBool,
}

/// Where a call goes, without secrets, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Frame<'s> {
    pub(in crate::store) location: &'s str,
    pub(in crate::store) limit: Duration,
}

/// What goes wrong below the trait.
pub(in crate::store) trait Trouble: Send {
    /// Nothing was heard for so long.
    fn timed_out(limit: Duration) -> Self;

    /// The one error of every store; `sent` where something has no answer.
    fn into_error(self, op: Op, sent: bool, location: &str) -> StoreError;
}

impl Call {
    pub(in crate::store) const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    #[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "others write a lease's end themselves"))]
    pub(in crate::store) fn is_a(&self, op: Op) -> bool {
        self.op == op
    }

    pub(in crate::store) fn sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(in crate::store) fn answered(&self) {
        self.sent.store(false, Ordering::Release);
    }

    pub(in crate::store) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(in crate::store) async fn within<T, F: Trouble>(
        &self,
        frame: Frame<'_>,
        work: impl Future<Output = Result<T, F>>,
    ) -> Result<T, StoreError> {
        let Frame { location, limit } = frame;
        let answer = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(F::timed_out(limit)));
        answer.map_err(|fault| fault.into_error(self.op, self.is_sent(), location))
    }
}

/// How calls are framed.
pub(in crate::store) trait Framed: Debug + Send + Sync + 'static {
    type Fault: Trouble;

    fn frame(&self) -> Frame<'_>;
}

/// The slots, and the rest.
pub(in crate::store) trait Keyed: Registry + Notes {
    fn capability() -> Capability;

    /// One rule on one slot, in one atomic step.
    fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// A claim. A store that can grant one without reading first has its own way.
    fn grant(&self, request: &ClaimRequest) -> impl Future<Output = Result<Claim, StoreError>> + Send {
        self.on_slot(Call::new(Op::Claim), SlotQuery::claim(request), |step| step.claim(request))
    }

    /// The clock, and what is known of each slot, in the order asked.
    fn records(
        &self,
        slots: &[Slot],
    ) -> impl Future<Output = Result<(DateTime<Utc>, Vec<SlotRecord>), Self::Fault>> + Send;

    /// The end of one run's output.
    fn output_kept(
        &self,
        slot: &Slot,
        attempt: Attempt,
        token: Token,
    ) -> impl Future<Output = Result<Option<OutputTail>, Self::Fault>> + Send;

    /// Removes a batch of what is older than the retention; answers how many slots went. A slot whose marker lasts longer
    /// than its records is left until that has ended.
    fn remove_old(&self, call: &Call) -> impl Future<Output = Result<u64, Self::Fault>> + Send;

    fn subscribe(&self) -> Wakeups;
}

/// The registry beside the slots.
pub(in crate::store) trait Registry: Framed {
    fn jobs_known(&self) -> impl Future<Output = Result<Vec<JobEntry>, Self::Fault>> + Send;

    /// Writes only what is new or has changed: nodes say the same again and again.
    fn register_jobs(
        &self,
        call: &Call,
        jobs: &[JobEntry],
    ) -> impl Future<Output = Result<Vec<JobEntry>, Self::Fault>> + Send;

    fn beat(
        &self,
        call: &Call,
        report: &NodeReport,
    ) -> impl Future<Output = Result<HeartbeatReply, Self::Fault>> + Send;

    fn nodes_known(&self) -> impl Future<Output = Result<(DateTime<Utc>, Vec<NodeEntry>), Self::Fault>> + Send;

    fn pauses_known(&self) -> impl Future<Output = Result<Vec<(JobName, Pause)>, Self::Fault>> + Send;

    fn set_pause(
        &self,
        call: &Call,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> impl Future<Output = Result<Intervention, Self::Fault>> + Send;

    /// The pause's record then names who ended it.
    fn end_pause(
        &self,
        call: &Call,
        job: &JobName,
        audit: &Audit,
    ) -> impl Future<Output = Result<Intervention, Self::Fault>> + Send;

    /// What each job has come to lately, in the order asked.
    fn latest_known(&self, jobs: &[JobName]) -> impl Future<Output = Result<Vec<JobLatest>, Self::Fault>> + Send;
}

/// What was noted on slots.
pub(in crate::store) trait Notes: Framed {
    /// Keeps pages, and removes those that are then too many.
    fn note_pages(
        &self,
        call: &Call,
        pages: &[(Slot, NotePage)],
    ) -> impl Future<Output = Result<(), Self::Fault>> + Send;

    /// A slot's pages.
    fn notes_known(&self, slot: &Slot) -> impl Future<Output = Result<Vec<NotePage>, Self::Fault>> + Send;
}

impl<S: Keyed> Ruled for S {
    fn capability(&self) -> Capability {
        <S as Keyed>::capability()
    }

    fn location(&self) -> &str {
        self.frame().location
    }

    async fn on_slot<T: Send + 'static>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        Keyed::on_slot(self, Call::new(op), query, rule).await
    }

    async fn grant(&self, request: &ClaimRequest) -> Reply<Claim> {
        Keyed::grant(self, request).await
    }

    async fn records(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        Call::new(Op::Inspect).within(self.frame(), Keyed::records(self, slots)).await
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        Call::new(Op::Output).within(self.frame(), Keyed::output_kept(self, slot, attempt, token)).await
    }

    async fn set_pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        let call = Call::new(Op::Pause);
        call.within(self.frame(), Registry::set_pause(self, &call, job, until, audit)).await
    }

    async fn end_pause(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        let call = Call::new(Op::Resume);
        call.within(self.frame(), Registry::end_pause(self, &call, job, audit)).await
    }

    async fn pauses_known(&self) -> Reply<Vec<(JobName, Pause)>> {
        Call::new(Op::Pauses).within(self.frame(), Registry::pauses_known(self)).await
    }

    async fn register_jobs(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        let call = Call::new(Op::Register);
        call.within(self.frame(), Registry::register_jobs(self, &call, jobs)).await
    }

    async fn jobs_known(&self) -> Reply<Vec<JobEntry>> {
        Call::new(Op::Jobs).within(self.frame(), Registry::jobs_known(self)).await
    }

    async fn beat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        let call = Call::new(Op::Heartbeat);
        call.within(self.frame(), Registry::beat(self, &call, report)).await
    }

    async fn nodes_known(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        Call::new(Op::Nodes).within(self.frame(), Registry::nodes_known(self)).await
    }

    async fn remove_old(&self) -> Reply<u64> {
        let call = Call::new(Op::Purge);
        call.within(self.frame(), Keyed::remove_old(self, &call)).await
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        let call = Call::new(Op::Note);
        call.within(self.frame(), Notes::note_pages(self, &call, pages)).await
    }

    async fn latest_known(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        Call::new(Op::Latest).within(self.frame(), Registry::latest_known(self, jobs)).await
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        Call::new(Op::Notes).within(self.frame(), Notes::notes_known(self, slot)).await
    }

    fn hints(&self) -> Wakeups {
        Keyed::subscribe(self)
    }
}
