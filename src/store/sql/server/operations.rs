//! What a store does besides its steps on slots. What is written is in the `statements.sql`.

use chrono::{DateTime, Utc};

use super::store::{Call, ServerStore, TRIES, Tried, contended};
use super::{Dialect, Isolation};
use crate::job::JobName;
use crate::slot::{Attempt, Audit, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::Fault;
use crate::store::sql::session::{Session as _, values};
use crate::store::sql::{registry, slots};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause, Trial, Wake, Wakeups,
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

impl<D: Dialect> Ruled for ServerStore<D> {
    fn capability(&self) -> Capability {
        D::capability()
    }

    fn location(&self) -> &str {
        &self.location
    }

    async fn on_slot<T: Send + 'static>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        self.step(op, query, rule).await
    }

    async fn records(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        transaction!(self, Op::Inspect, Snapshot, |tx| slots::inspect(tx, &self.scope, slots))
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        transaction!(self, Op::Output, Snapshot, |tx| slots::output(tx, &self.scope, slot, attempt, token))
    }

    async fn set_pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        let wake = Wake::Job(job.clone());
        let answer = transaction!(self, Op::Pause, Committed, |tx| async {
            let answer = registry::pause(tx, &self.scope, job, until, audit).await?;
            D::tell(tx, &self.scope, &wake).await.map(|()| answer)
        })?;
        self.dialect.told(wake);
        Ok(answer)
    }

    async fn end_pause(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
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

    async fn pauses_known(&self) -> Reply<Vec<(JobName, Pause)>> {
        transaction!(self, Op::Pauses, Snapshot, |tx| registry::pauses(tx, &self.scope))
    }

    async fn register_jobs(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        transaction!(self, Op::Register, Committed, |tx| registry::register(tx, &self.scope, jobs))
    }

    async fn jobs_known(&self) -> Reply<Vec<JobEntry>> {
        transaction!(self, Op::Jobs, Snapshot, |tx| registry::jobs(tx, &self.scope))
    }

    async fn beat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        transaction!(self, Op::Heartbeat, Committed, |tx| registry::heartbeat(tx, &self.scope, report))
    }

    async fn nodes_known(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        transaction!(self, Op::Nodes, Snapshot, |tx| registry::nodes(tx, &self.scope))
    }

    async fn remove_old(&self) -> Reply<u64> {
        transaction!(self, Op::Purge, Committed, |tx| async {
            let slots = registry::purge(tx, &self.scope).await?;
            let oldest = self.scope.oldest(tx.now());
            tx.execute(D::turns_purge(), values![self.scope.namespace.as_str(), oldest]).await?;
            Ok::<_, Fault>(slots)
        })
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        transaction!(self, Op::Note, Committed, |tx| registry::note(tx, &self.scope, pages))
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        transaction!(self, Op::Notes, Snapshot, |tx| registry::notes(tx, &self.scope, slot))
    }

    fn hints(&self) -> Wakeups {
        self.dialect.subscribe()
    }
}

impl<D: Dialect> ServerStore<D> {
    /// Removes what a trial wrote.
    pub(in crate::store::sql) async fn forget(&self, trial: &Trial) -> Reply<()> {
        transaction!(self, Op::Purge, Committed, |tx| async {
            registry::forget(tx, &self.scope, trial).await?;
            if let Some(job) = &trial.job {
                tx.execute(D::trial_turns(), values![self.scope.namespace.as_str(), job.as_str()]).await?;
            }
            Ok::<_, Fault>(())
        })
    }
}
