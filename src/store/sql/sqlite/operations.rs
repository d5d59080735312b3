//! What a store does besides its steps on slots. What is written is in the `statements.sql`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::store::{Call, SqliteStore};
use crate::job::JobName;
use crate::slot::{Attempt, Audit, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::sql::{registry, slots};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause, Reach, StoreClock, Trial,
    Wake, Wakeups,
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

impl Ruled for SqliteStore {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn location(&self) -> &str {
        &self.shared.location
    }

    async fn on_slot<T: Send + 'static>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        self.in_turn(op, query, rule).await
    }

    async fn records(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        transaction!(self, Op::Inspect, reader.read, |tx| slots::inspect(&mut tx, &self.shared.scope, slots))
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        transaction!(self, Op::Output, reader.read, |tx| slots::output(
            &mut tx,
            &self.shared.scope,
            slot,
            attempt,
            token
        ))
    }

    async fn set_pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        let answer = transaction!(self, Op::Pause, writer.write, |tx| {
            registry::pause(&mut tx, &self.shared.scope, job, until, audit)
        })?;
        self.tell_job(job, &answer);
        Ok(answer)
    }

    async fn end_pause(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        let answer = transaction!(self, Op::Resume, writer.write, |tx| {
            registry::resume(&mut tx, &self.shared.scope, job, audit)
        })?;
        self.tell_job(job, &answer);
        Ok(answer)
    }

    async fn pauses_known(&self) -> Reply<Vec<(JobName, Pause)>> {
        transaction!(self, Op::Pauses, reader.read, |tx| registry::pauses(&mut tx, &self.shared.scope))
    }

    async fn register_jobs(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        transaction!(self, Op::Register, writer.write, |tx| registry::register(&mut tx, &self.shared.scope, jobs))
    }

    async fn jobs_known(&self) -> Reply<Vec<JobEntry>> {
        transaction!(self, Op::Jobs, reader.read, |tx| registry::jobs(&mut tx, &self.shared.scope))
    }

    async fn beat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        transaction!(self, Op::Heartbeat, writer.write, |tx| registry::heartbeat(&mut tx, &self.shared.scope, report))
    }

    async fn nodes_known(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        transaction!(self, Op::Nodes, reader.read, |tx| registry::nodes(&mut tx, &self.shared.scope))
    }

    async fn remove_old(&self) -> Reply<u64> {
        transaction!(self, Op::Purge, writer.write, |tx| registry::purge(&mut tx, &self.shared.scope))
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        transaction!(self, Op::Note, writer.write, |tx| registry::note(&mut tx, &self.shared.scope, pages))
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        transaction!(self, Op::Notes, reader.read, |tx| registry::notes(&mut tx, &self.shared.scope, slot))
    }

    fn hints(&self) -> Wakeups {
        self.shared.wakes.subscribe()
    }
}

impl SqliteStore {
    /// Removes what a trial wrote.
    pub(in crate::store) async fn forget(&self, trial: &Trial) -> Reply<()> {
        transaction!(self, Op::Purge, writer.write, |tx| registry::forget(&mut tx, &self.shared.scope, trial))
    }

    fn tell_job(&self, job: &JobName, answer: &Intervention) {
        if *answer == Intervention::Applied {
            self.shared.tell(Wake::Job(job.clone()));
        }
    }
}
