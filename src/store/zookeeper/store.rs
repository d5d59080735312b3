//! The store, and the frame of every call: one time limit, and whether it may have been applied.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zookeeper_client::Error;

use super::fault::Fault;
use super::link::{Link, Session};
use super::paths::Paths;
use super::target::Target;
use super::time::LeaderClock;
use super::watch::Listener;
use crate::clock::Clock;
use crate::store::document::Moment;
use crate::store::{Op, OpenError, StoreError, StoreOptions, redact};

/// A store in one ZooKeeper ensemble.
#[derive(Debug)]
pub struct ZookeeperStore {
    pub(super) paths: Paths,
    pub(super) link: Arc<Link>,
    pub(super) listener: Listener,
    pub(super) location: String,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    leader: LeaderClock,
}

/// One call: what it is, and whether something was sent that may be applied and has no answer.
pub(super) struct Call {
    op: Op,
    sent: AtomicBool,
}

impl Call {
    pub(super) const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    pub(super) fn sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(super) fn answered(&self) {
        self.sent.store(false, Ordering::Release);
    }
}

impl ZookeeperStore {
    /// Opens the store at `zookeeper://` (docs/stores.md has the forms). Only the url is judged here: no session is begun
    /// before the first operation, so an ensemble that is down is that one's error.
    ///
    /// # Errors
    /// [`OpenError::Url`] when the url cannot be used.
    #[allow(clippy::unused_async, reason = "every store is opened by awaiting; others do connect")]
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let target = Target::parse(url)?;
        let paths = Paths::new(&target.chroot, &options.namespace);
        let link = Arc::new(Link::new(target.clone(), paths.clone()));
        // A session of its own: a busy one would hold hints up.
        let listener = Listener::new(Link::new(target, paths.clone()), paths.clone());
        let leader = LeaderClock::default();
        Ok(Self { paths, link, listener, location: redact(url), options, clock, leader })
    }

    /// Now, by the leader's clock.
    pub(super) async fn moment(&self, session: &Session, anew: bool) -> Result<Moment, Fault> {
        let measure = async || match self.stamp(session).await {
            Err(Error::NoNode) => {
                self.link.prepare(&session.client).await?;
                Ok(self.stamp(session).await?)
            }
            stamp => Ok::<_, Fault>(stamp?),
        };
        let now = self.leader.now(&*self.clock, (session.generation, anew), measure).await?;
        Ok(Moment { now, retention: self.options.retention })
    }

    async fn stamp(&self, session: &Session) -> Result<i64, Error> {
        session.client.set_data(&self.paths.clock(), b"", None).await.map(|stat| stat.mtime)
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(super) async fn within<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        let limit = self.options.op_timeout;
        let answer = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(Fault::timed_out(limit)));
        answer.map_err(|fault| fault.into_error(call.op, call.sent.load(Ordering::Acquire), &self.location))
    }
}
