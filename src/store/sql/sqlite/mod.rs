//! The SQLite store: one file, shared by the processes of one host.
//!
//! - **Atomic steps.** Every operation that may write is one `BEGIN IMMEDIATE` transaction: it holds the write lock before
//!   it reads, so what it decided still holds when it writes (I1, I5). Reading never waits for writers (WAL).
//! - **Time** is the host's clock, read by SQLite once per transaction.
//! - **Durable.** `synchronous=FULL`: an answered write outlives a kill and a power cut, as far as the disk keeps its
//!   word. Attempt numbers and done markers are promises to others; a commit costs one fsync, and cron has few.
//! - **In turns.** Calls on slots that wait at the same time share a transaction, and so its sync: see `turn`.
//! - **Bounded.** A call ends within `op_timeout`. Waiting for another process takes at most four fifths of it.
//! - **Applied.** An error before the commit is [`Applied::No`](crate::store::Applied): the transaction is rolled back. An
//!   error of the commit itself is `Maybe`, except when the file was locked; so is a time-out of a call that was begun.
//! - **Replaced file.** Each call looks whether the path still names the open file; if not, it opens what is there now.
//! - **Rows are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod examine;
mod fault;
mod file;
mod lane;
mod locks;
mod messages;
mod turn;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use crate::clock::earlier;
use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::backend::Opened;
use crate::store::contract::OUTPUT_BYTES;
use crate::store::hints::Teller;
use crate::store::locks::LockHints;
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::session::{Session as _, values};
use crate::store::sql::slots::{self, Scope};
use crate::store::sql::{queues, registry};
use crate::store::state::SlotQuery;
use crate::store::{
    Applied, Capability, ErrorKind, Finding, HeartbeatReply, Intervention, JobEntry, LATEST_KEPT, Migration, NodeEntry,
    NodeReport, Op, OpenError, Pause, Reach, StoreClock, StoreError, StoreOptions, Trial, Wake, Wakeups,
};
use fault::into_error;
use lane::{Connector, Lane, OWN, Shared, Tx};
use turn::Job;

pub(in crate::store) use file::check;

/// How often a node that waits looks again: other processes' releases are not heard of.
const POLL: Duration = Duration::from_millis(250);

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "sqlite",
    reach: Reach::Host,
    clock: StoreClock::Host,
    push: false,
    poll: POLL,
    durable: true,
    expires_records: false,
    locks: true,
    tells_changes: false,
    output_bytes: OUTPUT_BYTES,
    messages: true,
};

/// Opening may have to recover the log of a process that was killed, and to wait for others that open the file.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// The longest wait for a lock, whatever the limit: SQLite counts it in milliseconds of 32 bits.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    turns: mpsc::Sender<Job>,
}

/// One call that does not share its transaction: what it is, and whether the commit of something written was sent.
struct OwnCall {
    op: Op,
    sent: AtomicBool,
}

impl OwnCall {
    const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    async fn commit(&self, tx: Tx<'_>) -> Result<(), SqlFault> {
        self.sent.store(tx.writes, Ordering::Release);
        tx.commit().await
    }

    fn applied(&self) -> Applied {
        if self.sent.load(Ordering::Acquire) { Applied::Maybe } else { Applied::No }
    }
}

impl SqliteStore {
    /// Opens the file, and makes it where there is none and the options let it: `sqlite` alone is the default file, `sqlite:PATH` another.
    /// It writes by a task of the runtime that opens it, and is of no use after that has ended.
    ///
    /// # Errors
    /// [`OpenError::Url`] when the url names no file. [`OpenError::Store`] when it cannot be used: on a network file
    /// system or of a newer version (`Unsupported`), no database (`Corrupt`), without permission (`Denied`, `ReadOnly`),
    /// no room (`Overloaded`), not there and not to be made (`Unavailable`).
    pub async fn open(url: &str, options: StoreOptions) -> Result<Self, OpenError> {
        let path = file::resolve(url, &|name| std::env::var_os(name))?;
        // A relative path would name another file after the process has changed its directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        let (turns, queue) = mpsc::channel(turn::QUEUE);
        let store = Self { shared: Arc::new(shared(path, options)), turns };
        let writer = &store.shared.writer;
        let opening = async { writer.hold(&store.shared.connector).await.map(drop) };
        store.within(OPEN_LIMIT, &OwnCall::new(Op::Open), writer, opening).await?;
        // It ends when the store is dropped, and its sender with it.
        tokio::spawn(turn::run(Arc::clone(&store.shared), queue));
        Ok(store)
    }

