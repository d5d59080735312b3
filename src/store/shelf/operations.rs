//! Every store that has the steps keeps the contract: each call within its frame.

use chrono::{DateTime, Utc};

use super::call::Call;
use super::steps::{Notes, Registry, Shelf};
use crate::job::JobName;
use crate::slot::{Attempt, Audit, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause, Wakeups,
};

impl<S: Shelf> Ruled for S {
    fn capability(&self) -> Capability {
        <S as Shelf>::capability()
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
        Shelf::on_slot(self, Call::new(op), query, rule).await
    }

    async fn grant(&self, request: &ClaimRequest) -> Reply<Claim> {
        Shelf::grant(self, request).await
    }

    async fn records(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        Call::new(Op::Inspect).within(self.frame(), Shelf::records(self, slots)).await
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        Call::new(Op::Output).within(self.frame(), Shelf::output_kept(self, slot, attempt, token)).await
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
        call.within(self.frame(), Shelf::remove_old(self, &call)).await
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        let call = Call::new(Op::Note);
        call.within(self.frame(), Notes::note_pages(self, &call, pages)).await
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        Call::new(Op::Notes).within(self.frame(), Notes::notes_known(self, slot)).await
    }

    fn hints(&self) -> Wakeups {
        Shelf::subscribe(self)
    }
}
