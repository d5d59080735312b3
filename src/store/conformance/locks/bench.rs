//! A case about locks, and what it works with: connections, a probe, and the words made short, which check nothing themselves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::job::{LockName, Namespace, NodeName};
use crate::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockEntry, LockHint, LockHold, LockHolder, LockRelease, OwnerId,
};
use crate::slot::Token;
use crate::store::conformance::setup::LockProbe;
use crate::store::conformance::{CaseOutcome, Failure, Setup};
use crate::store::{LockStore, LockWakeups};

type LockRun = for<'a> fn(&'a LockBench) -> Pin<Box<dyn Future<Output = CaseOutcome> + 'a>>;

/// A claim about every store that keeps locks.
#[derive(Clone, Copy)]
pub struct LockCase {
    /// The claim, after its group: `locks::exclusive_excludes`.
    pub name: &'static str,
    /// The invariants that it checks, as `docs/locks.md` numbers them.
    pub invariants: &'static [&'static str],
    pub(super) run: LockRun,
}

impl fmt::Debug for LockCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.invariants)
    }
}

/// A case from an `async fn(&LockBench) -> CaseOutcome` and its invariants.
macro_rules! lock_case {
    ($run:ident $(, $invariant:ident)*) => {
        $crate::store::conformance::locks::LockCase {
            name: concat!("locks::", stringify!($run)),
            invariants: &[$(stringify!($invariant)),*],
            run: |bench| Box::pin($run(bench)),
        }
    };
}
pub(super) use lock_case;

/// TTL of entries: longer than any case takes.
pub(super) const TTL: Duration = Duration::from_secs(60);

/// One case's connections and namespace.
pub struct LockBench {
    /// The connection that most cases use.
    pub store: Arc<dyn LockStore>,
    /// Access behind the store's back.
    pub probe: Box<dyn LockProbe>,
    setup: Arc<dyn Setup>,
    namespace: Namespace,
    tokens: AtomicU64,
}

impl LockBench {
    /// Opens an empty namespace.
    pub async fn open(setup: Arc<dyn Setup>, namespace: &str) -> Result<Self, Failure> {
        let namespace = Namespace::new(namespace).map_err(|error| Failure::from(error.to_string()))?;
        let store = setup.connect_locks(&namespace).await?;
        let probe = setup.lock_probe(&namespace).await?;
        probe.wipe().await?;
        Ok(Self { store, probe, setup, namespace, tokens: AtomicU64::new(1) })
    }

    /// Another connection to the same data.
    pub async fn another(&self) -> Result<Arc<dyn LockStore>, Failure> {
        Ok(self.setup.connect_locks(&self.namespace).await?)
    }

    /// A connection to another namespace of the same store.
    pub async fn neighbour(&self) -> Result<Arc<dyn LockStore>, Failure> {
        let beside = Namespace::new(&format!("{}.b", self.namespace)).map_err(|error| error.to_string())?;
        self.setup.lock_probe(&beside).await?.wipe().await?;
        Ok(self.setup.connect_locks(&beside).await?)
    }

