//! The store, and the frame of every call: a connection, a step that is tried again while others come first, one limit. `statements.sql` has the texts.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::call::ServerCall;
use super::pool::{Lane, Pool};
use super::{Access, Dialect, Isolation, Sent, ServerPlace, ServerSession, meaning, resolve, unseen};
use crate::clock::earlier;
use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::backend::Opened;
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::session::{Columns as _, Session, values};
use crate::store::sql::slots::{self, Loaded, Scope, SlotWrite};
use crate::store::sql::{queues, registry};
use crate::store::state::SlotQuery;
use crate::store::{
    Applied, Capability, ErrorKind, Finding, HeartbeatReply, Intervention, JobEntry, LATEST_KEPT, Migration, NodeEntry,
    NodeReport, Op, OpenError, Pause, StoreError, StoreOptions, Trial, Wake, Wakeups,
};

/// How often a call begins anew because others came first: each time somebody else's change was written. The time limit may end it earlier.
pub(super) const TRIES: u32 = 100;

/// Making tables waits for others who do the same.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60);

/// A store in a database server.
#[derive(Debug)]
pub(in crate::store::sql) struct ServerStore<D: Dialect> {
    pub(super) dialect: D,
    pool: Pool<D>,
    pub(super) place: ServerPlace<D::Options>,
    pub(super) scope: Scope,
    pub(super) limit: Duration,
}

/// How a try ended that did not fail for good.
pub(super) enum Tried<T> {
    Answered(T),
    /// Somebody else came first; nothing was written.
    Again,
}

/// Asks the first statement of a try: on a connection that has died while it was idle, on a new one. A macro for what
/// [`transaction`] is one.
macro_rules! asked_first {
    ($store:ident, $lane:ident, |$session:ident| $work:expr) => {{
        let $session = $lane.session(&$store.place).await?;
        match $work.await {
            Err(SqlFault::Sql(error)) if $lane.is_reused() && D::sent(&error) == Sent::Unknown => {
                $lane.renew();
                let $session = $lane.session(&$store.place).await?;
                $work.await
            }
            done => done,
        }
    }};
}
pub(super) use asked_first;

impl<D: Dialect> ServerStore<D> {
    /// A store that does not connect before its first call.
    pub(in crate::store::sql) fn open(url: &str, options: StoreOptions) -> Result<Self, OpenError> {
        let mut place = resolve::<D>(url)?;
        place.access = place.access.within(&options);
        Ok(Self {
            dialect: D::at(&place, &options),
            pool: Pool::new(options.op_timeout),
            place,
            scope: Scope { namespace: options.namespace, retention: options.retention },
            limit: options.op_timeout,
        })
    }

    /// Makes the tables.
    pub(in crate::store::sql) async fn migrate(url: &str) -> Result<Migration, OpenError> {
        let place = resolve::<D>(url)?;
        let work = async {
            let mut session = ServerSession::<D>::connect(&place.options, MIGRATION_LIMIT).await?;
            session.bring_up(Access::Migrate, MIGRATION_LIMIT).await
        };
        let done = tokio::time::timeout(MIGRATION_LIMIT, work).await.unwrap_or_else(|_| {
            let message = format!("no answer within {MIGRATION_LIMIT:?}: somebody keeps a lock on the tables");
            Err(SqlFault::known(ErrorKind::Timeout, message))
        });
        Ok(done.map_err(|fault| fault.into_error(Op::Open, Applied::Maybe, &place.location, meaning::<D>))?)
    }

