//! Several locks in one request: all of them in one step, or none.

use crate::job::LockName;
use crate::lock::driver::acquire;
#[cfg(feature = "daemon")]
use crate::lock::driver::acquire_until;
use crate::lock::{Held, LockError, Locks, RequestError, TryLockError};
use crate::resource::{Demand, Demands};

impl Locks {
    /// Several locks in one step: all of them, or none.
    pub fn request(&self) -> LockRequest {
        LockRequest { locks: self.clone(), demands: Vec::new() }
    }
}

/// What one request asks for. One to sixteen locks, each once.
///
/// ```
/// use std::sync::Arc;
///
/// use cronward::StoreOptions;
/// use cronward::lock::Locks;
/// use cronward::testing::{MemoryStore, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)));
/// let locks = Locks::builder(store, "node-a").build()?;
/// let report = || locks.request().exclusive("report")?.shared("schema")?.permits("gpu", 1, 4);
/// let held = report()?.label("monthly").lock().await?;
/// assert!(report()?.try_lock().await.is_err(), "one of the three is not free");
/// assert!(locks.mutex("report")?.try_lock().await.is_err());
/// held.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LockRequest {
    locks: Locks,
    demands: Vec<Demand>,
}

impl LockRequest {
    /// What it is for, as others are told who wait for it.
    pub fn label(self, label: &str) -> Self {
        Self { locks: self.locks.labelled(label), ..self }
    }

    /// This lock, and nobody else at the same time.
    ///
    /// # Errors
    /// [`RequestError`] for a name that is not allowed.
    pub fn exclusive(self, name: &str) -> Result<Self, RequestError> {
        let name = LockName::new(name)?;
        Ok(self.with(Demand::exclusive(name)))
    }

    /// This lock, beside others that share it.
    ///
    /// # Errors
    /// [`RequestError`] for a name that is not allowed.
    pub fn shared(self, name: &str) -> Result<Self, RequestError> {
        let name = LockName::new(name)?;
        Ok(self.with(Demand::shared(name)))
    }

    /// So many permits of this pool of `of`.
    ///
    /// # Errors
    /// [`RequestError`] for a name that is not allowed, for no permit, and for more than there are.
    pub fn permits(self, name: &str, permits: u32, of: u32) -> Result<Self, RequestError> {
        let demand = Demand::permits(LockName::new(name)?, permits, of)?;
        Ok(self.with(demand))
    }

    fn with(mut self, demand: Demand) -> Self {
        self.demands.push(demand);
        self
    }

    /// These demands.
    #[cfg(feature = "daemon")]
    pub(crate) fn demanding(self, demands: &Demands) -> Self {
        demands.iter().cloned().fold(self, Self::with)
    }

    /// Waits until all of them can be held, or until `end`, and then none is held: others hold them. Where it does not hold, it has left the
    /// queue before this returns: for a process that ends next.
    ///
    /// # Errors
    /// As [`LockRequest::try_lock`], which this is where `queue` is false. That of the store, too, where it has failed since it last said
    /// that others hold them, or is away at `end`.
    #[cfg(feature = "daemon")]
    pub(crate) async fn lock_until(
        self,
        queue: bool,
        end: impl Future<Output = ()>,
    ) -> Result<Option<Held>, TryLockError> {
        let demands = Demands::new(self.demands).map_err(LockError::from)?;
        acquire_until(&self.locks, demands, queue, end).await
    }

    /// Waits until all of them can be held, in turn; as [`crate::lock::Mutex::lock`].
    ///
    /// # Errors
    /// [`LockError::Demand`] for no lock, for too many, and for one that is named twice.
    pub async fn lock(self) -> Result<Held, LockError> {
        Ok(acquire(&self.locks, Demands::new(self.demands)?, true).await?)
    }

    /// Holds all of them at once, or none.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where one of them is not free.
    pub async fn try_lock(self) -> Result<Held, TryLockError> {
        let demands = Demands::new(self.demands).map_err(LockError::from)?;
        acquire(&self.locks, demands, false).await
    }
}
