//! The contract, method by method. What is decided is in `rules`; what is written, in the `*.sql` texts.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::store::{Call, ServerStore, TRIES, Tried, contended};
use super::{Dialect, Isolation};
use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::sql::{inspect, notes, registry};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Release, Renewal, Settlement, Store, StoreError, Trial, Wake, Wakeups,
};

/// A call on the registry: takes a connection, begins to read or to write, works, commits; again while others come first. A
/// closure cannot say that its future may cross threads and borrows the connection.
macro_rules! transaction {
    ($store:ident, $op:expr, $isolation:ident, |$tx:ident| $work:expr) => {{
        let call = Call::new($op);
        let work = async {
            let mut lane = $store.lane().await?;
            call.ask();
            for _ in 0..TRIES {
                let $tx = $store.begin(&mut lane, Isolation::$isolation).await?;
                let answer = $work.await;
                if let Tried::Answered(answer) = $store.end(&mut lane, &call, answer, Isolation::$isolation).await? {
                    lane.keep();
                    return Ok(answer);
                }
            }
            Err(contended())
        };
        $store.within(&call, work).await
    }};
}

#[async_trait]
impl<D: Dialect> Store for ServerStore<D> {
    fn capability(&self) -> Capability {
        D::capability()
    }

    fn location(&self) -> &str {
        &self.location
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let (query, request) = (SlotQuery::claim(request), request.clone());
        self.on_slot(Op::Claim, query, move |step| step.claim(&request)).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewal, StoreError> {
        let own = lease.clone();
        self.on_slot(Op::Renew, SlotQuery::lease(lease), move |step| step.renew(&own)).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Result<Settlement, StoreError> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::Complete, SlotQuery::lease(lease), move |step| step.complete(&own, &run, done_ttl)).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Result<Release, StoreError> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::Fail, SlotQuery::lease(lease), move |step| step.fail(&own, &run, retry_after)).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Result<Release, StoreError> {
        let (own, run) = (lease.clone(), run.clone());
        self.on_slot(Op::GiveBack, SlotQuery::lease(lease), move |step| step.give_back(&own, &run)).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError> {
        transaction!(self, Op::Inspect, Snapshot, |tx| inspect::inspect(tx, &self.scope, slots))
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, StoreError> {
        transaction!(self, Op::Output, Snapshot, |tx| inspect::output(tx, &self.scope, slot, attempt, token))
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Result<Closing, StoreError> {
        let by = by.clone();
        self.on_slot(Op::Close, SlotQuery::close(slot), move |step| step.close(max_attempts, &by)).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        let audit = audit.clone();
        self.on_slot(Op::Reset, SlotQuery::slot(slot), move |step| step.reset(&audit)).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        let audit = audit.clone();
        self.on_slot(Op::Unlock, SlotQuery::slot(slot), move |step| step.unlock(&audit)).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Result<Intervention, StoreError> {
        let audit = audit.clone();
        self.on_slot(Op::MarkDone, SlotQuery::slot(slot), move |step| step.mark_done(&audit, done_ttl)).await
    }

    async fn pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, StoreError> {
        let wake = Wake::Job(job.clone());
        let answer = transaction!(self, Op::Pause, Committed, |tx| async {
            let answer = registry::pause(tx, &self.scope, job, until, audit).await?;
            D::tell(tx, &self.scope, &wake).await.map(|()| answer)
        })?;
        self.dialect.told(wake);
        Ok(answer)
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError> {
        let wake = Wake::Job(job.clone());
        let answer = transaction!(self, Op::Resume, Committed, |tx| async {
            let answer = registry::resume(tx, &self.scope, job, audit).await?;
            D::tell(tx, &self.scope, &wake).await.map(|()| answer)
        })?;
        if answer == Intervention::Applied {
            self.dialect.told(wake);
        }
        Ok(answer)
    }

    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError> {
        transaction!(self, Op::Pauses, Snapshot, |tx| registry::pauses(tx, &self.scope))
    }

    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError> {
        transaction!(self, Op::Register, Committed, |tx| registry::register(tx, &self.scope, jobs))
    }

    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError> {
        transaction!(self, Op::Jobs, Snapshot, |tx| registry::jobs(tx, &self.scope))
    }

    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError> {
        transaction!(self, Op::Heartbeat, Committed, |tx| registry::heartbeat(tx, &self.scope, report))
    }

    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> {
        transaction!(self, Op::Nodes, Snapshot, |tx| registry::nodes(tx, &self.scope))
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        transaction!(self, Op::Purge, Committed, |tx| async {
            notes::purge(tx, &self.scope).await?;
            registry::purge(tx, &self.scope).await
        })
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        transaction!(self, Op::Note, Committed, |tx| notes::note(tx, &self.scope, pages))
    }

    async fn notes(&self, slot: &Slot) -> Result<Vec<NotePage>, StoreError> {
        transaction!(self, Op::Notes, Snapshot, |tx| notes::notes(tx, &self.scope, slot))
    }

    fn subscribe(&self) -> Wakeups {
        self.dialect.subscribe()
    }
}

impl<D: Dialect> ServerStore<D> {
    /// Removes what a trial wrote.
    pub(in crate::store::sql) async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        transaction!(self, Op::Purge, Committed, |tx| registry::forget(tx, &self.scope, trial))
    }
}