    pub(super) async fn lane(&self) -> Result<Lane<'_, D>, SqlFault> {
        self.pool.take().await
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(super) async fn within<T>(
        &self,
        call: &ServerCall,
        work: impl Future<Output = Result<T, SqlFault>>,
    ) -> Result<T, StoreError> {
        let answers = self.pool.answers();
        let fault = match tokio::time::timeout(self.limit, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(fault)) => fault,
            Err(_) => {
                let message = if call.has_asked() {
                    // A link that swallows everything looks like this: the idle connections may be of the same kind. Where
                    // others were answered meanwhile the server is slow, and would be slower with all to be made anew.
                    if self.pool.answers() == answers {
                        self.pool.forget();
                    }
                    format!("no answer within {:?}", self.limit)
                } else {
                    format!("all its connections were busy for {:?}", self.limit)
                };
                SqlFault::known(ErrorKind::Timeout, message)
            }
        };
        if matches!(&fault, SqlFault::Sql(error) if D::sent(error) == Sent::Unknown) {
            self.pool.forget();
        }
        Err(fault.into_error(call.op, call.applied(), &self.place.location, meaning::<D>))
    }

    /// One rule on one slot.
    async fn step<T: Send>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let call = ServerCall::new(op);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            for _ in 0..TRIES {
                let loaded = self.load(&mut lane, &query).await?;
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let write = loaded.write(step);
                if matches!(self.save(&mut lane, &call, &write).await?, Tried::Answered(())) {
                    lane.keep();
                    if let Some(wake) = write.change.wake {
                        self.dialect.told(wake);
                    }
                    return Ok(answer);
                }
            }
            Err(contended())
        };
        self.within(&call, work).await
    }

    async fn load(&self, lane: &mut Lane<'_, D>, query: &SlotQuery) -> Result<Loaded, SqlFault> {
        asked_first!(self, lane, |session| slots::load(session, &self.scope, query))
    }

    async fn save(&self, lane: &mut Lane<'_, D>, call: &ServerCall, write: &SlotWrite) -> Result<Tried<()>, SqlFault> {
        if write.change.is_none() {
            return Ok(Tried::Answered(()));
        }
        let session = lane.session(&self.place).await?;
        call.send();
        let written = D::write(session, &self.scope, write, self.limit).await;
        self.written(lane, call, written).await
    }

    /// What a write comes to that tells whether anything was written.
    pub(super) async fn written(
        &self,
        lane: &mut Lane<'_, D>,
        call: &ServerCall,
        written: Result<bool, SqlFault>,
    ) -> Result<Tried<()>, SqlFault> {
        match written {
            Ok(true) => Ok(Tried::Answered(())),
            Ok(false) => {
                call.settle();
                Ok(Tried::Again)
            }
            Err(fault) => self.failed(lane, call, fault).await,
        }
    }

    /// What a failed write comes to.
    async fn failed<T>(
        &self,
        lane: &mut Lane<'_, D>,
        call: &ServerCall,
        fault: SqlFault,
    ) -> Result<Tried<T>, SqlFault> {
        let SqlFault::Sql(error) = &fault else {
            // The adapter's own: found before anything was sent.
            call.settle();
            return Err(fault);
        };
        match D::sent(error) {
            Sent::Unknown => Err(fault),
            Sent::Refused => {
                call.settle();
                Err(fault)
            }
            Sent::RolledBack => {
                call.settle();
                lane.session(&self.place).await?.roll_back().await?;
                Ok(Tried::Again)
            }
        }
    }

    /// Begins a transaction. A connection that has died while it was idle is made anew.
    pub(super) async fn begin<'l>(
        &self,
        lane: &'l mut Lane<'_, D>,
        isolation: Isolation,
    ) -> Result<&'l mut ServerSession<D>, SqlFault> {
        match lane.session(&self.place).await?.begin(isolation).await {
            Err(SqlFault::Sql(error)) if lane.is_reused() && D::sent(&error) == Sent::Unknown => {
                lane.renew();
                lane.session(&self.place).await?.begin(isolation).await?;
            }
            done => done?,
        }
        lane.session(&self.place).await
    }

    /// Ends a transaction: commits what went well; what the server rolled back is tried again.
    pub(super) async fn end<T>(
        &self,
        lane: &mut Lane<'_, D>,
        call: &ServerCall,
        answer: Result<T, SqlFault>,
        isolation: Isolation,
    ) -> Result<Tried<T>, SqlFault> {
        let ended = match answer {
            Ok(answer) => {
                if isolation == Isolation::Committed {
                    call.send();
                }
                lane.session(&self.place).await?.commit().await.map(|()| answer).map_err(SqlFault::Sql)
            }
            Err(fault) => Err(fault),
        };
        match ended {
            Ok(answer) => Ok(Tried::Answered(answer)),
            Err(fault) => self.failed(lane, call, fault).await,
        }
    }
}

pub(super) fn contended() -> SqlFault {
    SqlFault::known(ErrorKind::Overloaded, "too many others change the same at the same time".to_owned())
}

/// A call on the registry: takes a connection, begins to read or to write, works, commits; again while others come first. A
/// closure cannot say that its future may cross threads and borrows the connection.
macro_rules! transaction {
    ($store:ident, $op:expr, $isolation:ident, |$tx:ident| $work:expr) => {{
        let call = ServerCall::new($op);
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
pub(super) use transaction;

impl<D: Dialect> Ruled for ServerStore<D> {
    fn capability(&self) -> Capability {
        D::CAPABILITY
    }

    fn location(&self) -> &str {
        &self.place.location
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

    async fn pause_known(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        transaction!(self, Op::Pauses, Snapshot, |tx| registry::pause_known(tx, &self.scope, job))
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
            let (oldest, latest) = (self.scope.oldest(tx.now()), earlier(tx.now(), LATEST_KEPT));
            tx.execute(D::server_texts().turns_purge, values![self.scope.namespace.as_str(), oldest, latest]).await?;
            queues::purge(tx, &self.scope).await?;
            Ok::<_, SqlFault>(slots)
        })
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        transaction!(self, Op::Note, Committed, |tx| registry::note(tx, &self.scope, pages))
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        transaction!(self, Op::Notes, Snapshot, |tx| registry::notes(tx, &self.scope, slot))
    }

    async fn latest_known(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        transaction!(self, Op::Latest, Snapshot, |tx| registry::latest(tx, &self.scope, jobs))
    }

    fn hints(&self) -> Wakeups {
        self.dialect.subscribe()
    }
}

#[async_trait]
impl<D: Dialect> Opened for ServerStore<D> {
    /// Asks the server's settings, which the dialect judges. Changes nothing.
    async fn examine(&self) -> Vec<Finding> {
        let work = async {
            let mut session = ServerSession::<D>::connect(&self.place.options, self.limit).await.ok()?;
            let rows = session.fetch(D::server_texts().settings, values![]).await.ok()?;
            let pair = |row: &<ServerSession<D> as Session>::Row| row.text("name").ok()?.zip(row.text("setting").ok()?);
            Some(rows.iter().filter_map(pair).collect())
        };
        let said = tokio::time::timeout(self.limit.saturating_mul(2), work).await.ok().flatten();
        said.as_ref().map_or_else(unseen, D::judge)
    }

    async fn forget(&self, trial: &Trial) -> Reply<()> {
        transaction!(self, Op::Purge, Committed, |tx| registry::forget(tx, &self.scope, trial))
    }
}