    /// A token that no other request of this case has.
    pub fn token(&self) -> Token {
        let index = self.tokens.fetch_add(1, Ordering::Relaxed);
        Token::from_bits(u128::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    /// A request of a node, with a fresh token, that waits.
    pub fn request(&self, node: &str, demands: &[Demand]) -> Result<AcquireRequest, Failure> {
        let node = NodeName::new(node).map_err(|error| error.to_string())?;
        let demands = Demands::new(demands.to_vec()).map_err(|error| error.to_string())?;
        let instance = Token::from_bits(u128::from(self.tokens.load(Ordering::Relaxed)) << 64);
        Ok(AcquireRequest::new(self.token(), node, instance, TTL, demands))
    }

    /// The same for an owner.
    pub fn owned(&self, owner: &str, node: &str, demands: &[Demand]) -> Result<AcquireRequest, Failure> {
        Ok(AcquireRequest { owner: OwnerId::of_text(owner), ..self.request(node, demands)? })
    }

    /// Asks, and holds.
    pub async fn hold(&self, request: &AcquireRequest) -> Result<LockHold, Failure> {
        match self.store.acquire(request).await? {
            Acquired::Held { fence, places, .. } => Ok(request.granted(fence, places)),
            other => Err(Failure::from(format!("{} {}: {other:?}, and not held", request.node, request.demands))),
        }
    }

    /// A fresh request that holds.
    pub async fn take(&self, node: &str, demands: &[Demand]) -> Result<LockHold, Failure> {
        self.hold(&self.request(node, demands)?).await
    }

    /// Asks, and waits: how many are in front, and who holds.
    pub async fn wait(&self, request: &AcquireRequest) -> Result<(u32, LockHolder), Failure> {
        match self.store.acquire(request).await? {
            Acquired::Waiting { ahead, by, .. } => Ok((ahead, by)),
            other => Err(Failure::from(format!("{} {}: {other:?}, and not waiting", request.node, request.demands))),
        }
    }

    /// A fresh request that waits.
    pub async fn queue(&self, node: &str, demands: &[Demand]) -> Result<AcquireRequest, Failure> {
        let request = self.request(node, demands)?;
        self.wait(&request).await?;
        Ok(request)
    }

    /// Releases what is held, all of whose requests were answered.
    pub async fn release(&self, hold: &LockHold) -> Result<LockRelease, Failure> {
        Ok(self.store.release(&hold.exit(false)).await?)
    }

    /// Leaves the queue.
    pub async fn leave(&self, request: &AcquireRequest) -> Result<LockRelease, Failure> {
        Ok(self.store.release(&request.exit(false)).await?)
    }

    /// The entries of a lock, in the order of the queue.
    pub async fn entries(&self, lock: &str) -> Result<Vec<LockEntry>, Failure> {
        let (_, mut records) = self.store.locks(&[name(lock)?]).await?;
        ensure_eq!(records.len(), 1, "one record for one lock");
        Ok(records.pop().map(|record| record.entries).unwrap_or_default())
    }

    /// The entry of a request in a lock.
    pub async fn entry(&self, lock: &str, request: &AcquireRequest) -> Result<LockEntry, Failure> {
        let own = self.entries(lock).await?.into_iter().find(|entry| entry.token == request.token);
        own.ok_or_else(|| Failure::from(format!("{} has no entry in {lock}", request.node)))
    }

    /// The nodes of those who hold, and of those who wait.
    pub async fn nodes(&self, lock: &str) -> Result<(String, String), Failure> {
        let entries = self.entries(lock).await?;
        let of = |holds: bool| {
            let nodes = entries.iter().filter(|entry| entry.holds == holds).map(|entry| entry.by.node.to_string());
            nodes.collect::<Vec<_>>().join(" ")
        };
        Ok((of(true), of(false)))
    }
}

/// Every hint that has come by now; of a store that answers before it publishes, within the setup's patience.
pub(super) async fn heard(bench: &LockBench, wakeups: &mut LockWakeups, at_least: usize) -> Vec<Token> {
    let mut told = Vec::new();
    let listening = async {
        while told.len() < at_least {
            match wakeups.recv().await {
                Ok(LockHint::Ready(token)) => told.push(token),
                Ok(LockHint::Resync) => {}
                Err(_) => return,
            }
        }
    };
    let _ = tokio::time::timeout(bench.setup.scale().patience, listening).await;
    while let Ok(hint) = wakeups.try_recv() {
        if let LockHint::Ready(token) = hint {
            told.push(token);
        }
    }
    told
}

/// Hints to this instance, once one was heard: a subscription may only just have begun.
pub(super) async fn listening(bench: &LockBench, instance: Token) -> Result<LockWakeups, Failure> {
    let mut wakeups = bench.store.listen(instance);
    for _ in 0..100 {
        let held = bench.take("a", &[write("heard")?]).await?;
        let request = AcquireRequest { instance, ..bench.request("b", &[write("heard")?])? };
        bench.wait(&request).await?;
        bench.release(&held).await?;
        let told = async {
            loop {
                match wakeups.recv().await {
                    Ok(LockHint::Ready(token)) if token == request.token => return true,
                    Ok(_) => {}
                    Err(_) => return false,
                }
            }
        };
        let is_told = tokio::time::timeout(Duration::from_millis(200), told).await;
        bench.release(&bench.hold(&request).await?).await?;
        if is_told.unwrap_or(false) {
            return Ok(wakeups);
        }
    }
    Err(Failure::from("no hint was heard".to_owned()))
}

pub(super) fn name(lock: &str) -> Result<LockName, Failure> {
    LockName::new(lock).map_err(|error| Failure::from(error.to_string()))
}

/// A lock alone.
pub(super) fn write(lock: &str) -> Result<Demand, Failure> {
    Ok(Demand::exclusive(name(lock)?))
}

/// A lock beside others.
pub(super) fn read(lock: &str) -> Result<Demand, Failure> {
    Ok(Demand::shared(name(lock)?))
}

/// Permits of a pool.
pub(super) fn some(lock: &str, permits: u32, of: u32) -> Result<Demand, Failure> {
    Demand::permits(name(lock)?, permits, of).map_err(|error| Failure::from(error.to_string()))
}
