//! The store, and the frame of every call: a transaction, its own or shared, within one time limit.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};

use super::fault::into_error;
use super::lane::{Connector, Lane, Shared, Tx};
use super::place;
use super::turn::{self, Job};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::Fault;
use crate::store::sql::slots::Scope;
use crate::store::state::SlotQuery;
use crate::store::{Applied, ErrorKind, Migration, Op, OpenError, StoreError, StoreOptions};

/// Opening may have to recover the log of a process that was killed, and to wait for others that open the file.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// The longest wait for a lock, whatever the limit: SQLite counts it in milliseconds of 32 bits.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 256;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) shared: Arc<Shared>,
    turns: mpsc::Sender<Job>,
}

/// One call that does not share its transaction: what it is, and whether the commit of something written was sent.
pub(super) struct Call {
    op: Op,
    sent: AtomicBool,
}

impl Call {
    pub(super) const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    pub(super) async fn commit(&self, tx: Tx<'_>) -> Result<(), Fault> {
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
        let path = place::resolve(url, &|name| std::env::var_os(name))?;
        // A relative path would name another file after the process has changed its directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        let (turns, queue) = mpsc::channel(turn::QUEUE);
        let store = Self { shared: Arc::new(shared(path, options)), turns };
        let writer = &store.shared.writer;
        let opening = async { writer.hold(&store.shared.connector).await.map(drop) };
        store.within(OPEN_LIMIT, &Call::new(Op::Open), writer, opening).await?;
        // It ends when the store is dropped, and its sender with it.
        tokio::spawn(turn::run(Arc::clone(&store.shared), queue));
        Ok(store)
    }

    /// Makes the file with its tables where there is none.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
        let path = place::resolve(url, &|name| std::env::var_os(name))?;
        let location = place::location(&path);
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
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        call: &Call,
        lane: &Lane,
        work: impl Future<Output = Result<T, Fault>>,
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
    pub(super) async fn in_turn<T: Send + 'static>(
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
    let location = place::location(&path);
    Shared {
        // What is left of the limit is for the work itself, once the lock is there.
        connector: Connector::new(path, (options.op_timeout / 5 * 4).min(LONGEST_WAIT), options.create),
        writer: Lane::default(),
        reader: Lane::default(),
        scope: Scope { namespace: options.namespace, retention: options.retention },
        limit: options.op_timeout,
        location,
        wakes: broadcast::Sender::new(HINTS),
    }
}

fn no_writer() -> Fault {
    Fault::known(ErrorKind::Unavailable, "the store is closing".to_owned())
}

fn timed_out(limit: Duration) -> Fault {
    let message = format!("no answer within {limit:?}: the disk is slow, or another process keeps the file locked");
    Fault::known(ErrorKind::Timeout, message)
}
