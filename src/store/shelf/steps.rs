//! What an adapter does by itself. Each takes the call whose work it is, where it may write, and fails in the adapter's own
//! words; [`Call::within`] turns them into the contract's.

use std::fmt::Debug;
use std::future::Future;

use chrono::{DateTime, Utc};

use super::call::{Call, Frame, Trouble};
use crate::job::JobName;
use crate::slot::{Attempt, Audit, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    StoreError, Wakeups,
};

/// How calls are framed.
pub(in crate::store) trait Framed: Debug + Send + Sync + 'static {
    type Fault: Trouble;

    fn frame(&self) -> Frame<'_>;
}

/// The slots, and the rest.
pub(in crate::store) trait Shelf: Registry + Notes {
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
