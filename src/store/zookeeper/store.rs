//! The store: how it is opened, and what time it is.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use zookeeper_client::Error;

use super::fault::Fault;
use super::link::{Link, Session};
use super::paths::Paths;
use super::target::Target;
use super::time::LeaderClock;
use super::watch::Listener;
use crate::clock::Clock;
pub(super) use crate::store::shelf::Call;
use crate::store::shelf::Framed;
use crate::store::state::Moment;
use crate::store::{OpenError, StoreError, StoreOptions, redact};

/// A store in one ZooKeeper ensemble.
#[derive(Debug)]
pub struct ZookeeperStore {
    pub(super) paths: Paths,
    pub(super) link: Arc<Link>,
    pub(super) listener: Listener,
    pub(super) location: String,
    pub(super) options: StoreOptions,
    /// The last session that is known to have come after one that held leases.
    pub(super) doubted: AtomicU64,
    clock: Arc<dyn Clock>,
    leader: LeaderClock,
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
        let (location, doubted) = (redact(url), AtomicU64::default());
        Ok(Self { paths, link, listener, location, options, doubted, clock, leader })
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
        call.within(self.frame(), work).await
    }
}
