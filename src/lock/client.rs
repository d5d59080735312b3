//! The client: where locks are kept, who asks, and for how long a lease lasts. Asks nothing by itself.

use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::drive::Entropy;
use crate::job::{LockName, NodeName};
use crate::observe::{LogObserver, Observer};
use crate::resource::{AcquireRequest, Demands, LockRecord, OwnerId};
use crate::service::shutdown::Shutdown;
use crate::service::{BuildError, ShutdownError};
use crate::slot::Token;
use crate::store::{LockStore, StoreError};

/// The bounds of a lease, as for slots: a shorter one lapses between two renewals, a longer one keeps others out for a day.
const TTL: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(86_400);

/// How long a lease lasts unless said otherwise.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// After so many requests locks are removed that nobody has used for the store's retention.
const PURGE_EACH: u32 = 1_000;

/// How long a store that does not answer is asked.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// A client for the locks of one store and namespace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Locks {
    pub(super) shared: Arc<Client>,
    /// None where each request is its own owner.
    owner: Option<OwnerId>,
    label: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) patience: Duration,
    entropy: Entropy,
    node: NodeName,
    ttl: Duration,
    /// This process, to whom hints are addressed.
    pub(super) instance: Token,
    pub(super) observer: Arc<dyn Observer>,
    /// The tasks of its requests.
    pub(super) shutdown: Shutdown,
    /// A request has waited: hints are listened for from then on.
    pub(super) has_waited: AtomicBool,
    /// Requests that have ended.
    ended: AtomicU32,
}

impl Client {
    /// Now and then: whoever uses locks alone has no daemon that removes those that nobody needs any more.
    pub(super) fn is_time_to_purge(&self) -> bool {
        self.ended.fetch_add(1, Ordering::Relaxed) % PURGE_EACH == PURGE_EACH - 1
    }
}

/// Makes a [`Locks`].
#[derive(Debug)]
#[must_use]
pub struct LocksBuilder {
    store: Arc<dyn LockStore>,
    node: String,
    label: String,
    ttl: Duration,
    store_wait: Duration,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
}

impl LocksBuilder {
    /// How long a lease lasts unless renewed, 500 ms to a day; 30 s if not set. When this process dies, others go on after it. At least three
    /// times as long as one operation of the store may take ([`crate::StoreOptions::op_timeout`]), so that one that fails is made good.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long a store that does not answer is asked before a request fails; 2 s if not set. What waits in a queue is asked for at
    /// least as long as its TTL.
    pub const fn store_wait(mut self, span: Duration) -> Self {
        self.store_wait = span;
        self
    }

    /// What the locks are for, as others are told who wait for them.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Where time is read; the machine's clocks if not set. For tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The observer of grants, losses, doubts, long waits and late releases; the `tracing` log if not set. The events name no slot, and
    /// attempt 0.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// [`BuildError`] names what cannot be used.
    pub fn build(self) -> Result<Locks, BuildError> {
        let Self { store, node, label, ttl, store_wait: patience, clock, observer } = self;
        let node = NodeName::new(&node)?;
        if !TTL.contains(&ttl) {
            return Err(BuildError::Limit { what: "ttl", bounds: "500 ms to a day" });
        }
        let entropy = Entropy::from_system().map_err(BuildError::Random)?;
        let instance = entropy.token();
        let (shutdown, has_waited, ended) = (Shutdown::default(), AtomicBool::new(false), AtomicU32::new(0));
        let shared =
            Client { store, clock, patience, entropy, node, ttl, instance, observer, shutdown, has_waited, ended };
        Ok(Locks { shared: Arc::new(shared), owner: None, label: label.into() })
    }
}

impl Locks {
    /// A client of a process of this name, on an open store. Names are judged by [`LocksBuilder::build`]; give each process a name of
    /// its own, people read it.
    pub fn builder(store: Arc<dyn LockStore>, node: impl Into<String>) -> LocksBuilder {
        LocksBuilder {
            store,
            node: node.into(),
            label: String::new(),
            ttl: DEFAULT_TTL,
            store_wait: STORE_WAIT,
            clock: Arc::new(SystemClock),
            observer: Arc::new(LogObserver),
        }
    }

