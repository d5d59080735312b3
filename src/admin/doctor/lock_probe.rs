//! Takes, keeps, waits for and leaves a lock with a random name that nobody has, as jobs, programs and operators do.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::drive::Entropy;
use crate::job::{LockName, NodeName};
use crate::resource::{AcquireRequest, Acquired, Demand, Demands, LockHint, LockHold};
use crate::slot::{Audit, Fence};
use crate::store::{Applied, LockStore, LockWakeups, Op, StoreError};

/// A hint that has not come by then does not come.
const HINT_LIMIT: Duration = Duration::from_secs(2);

/// How long what is taken here stands, should doctor be killed.
const LOCK_TTL: Duration = Duration::from_secs(10);

/// What was seen of locks.
#[derive(Debug, Default)]
pub(super) struct LocksSeen {
    /// Each operation that was tried, with its error.
    pub(super) tried: Vec<(Op, Option<StoreError>)>,
    /// Whether who waits was told that the lock is free; none where that was not awaited.
    pub(super) hint: Option<bool>,
    /// The lock, for it to be removed again.
    pub(super) lock: Option<LockName>,
    /// Something of it may have been written.
    pub(super) is_written: bool,
}

/// The trial: a store of locks, random bits, and under which names.
pub(super) struct LockProbe<'a> {
    pub(super) store: &'a dyn LockStore,
    pub(super) entropy: &'a Entropy,
    pub(super) lock: LockName,
    pub(super) node: NodeName,
    pub(super) audit: &'a Audit,
    /// The store tells of what is free: to be waited for.
    pub(super) tells: bool,
}

impl LockProbe<'_> {
    /// One takes the lock, another waits for it, and is told when it is free. What is refused keeps nothing else from being tried.
    pub(super) async fn observe(self) -> LocksSeen {
        let (first, second) = (self.request(), self.request());
        let mut hints = self.store.listen(second.instance);
        let mut acquired = Tried::default();
        let hold = match acquired.note(self.store.acquire(&first).await) {
            Some(Acquired::Held { fence, places, .. }) => first.granted(fence, places),
            _ => would_be(&first, self.audit.at),
        };
        let waits = matches!(acquired.note(self.store.acquire(&second).await), Some(Acquired::Waiting { .. }));
        let (mut renewed, mut released, mut evicted) = (Tried::default(), Tried::default(), Tried::default());
        renewed.note(self.store.renew_lock(&hold).await);
        let is_free = released.note(self.store.release(&hold.exit(false)).await).is_some();
        let hint = if self.tells && waits && is_free { Some(told_of(&mut hints, &second).await) } else { None };
        acquired.note(self.store.acquire(&second).await);
        let listed = self.store.locks(std::slice::from_ref(&self.lock)).await.err();
        evicted.note(self.store.evict(&self.lock, second.token, self.audit).await);
        released.note(self.store.release(&second.exit(false)).await);
        let is_written = [&acquired, &renewed, &released, &evicted].iter().any(|tried| tried.is_written);
        let tried = vec![
            (Op::Acquire, acquired.error),
            (Op::RenewLock, renewed.error),
            (Op::Release, released.error),
            (Op::Locks, listed),
            (Op::Evict, evicted.error),
        ];
        LocksSeen { tried, hint, lock: Some(self.lock), is_written }
    }

    fn request(&self) -> AcquireRequest {
        let demands = Demands::from(Demand::exclusive(self.lock.clone()));
        AcquireRequest::new(self.entropy.token(), self.node.clone(), self.entropy.token(), LOCK_TTL, demands)
            .labelled("doctor")
    }
}

/// What came of one operation that is tried more than once: the first error, and whether anything may have been written.
#[derive(Debug, Default)]
struct Tried {
    error: Option<StoreError>,
    is_written: bool,
}

impl Tried {
    fn note<T>(&mut self, answer: Result<T, StoreError>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.is_written = true;
                Some(answer)
            }
            Err(error) => {
                self.is_written |= error.applied == Applied::Maybe;
                self.error.get_or_insert(error);
                None
            }
        }
    }
}

/// What would be held, had it been granted: renewing and leaving take rights of their own.
fn would_be(request: &AcquireRequest, at: DateTime<Utc>) -> LockHold {
    let now = at.timestamp_millis().unsigned_abs();
    request.granted(Fence(now), vec![now])
}

/// Whether the request was told that it may hold.
async fn told_of(hints: &mut LockWakeups, request: &AcquireRequest) -> bool {
    use tokio::sync::broadcast::error::RecvError;
    let came = async {
        loop {
            match hints.recv().await {
                Ok(LockHint::Ready(token)) if token == request.token => return true,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return false,
            }
        }
    };
    tokio::time::timeout(HINT_LIMIT, came).await.unwrap_or(false)
}