    /// Makes the file with its tables where there is none.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
        let path = file::resolve(url, &|name| std::env::var_os(name))?;
        let location = file::location(&path);
        let migrating = Connector::new(path, OPEN_LIMIT / 5 * 4, true);
        let done = tokio::time::timeout(OPEN_LIMIT, migrating.migrate()).await;
        let done = done.unwrap_or_else(|_| Err(timed_out(OPEN_LIMIT)));
        Ok(done.map_err(|fault| into_error(fault, Op::Open, Applied::Maybe, &location))?)
    }

    /// The file's absolute path.
    pub fn path(&self) -> &Path {
        self.shared.connector.path()
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    async fn within<T>(
        &self,
        limit: Duration,
        call: &OwnCall,
        lane: &Lane,
        work: impl Future<Output = Result<T, SqlFault>>,
    ) -> Result<T, StoreError> {
        let fault = match tokio::time::timeout(limit, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(fault)) => {
                lane.doubt(&fault);
                fault
            }
            Err(_) => {
                let fault = timed_out(limit);
                // Only a commit is given up together with its connection: a new one for each call would pile up threads
                // while the disk hangs.
                if call.applied() == Applied::Maybe {
                    lane.doubt(&fault);
                }
                fault
            }
        };
        Err(into_error(fault, call.op, call.applied(), &self.shared.location))
    }

    /// One rule on one slot, in its turn.
    async fn in_turn<T: Send + 'static>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, mut ticket) = Job::new(query, rule);
        let turn = async {
            if self.turns.send(job).await.is_err() {
                return Err((no_writer(), Applied::No));
            }
            (&mut ticket.reply).await.unwrap_or_else(|_| Err((no_writer(), Applied::Maybe)))
        };
        let (fault, applied) = match tokio::time::timeout(self.shared.limit, turn).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failed)) => failed,
            Err(_) => (timed_out(self.shared.limit), ticket.withdraw()),
        };
        Err(into_error(fault, op, applied, &self.shared.location))
    }
}

fn shared(path: PathBuf, options: StoreOptions) -> Shared {
    let location = file::location(&path);
    Shared {
        // What is left of the limit is for the work itself, once the lock is there.
        connector: Connector::new(path, (options.op_timeout / 5 * 4).min(LONGEST_WAIT), options.create),
        writer: Lane::default(),
        reader: Lane::default(),
        scope: Scope { namespace: options.namespace, retention: options.retention },
        limit: options.op_timeout,
        location,
        wakes: Teller::default(),
        lock_hints: LockHints::default(),
    }
}

fn no_writer() -> SqlFault {
    SqlFault::known(ErrorKind::Unavailable, "the store is closing".to_owned())
}

fn timed_out(limit: Duration) -> SqlFault {
    let message = format!("no answer within {limit:?}: the disk is slow, or another process keeps the file locked");
    SqlFault::known(ErrorKind::Timeout, message)
}

/// A call on the registry: takes the lane, begins to read or to write, works, commits. A closure cannot say that its
/// future may cross threads and borrows the transaction.
macro_rules! transaction {
    ($store:ident, $op:expr, $lane:ident.$begin:ident, |$tx:ident| $work:expr) => {{
        let call = OwnCall::new($op);
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

    async fn pause_known(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        transaction!(self, Op::Pauses, reader.read, |tx| registry::pause_known(&mut tx, &self.shared.scope, job))
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
        let scope = &self.shared.scope;
        transaction!(self, Op::Purge, writer.write, |tx| async {
            let latest = earlier(tx.now(), LATEST_KEPT);
            tx.execute(OWN.latest_purge, values![scope.namespace.as_str(), latest]).await?;
            queues::purge(&mut tx, scope).await?;
            registry::purge(&mut tx, scope).await
        })
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        transaction!(self, Op::Note, writer.write, |tx| registry::note(&mut tx, &self.shared.scope, pages))
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        transaction!(self, Op::Notes, reader.read, |tx| registry::notes(&mut tx, &self.shared.scope, slot))
    }

    async fn latest_known(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        transaction!(self, Op::Latest, reader.read, |tx| registry::latest(&mut tx, &self.shared.scope, jobs))
    }

    fn hints(&self) -> Wakeups {
        self.shared.wakes.subscribe()
    }
}

#[async_trait]
impl Opened for SqliteStore {
    async fn examine(&self) -> Vec<Finding> {
        self.look().await
    }

    async fn forget(&self, trial: &Trial) -> Reply<()> {
        transaction!(self, Op::Purge, writer.write, |tx| registry::forget(&mut tx, &self.shared.scope, trial))
    }
}

impl SqliteStore {
    fn tell_job(&self, job: &JobName, answer: &Intervention) {
        if *answer == Intervention::Applied {
            self.shared.wakes.tell(Wake::Job(job.clone()));
        }
    }
}
