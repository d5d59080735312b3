//! The store, and the frame of every call: a connection, a step that is tried again while others come first, one limit.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::pool::{Lane, Pool};
use super::{Dialect, Isolation, Sent};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::Fault;
use crate::store::sql::slots::{self, Loaded, Scope, SlotWrite};
use crate::store::state::SlotQuery;
use crate::store::{Applied, ErrorKind, Op, StoreError, StoreOptions};

/// How often a call begins anew because others came first. Each time somebody else's change was written, so that many
/// nodes at one slot get on; the time limit ends it earlier on a slow server.
pub(super) const TRIES: u32 = 100;

/// A store in a database server.
#[derive(Debug)]
pub(in crate::store::sql) struct ServerStore<D: Dialect> {
    pub(super) dialect: D,
    pool: Pool<D>,
    pub(super) scope: Scope,
    limit: Duration,
    pub(super) location: String,
}

/// One call: what it is, how far it came, and whether something was sent whose outcome is not known.
pub(super) struct Call {
    op: Op,
    asked: AtomicBool,
    sent: AtomicBool,
}

impl Call {
    pub(super) const fn new(op: Op) -> Self {
        Self { op, asked: AtomicBool::new(false), sent: AtomicBool::new(false) }
    }

    /// It has a connection: what is waited for from now on is the server's answer.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    fn send(&self) {
        self.sent.store(true, Ordering::Release);
    }

    /// The server said that nothing of it was written.
    fn settle(&self) {
        self.sent.store(false, Ordering::Release);
    }

    fn applied(&self) -> Applied {
        if self.sent.load(Ordering::Acquire) { Applied::Maybe } else { Applied::No }
    }
}

/// How a try ended that did not fail for good.
pub(super) enum Tried<T> {
    Answered(T),
    /// Somebody else came first; nothing was written.
    Again,
}

impl<D: Dialect> ServerStore<D> {
    /// A store that does not connect before its first call.
    pub(in crate::store::sql) fn new(dialect: D, location: String, options: StoreOptions) -> Self {
        Self {
            dialect,
            pool: Pool::new(options.op_timeout),
            scope: Scope { namespace: options.namespace, retention: options.retention },
            limit: options.op_timeout,
            location,
        }
    }

    pub(super) async fn lane(&self) -> Result<Lane<'_, D>, Fault> {
        self.pool.take().await
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(super) async fn within<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        let answers = self.pool.answers();
        let fault = match tokio::time::timeout(self.limit, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(fault)) => fault,
            Err(_) => {
                let message = if call.asked.load(Ordering::Acquire) {
                    // A link that swallows everything looks like this: the idle connections may be of the same kind. Where
                    // others were answered meanwhile the server is slow, and would be slower with all to be made anew.
                    if self.pool.answers() == answers {
                        self.pool.forget();
                    }
                    format!("no answer within {:?}", self.limit)
                } else {
                    format!("all its connections were busy for {:?}", self.limit)
                };
                Fault::known(ErrorKind::Timeout, message)
            }
        };
        if matches!(&fault, Fault::Sql(error) if D::sent(error) == Sent::Unknown) {
            self.pool.forget();
        }
        Err(fault.into_error(call.op, call.applied(), &self.location, D::meaning))
    }

    /// One rule on one slot.
    pub(super) async fn step<T: Send>(
        &self,
        op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let call = Call::new(op);
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

    /// Reads the slot. A connection that has died while it was idle is made anew.
    async fn load(&self, lane: &mut Lane<'_, D>, query: &SlotQuery) -> Result<Loaded, Fault> {
        match slots::load(lane.session(&self.dialect).await?, &self.scope, query).await {
            Err(Fault::Sql(error)) if lane.is_reused() && D::sent(&error) == Sent::Unknown => {
                lane.renew();
                slots::load(lane.session(&self.dialect).await?, &self.scope, query).await
            }
            done => done,
        }
    }

    async fn save(&self, lane: &mut Lane<'_, D>, call: &Call, write: &SlotWrite) -> Result<Tried<()>, Fault> {
        if write.change.is_none() {
            return Ok(Tried::Answered(()));
        }
        let session = lane.session(&self.dialect).await?;
        call.send();
        match D::write(session, &self.scope, write, self.limit).await {
            Ok(true) => Ok(Tried::Answered(())),
            Ok(false) => {
                call.settle();
                Ok(Tried::Again)
            }
            Err(fault) => self.failed(lane, call, fault).await,
        }
    }

    /// What a failed write comes to.
    async fn failed<T>(&self, lane: &mut Lane<'_, D>, call: &Call, fault: Fault) -> Result<Tried<T>, Fault> {
        let Fault::Sql(error) = &fault else {
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
                D::roll_back(lane.session(&self.dialect).await?).await?;
                Ok(Tried::Again)
            }
        }
    }

    /// Begins a transaction. A connection that has died while it was idle is made anew.
    pub(super) async fn begin<'l>(
        &self,
        lane: &'l mut Lane<'_, D>,
        isolation: Isolation,
    ) -> Result<&'l mut D::Session, Fault> {
        match D::begin(lane.session(&self.dialect).await?, isolation).await {
            Err(Fault::Sql(error)) if lane.is_reused() && D::sent(&error) == Sent::Unknown => {
                lane.renew();
                D::begin(lane.session(&self.dialect).await?, isolation).await?;
            }
            done => done?,
        }
        lane.session(&self.dialect).await
    }

    /// Ends a transaction: commits what went well; what the server rolled back is tried again.
    pub(super) async fn end<T>(
        &self,
        lane: &mut Lane<'_, D>,
        call: &Call,
        answer: Result<T, Fault>,
        isolation: Isolation,
    ) -> Result<Tried<T>, Fault> {
        let ended = match answer {
            Ok(answer) => {
                if isolation == Isolation::Committed {
                    call.send();
                }
                D::commit(lane.session(&self.dialect).await?).await.map(|()| answer).map_err(Fault::Sql)
            }
            Err(fault) => Err(fault),
        };
        match ended {
            Ok(answer) => Ok(Tried::Answered(answer)),
            Err(fault) => self.failed(lane, call, fault).await,
        }
    }
}

pub(super) fn contended() -> Fault {
    Fault::known(ErrorKind::Overloaded, "too many others change the same at the same time".to_owned())
}
