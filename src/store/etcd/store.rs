//! The store: how it is opened, and what time it is.

use std::future::Future;
use std::sync::Arc;

use chrono::SubsecRound;

use super::api::{LeaseId, Nothing, method};
use super::fault::Fault;
use super::keys::Keys;
use super::link::Link;
use super::target::Target;
use super::watch::Listener;
use crate::clock::Clock;
use crate::store::backend::Files;
use crate::store::known::Known;
pub(super) use crate::store::shelf::Call;
use crate::store::shelf::Framed;
use crate::store::state::Moment;
use crate::store::{OpenError, StoreError, StoreOptions, redact};

/// A store in one etcd cluster.
#[derive(Debug)]
pub struct EtcdStore {
    pub(super) keys: Keys,
    pub(super) link: Arc<Link>,
    pub(super) listener: Listener,
    pub(super) options: StoreOptions,
    pub(super) location: String,
    pub(super) known: Known,
    clock: Arc<dyn Clock>,
}

impl EtcdStore {
    /// Opens the store at `etcd://` or `etcds://` (docs/stores.md has the forms). Only the url is judged here: no connection
    /// is made before the first operation, so a cluster that is down is that one's error.
    ///
    /// # Errors
    /// [`OpenError::Url`] when the url cannot be used, or a file that it names cannot be read.
    #[allow(clippy::unused_async, reason = "every store is opened by awaiting; others do connect")]
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let keys = Keys::new(&options.namespace);
        let link = Arc::new(Link::new(Target::parse(url, options.op_timeout, Files::Read)?, options.op_timeout));
        let listener = Listener::new(link.another(), keys.clone());
        Ok(Self { keys, link, listener, location: redact(url), known: Known::default(), options, clock })
    }

    /// Now, as this node has it, in the milliseconds that are stored.
    pub(super) fn moment(&self) -> Moment {
        Moment { now: self.clock.now().wall.trunc_subsecs(3), retention: self.options.retention }
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(super) async fn within<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        call.within(self.frame(), work).await
    }

    /// Gives up an etcd lease that nothing stands under, in the background. Should that fail, it lapses by itself.
    pub(super) fn revoke(&self, lease: i64) {
        let link = Arc::clone(&self.link);
        tokio::spawn(async move {
            if let Err(error) = link.call::<_, Nothing>(method::LEASE_REVOKE, LeaseId { id: lease }).await {
                tracing::debug!(lease, %error, "an etcd lease that is not needed is left to lapse");
            }
        });
    }
}
