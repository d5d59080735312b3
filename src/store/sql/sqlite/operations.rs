//! The contract, method by method. What is decided is in `rules`; what is written, in the `*.sql` texts.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::store::{Call, SqliteStore};
use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::sql::{inspect, notes, registry};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    Reach, Release, Renewal, Settlement, Store, StoreClock, StoreError, Trial, Wake, Wakeups,
};

/// How often a node that waits looks again: other processes' releases are not heard of.
const POLL: Duration = Duration::from_millis(250);

/// A call on the registry: takes the lane, begins to read or to write, works, commits. A closure cannot say that its
/// future may cross threads and borrows the transaction.
macro_rules! transaction {
    ($store:ident, $op:expr, $lane:ident.$begin:ident, |$tx:ident| $work:expr) => {{
        let call = Call::new($op);
        let work = async {
            let mut lane = $store.shared.$lane.hold(&$store.shared.connector).await?;
            let mut $tx = lane.$begin().await?;
            let answer = $work.await?;
            call.commit($tx).await?;
            Ok(answer)
        };
        $store.within($store.shared.limit, &call, &$store.shared.$lane, work).await
    }};
}

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "sqlite",
    reach: Reach::Host,
    clock: StoreClock::Host,
    push: false,
    poll: POLL,
    durable: true,
    expires_records: false,
};

#[async_trait]
impl Store for SqliteStore {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn location(&self) -> &str {
        &self.shared.location
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
        transaction!(self, Op::Inspect, reader.read, |tx| inspect::inspect(&mut tx, &self.shared.scope, slots))
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, StoreError> {
        transaction!(self, Op::Output, reader.read, |tx| inspect::output(
            &mut tx,
            &self.shared.scope,
            slot,
            attempt,
            token
        ))
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
        let answer = transaction!(self, Op::Pause, writer.write, |tx| {
            registry::pause(&mut tx, &self.shared.scope, job, until, audit)
        })?;
        self.tell_job(job, &answer);
        Ok(answer)
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError> {
        let answer = transaction!(self, Op::Resume, writer.write, |tx| {
            registry::resume(&mut tx, &self.shared.scope, job, audit)
        })?;
        self.tell_job(job, &answer);
        Ok(answer)
    }

    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError> {
        transaction!(self, Op::Pauses, reader.read, |tx| registry::pauses(&mut tx, &self.shared.scope))
    }

    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError> {
        transaction!(self, Op::Register, writer.write, |tx| registry::register(&mut tx, &self.shared.scope, jobs))
    }

    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError> {
        transaction!(self, Op::Jobs, reader.read, |tx| registry::jobs(&mut tx, &self.shared.scope))
    }

    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError> {
        transaction!(self, Op::Heartbeat, writer.write, |tx| registry::heartbeat(&mut tx, &self.shared.scope, report))
    }

    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> {
        transaction!(self, Op::Nodes, reader.read, |tx| registry::nodes(&mut tx, &self.shared.scope))
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        transaction!(self, Op::Purge, writer.write, |tx| async {
            notes::purge(&mut tx, &self.shared.scope).await?;
            registry::purge(&mut tx, &self.shared.scope).await
        })
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        transaction!(self, Op::Note, writer.write, |tx| notes::note(&mut tx, &self.shared.scope, pages))
    }

    async fn notes(&self, slot: &Slot) -> Result<Vec<NotePage>, StoreError> {
        transaction!(self, Op::Notes, reader.read, |tx| notes::notes(&mut tx, &self.shared.scope, slot))
    }

    fn subscribe(&self) -> Wakeups {
        self.shared.wakes.subscribe()
    }
}

impl SqliteStore {
    /// Removes what a trial wrote.
    pub(in crate::store) async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        transaction!(self, Op::Purge, writer.write, |tx| registry::forget(&mut tx, &self.shared.scope, trial))
    }

    fn tell_job(&self, job: &JobName, answer: &Intervention) {
        if *answer == Intervention::Applied {
            self.shared.tell(Wake::Job(job.clone()));
        }
    }
}
