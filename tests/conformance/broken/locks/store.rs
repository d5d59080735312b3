//! The locks of the specification with a flaw: every operation goes through it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::broadcast;

use cronward::clock::Clock;
use cronward::job::{LockName, Namespace};
use cronward::resource::{
    AcquireRequest, Acquired, LockExit, LockHint, LockHold, LockRecord, LockRelease, LockRenewal,
};
use cronward::slot::{Audit, Token};
use cronward::store::conformance::{LockProbe, MemorySetup, Probe, Scale, Setup};
use cronward::store::layer::Reply;
use cronward::store::memory::{Ledger, MemoryStore};
use cronward::store::{Intervention, LockStore, LockWakeups, Store};

/// Requests by their tokens, as they were sent last.
pub type Asked = BTreeMap<Token, AcquireRequest>;

/// Hints: the process, and its request.
pub type Hints = Vec<(Token, Token)>;

/// What is broken. Each method is the right one unless a flaw says otherwise.
pub trait LockFlaw: Debug + Send + Sync + 'static {
    /// `acquire`; every request that was sent before is known.
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _asked: &Asked, now: DateTime<Utc>) -> Acquired {
        ledger.acquire(request, now)
    }

    /// `renew_lock`.
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        ledger.renew_lock(hold, now)
    }

    /// `release`.
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        ledger.release(exit, now)
    }

    /// `evict`.
    fn evict(
        &self,
        ledger: &mut Ledger,
        (lock, token): (&LockName, Token),
        audit: &Audit,
        now: DateTime<Utc>,
    ) -> Intervention {
        ledger.evict(lock, token, audit, now)
    }

    /// `locks`.
    fn records(&self, ledger: &Ledger, names: &[LockName], now: DateTime<Utc>) -> Vec<LockRecord> {
        ledger.lock_records(names, now)
    }

    /// Who is told, of those who are to be.
    fn hints(&self, _ledger: &Ledger, told: Hints, _asked: &Asked, _now: DateTime<Utc>) -> Hints {
        told
    }

    /// The namespace in which this connection, of several, works instead.
    fn namespace(&self, namespace: &Namespace, _connection: u64) -> Namespace {
        namespace.clone()
    }
}

/// What all connections to a flawed store share.
#[derive(Debug, Default)]
struct Shared {
    asked: Mutex<Asked>,
    listeners: Mutex<HashMap<Token, broadcast::Sender<LockHint>>>,
    connections: AtomicU64,
}

/// Connections to a ledger whose locks have a flaw.
#[derive(Debug)]
pub struct BrokenLocks {
    right: MemorySetup,
    flaw: Arc<dyn LockFlaw>,
    shared: Arc<Shared>,
}

impl BrokenLocks {
    /// An empty ledger with this flaw.
    pub fn new(flaw: Arc<dyn LockFlaw>, clock: Arc<dyn Clock>) -> Self {
        Self { right: MemorySetup::new(clock), flaw, shared: Arc::default() }
    }
}

#[async_trait]
impl Setup for BrokenLocks {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        self.right.connect(namespace).await
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        self.right.probe(namespace).await
    }

    async fn connect_locks(&self, namespace: &Namespace) -> Result<Arc<dyn LockStore>, String> {
        let connection = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let right = self.right.room(&self.flaw.namespace(namespace, connection));
        Ok(Arc::new(Flawed { right, flaw: Arc::clone(&self.flaw), shared: Arc::clone(&self.shared) }))
    }

    async fn lock_probe(&self, namespace: &Namespace) -> Result<Box<dyn LockProbe>, String> {
        self.right.lock_probe(namespace).await
    }

    /// Impatient: a hint that does not come from memory at once does not come.
    fn scale(&self) -> Scale {
        Scale { patience: Duration::from_secs(2), ..Scale::default() }
    }
}

/// One connection.
#[derive(Debug)]
struct Flawed {
    right: MemoryStore,
    flaw: Arc<dyn LockFlaw>,
    shared: Arc<Shared>,
}

impl Flawed {
    fn apply<T>(&self, work: impl FnOnce(&dyn LockFlaw, &mut Ledger, &mut Asked, DateTime<Utc>) -> T) -> T {
        self.right.with_ledger(|ledger, now| {
            let mut asked = self.shared.asked.lock().unwrap();
            let answer = work(&*self.flaw, ledger, &mut asked, now);
            let due = ledger.take_lock_wakes();
            let listeners = self.shared.listeners.lock().unwrap();
            for (instance, token) in self.flaw.hints(ledger, due, &asked, now) {
                // Without a listener nobody hears.
                let _ = listeners.get(&instance).map(|listener| listener.send(LockHint::Ready(token)));
            }
            answer
        })
    }
}

#[async_trait]
impl LockStore for Flawed {
    async fn acquire(&self, request: &AcquireRequest) -> Reply<Acquired> {
        Ok(self.apply(|flaw, ledger, asked, now| {
            let answer = flaw.acquire(ledger, request, asked, now);
            asked.insert(request.token, request.clone());
            answer
        }))
    }

    async fn renew_lock(&self, hold: &LockHold) -> Reply<LockRenewal> {
        Ok(self.apply(|flaw, ledger, _, now| flaw.renew(ledger, hold, now)))
    }

    async fn release(&self, exit: &LockExit) -> Reply<LockRelease> {
        Ok(self.apply(|flaw, ledger, _, now| flaw.release(ledger, exit, now)))
    }

    async fn locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        Ok(self.apply(|flaw, ledger, _, now| (now, flaw.records(ledger, names, now))))
    }

    async fn evict(&self, lock: &LockName, token: Token, audit: &Audit) -> Reply<Intervention> {
        Ok(self.apply(|flaw, ledger, _, now| flaw.evict(ledger, (lock, token), audit, now)))
    }

    fn listen(&self, instance: Token) -> LockWakeups {
        let mut listeners = self.shared.listeners.lock().unwrap();
        listeners.entry(instance).or_insert_with(|| broadcast::channel(256).0).subscribe()
    }

    fn lock_poll(&self) -> Option<Duration> {
        None
    }

    async fn purge_locks(&self) -> Reply<u64> {
        Ok(0)
    }
}
