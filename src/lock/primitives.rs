//! A mutex, a read-write lock and a semaphore: names for what is asked of one lock. Each is cheap to clone and holds nothing itself.

use crate::job::{LockName, NameError};
use crate::lock::driver::acquire;
use crate::lock::{Held, LockError, Locks, RequestError, TryLockError};
use crate::resource::{Demand, DemandError, Demands, LockRelease};

impl Locks {
    /// A lock that one holds at a time.
    ///
    /// # Errors
    /// [`NameError`] where the name is not allowed.
    pub fn mutex(&self, name: &str) -> Result<Mutex, NameError> {
        Ok(Mutex { locks: self.clone(), name: LockName::new(name)? })
    }

    /// A lock that readers share and a writer has alone.
    ///
    /// # Errors
    /// [`NameError`] where the name is not allowed.
    pub fn rw_lock(&self, name: &str) -> Result<RwLock, NameError> {
        Ok(RwLock { locks: self.clone(), name: LockName::new(name)? })
    }

    /// A pool of `of` permits. Where others name another number for the same lock, the smallest counts of those who stand in front.
    ///
    /// # Errors
    /// [`RequestError`] where the name is not allowed, or there is no permit.
    pub fn semaphore(&self, name: &str, of: u32) -> Result<Semaphore, RequestError> {
        let name = LockName::new(name)?;
        if of == 0 {
            return Err(DemandError::NoPermits { lock: name }.into());
        }
        Ok(Semaphore { locks: self.clone(), name, of })
    }
}

/// A lock that one holds at a time.
#[derive(Clone, Debug)]
pub struct Mutex {
    locks: Locks,
    name: LockName,
}

impl Mutex {
    /// Waits its turn, in the order in which the store was asked, and without bound: bound it with `tokio::time::timeout`.
    ///
    /// Cancel safety: dropping the future leaves the queue and loses the place; nothing stays held.
    ///
    /// # Errors
    /// [`LockError`]; that others hold it is none.
    pub async fn lock(&self) -> Result<Held, LockError> {
        wait(&self.locks, Demand::exclusive(self.name.clone())).await
    }

    /// Holds at once or not at all, and leaves no trace then.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where others hold it, or asked before.
    pub async fn try_lock(&self) -> Result<Held, TryLockError> {
        at_once(&self.locks, Demand::exclusive(self.name.clone())).await
    }
}

/// A lock that readers share and a writer has alone. Readers behind a waiting writer wait for it.
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
/// let schema = locks.rw_lock("schema")?;
/// let (one, other) = (schema.read().await?, schema.read().await?);
/// assert!(schema.try_write().await.is_err());
/// one.release().await?;
/// other.release().await?;
/// let writing = schema.write().await?;
/// assert!(schema.try_read().await.is_err());
/// # drop(writing);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    locks: Locks,
    name: LockName,
}

impl RwLock {
    /// Shares it, as [`Mutex::lock`] waits.
    ///
    /// # Errors
    /// [`LockError`]; that another writes is none.
    pub async fn read(&self) -> Result<Held, LockError> {
        wait(&self.locks, Demand::shared(self.name.clone())).await
    }

    /// Has it alone, as [`Mutex::lock`] waits.
    ///
    /// # Errors
    /// [`LockError`]; that others hold it is none.
    pub async fn write(&self) -> Result<Held, LockError> {
        wait(&self.locks, Demand::exclusive(self.name.clone())).await
    }

    /// Shares it at once or not at all.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where another writes, or asked before.
    pub async fn try_read(&self) -> Result<Held, TryLockError> {
        at_once(&self.locks, Demand::shared(self.name.clone())).await
    }

    /// Has it alone at once or not at all.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where others hold it, or asked before.
    pub async fn try_write(&self) -> Result<Held, TryLockError> {
        at_once(&self.locks, Demand::exclusive(self.name.clone())).await
    }
}

/// A pool of permits.
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
/// let gpus = locks.semaphore("gpu", 4)?;
/// let three = gpus.acquire_many(3).await?;
/// let one = gpus.try_acquire().await?;
/// assert!(gpus.try_acquire().await.is_err());
/// // Permits are held like any lock: they come back when they are released, or dropped, or after the TTL.
/// three.release().await?;
/// let two = gpus.try_acquire_many(2).await?;
/// # drop((one, two));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    locks: Locks,
    name: LockName,
    of: u32,
}

impl Semaphore {
    /// One permit, as [`Mutex::lock`] waits.
    ///
    /// # Errors
    /// [`LockError`]; that none is free is none.
    pub async fn acquire(&self) -> Result<Held, LockError> {
        self.acquire_many(1).await
    }

    /// So many permits, all at once. Nobody who asked later is served before, however little they want.
    ///
    /// # Errors
    /// [`LockError::Demand`] for none, and for more than there are.
    pub async fn acquire_many(&self, permits: u32) -> Result<Held, LockError> {
        wait(&self.locks, Demand::permits(self.name.clone(), permits, self.of)?).await
    }

    /// One permit at once or not at all.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where none is free, or others asked before.
    pub async fn try_acquire(&self) -> Result<Held, TryLockError> {
        self.try_acquire_many(1).await
    }

    /// So many permits at once or not at all.
    ///
    /// # Errors
    /// [`TryLockError::Busy`] where they are not free, or others asked before.
    pub async fn try_acquire_many(&self, permits: u32) -> Result<Held, TryLockError> {
        let demand = Demand::permits(self.name.clone(), permits, self.of).map_err(LockError::from)?;
        at_once(&self.locks, demand).await
    }
}

impl Held {
    /// Goes on sharing what was held alone, or in part. No writer comes in between: it holds both for a moment, and then the share.
    ///
    /// Cancel safety: dropping the future releases all of it.
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
    /// let schema = locks.rw_lock("schema")?;
    /// let writing = schema.write().await?;
    /// let written = writing.fence();
    /// let reading = writing.downgrade().await?;
    /// assert!(reading.fence() > written);
    /// let other = schema.try_read().await?;
    /// # drop(other);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LockError::Lost`] where it was not held until then: somebody may have written. Any error releases all of it.
    pub async fn downgrade(self) -> Result<Self, LockError> {
        let shares = self.hold.demands.iter().map(|demand| Demand::shared(demand.lock().clone())).collect();
        let own = self.locks.owned_by(self.owner());
        let shared = match acquire(&own, Demands::new(shares)?, false).await {
            Ok(shared) => shared,
            Err(TryLockError::Busy { .. }) => return Err(LockError::Lost),
            Err(TryLockError::Lock(error)) => return Err(error),
        };
        match self.release().await? {
            LockRelease::Released => Ok(shared),
            LockRelease::Expired | LockRelease::Overtaken { .. } => Err(LockError::Lost),
        }
    }
}

async fn wait(locks: &Locks, demand: Demand) -> Result<Held, LockError> {
    Ok(acquire(locks, Demands::from(demand), true).await?)
}

async fn at_once(locks: &Locks, demand: Demand) -> Result<Held, TryLockError> {
    acquire(locks, Demands::from(demand), false).await
}