    /// One identity that may take a lock again while it holds it. Explicit, for tasks move between threads.
    ///
    /// Requests of one owner do not exclude each other: a mutex keeps no tasks apart that share an owner, and three times one permit weighs
    /// as much as one. Nor do they wait for those who asked meanwhile: an owner whose readings overlap without end keeps a writer out.
    pub fn owner(&self) -> Owner {
        self.owned_by(OwnerId::new(self.shared.entropy.token()))
    }

    /// The same for an identity that others know too: a program that was started under a lock by another one.
    pub fn owned_by(&self, owner: OwnerId) -> Owner {
        Owner { locks: Self { owner: Some(owner), ..self.clone() }, id: owner }
    }

    /// Ends every request of this client and of its clones, and returns once the store has confirmed it. Before a process ends it calls
    /// this: a lock that was only dropped may outlast the process for the TTL.
    ///
    /// Nothing more is asked for, and what waits leaves the queue: both answer [`LockError::ShutDown`](crate::lock::LockError::ShutDown).
    /// [`Held::token`](crate::lock::Held::token) is cancelled, and whoever holds has `grace` to drop or release the lock. A lock that is
    /// still held then stays held, for its work may go on: it lapses once the process has ended.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use cronward::{Locks, StoreOptions, open_locks};
    ///
    /// let locks = Locks::builder(open_locks("memory:", StoreOptions::default()).await?, "node-a").build()?;
    /// drop(locks.mutex("ledger")?.lock().await?);
    /// locks.shutdown(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ShutdownError`] where something is still held, or not confirmed, after `grace`.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), ShutdownError> {
        self.shared.shutdown.begin(grace).await
    }

    /// Every lock that is known: who holds, and who waits in which order.
    ///
    /// # Errors
    /// [`StoreError`] where the store does not answer.
    pub async fn list(&self) -> Result<Vec<LockRecord>, StoreError> {
        Ok(self.shared.store.locks(&[]).await?.1)
    }

    /// What is known of these locks, in this order: who holds, and who waits in which order.
    ///
    /// # Errors
    /// [`StoreError`] where the store does not answer.
    pub async fn show(&self, locks: &[LockName]) -> Result<Vec<LockRecord>, StoreError> {
        // None at all would name every lock.
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.shared.store.locks(locks).await?.1)
    }

    /// A request of this client, with a token that no other has.
    pub(super) fn asking(&self, demands: Demands, queue: bool) -> AcquireRequest {
        let Client { entropy, node, ttl, instance, .. } = &*self.shared;
        let request = AcquireRequest::new(entropy.token(), node.clone(), *instance, *ttl, demands);
        let owner = self.owner.unwrap_or(request.owner);
        AcquireRequest { owner, queue, ..request }.labelled(&self.label)
    }

    /// The same client, for something else.
    pub(super) fn labelled(self, label: &str) -> Self {
        Self { label: label.into(), ..self }
    }
}

/// A client all of whose requests are one owner's: it may take again what it holds, and never waits for itself.
///
/// ```
/// use std::sync::Arc;
///
/// use cronward::StoreOptions;
/// use cronward::lock::{LockError, Locks};
/// use cronward::testing::{MemoryStore, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)));
/// let locks = Locks::builder(store, "node-a").build()?;
/// let owner = locks.owner();
/// let schema = owner.rw_lock("schema")?;
/// let outer = schema.read().await?;
/// // A lone reader may write; beside another reader it is told so, in place of waiting for itself.
/// let inner = schema.write().await?;
/// inner.release().await?;
/// let other = locks.rw_lock("schema")?.read().await?;
/// assert!(matches!(schema.write().await, Err(LockError::WouldWaitForItself)));
/// # drop((outer, other));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Owner {
    locks: Locks,
    id: OwnerId,
}

impl Owner {
    /// The identity: whoever is told it can be the same owner elsewhere ([`Locks::owned_by`]).
    pub const fn id(&self) -> OwnerId {
        self.id
    }
}

impl Deref for Owner {
    type Target = Locks;

    fn deref(&self) -> &Locks {
        &self.locks
    }
}
