//! The contract of a store that keeps locks: a trait of its own, so that a store without them stays a [`Store`](crate::store::Store).
//! And the one seam for stores that do not decide by themselves.
//!
//! Each operation is one atomic step over all the locks that it names, judged by the store's clock, and may be repeated after an error.
//! An error grants nothing. Invariants K1 to K11: `docs/locks.md`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::broadcast;

use crate::error::Reply;
use crate::job::LockName;
use crate::resource::{AcquireRequest, Acquired, LockExit, LockHint, LockHold, LockRecord, LockRelease, LockRenewal};
use crate::slot::{Audit, Token};
use crate::store::rules::LockStep;
use crate::store::{Intervention, Op};

/// The receiving end of hints to one process. A receiver that lags has lost some: treat that as [`LockHint::Resync`].
pub type LockWakeups = broadcast::Receiver<LockHint>;

/// A shared store of locks.
#[async_trait]
pub trait LockStore: Debug + Send + Sync + 'static {
    /// Asks for every lock that the request names, all or nothing.
    ///
    /// An entry in each queue is made, with one place for all, larger than every number before (K2); where the request has them
    /// already they are kept, and last for `ttl` from now on, never shorter (K3). It is told `Held` where it holds in all of them (K5),
    /// the first time with a new fence, larger than every number before in any of them (K6), and then always with the same.
    ///
    /// Checked in this order: a request that was left, or taken out, is `Refused(Spent)` (K7); a queue that has
    /// [`MOST_ENTRIES`](crate::resource::MOST_ENTRIES) is `Refused(Full)`, and entries that lapsed less than a second ago may
    /// count; an owner that holds a lock already by another request stands beside that, and is `Refused(WaitsForItself)` unless it holds there at once, together with everybody who held before (K9). Where
    /// an entry of it was lost in one lock, it joins anew in all, with a new place and fence.
    ///
    /// With `queue` false it is told `Held` or nothing of it is written: `Busy`.
    async fn acquire(&self, request: &AcquireRequest) -> Reply<Acquired>;

    /// Makes what is held last for its TTL from now on; never shortens it. Entries that are absent are set again at their places, all
    /// or none, where nobody with a later fence has left since, the token is not spent, they then hold, and everybody who holds goes on
    /// holding (K8). Otherwise, and where an entry bears another fence, `Lost`, with nothing changed.
    async fn renew_lock(&self, hold: &LockHold) -> Reply<LockRenewal>;

    /// Ends a request: whatever it had come to, and again until it is answered. Its entries go, and no late copy brings them back
    /// (K7): no renewal, and no acquire either where its entry was absent or the exit says `unsure`. Nothing of anybody else's is
    /// changed (K4). Whoever comes to hold by that is hinted at once.
    ///
    /// Again after `Released`: `Released`, for as long as the store remembers it, and at least while nobody who came later has left.
    async fn release(&self, exit: &LockExit) -> Reply<LockRelease>;

    /// What is known of these locks, in the order asked; of every lock by name where none is named. Reads only. The first part is the
    /// store's clock at the time of reading.
    async fn locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)>;

    /// The name of every lock that is known, in order; also of those whose records cannot be read. Reads only.
    async fn lock_names(&self) -> Reply<Vec<LockName>> {
        Ok(self.locks(&[]).await?.1.into_iter().map(|record| record.lock).collect())
    }

    /// Operator: takes the request out of this lock's queue; recorded. A holder's next renewal answers `Lost`, a waiter's next beat
    /// `Refused(Spent)`. `Unchanged` where it is not there.
    async fn evict(&self, lock: &LockName, token: Token, audit: &Audit) -> Reply<Intervention>;

    /// Hints to this process from now on. Never fails: a store that cannot tell stays silent.
    fn listen(&self, instance: Token) -> LockWakeups;

    /// How often a waiter looks again where no hint may come; none where all come that there are.
    fn lock_poll(&self) -> Option<Duration>;

    /// Removes locks that nobody has used for the retention, a bounded number at a time; answers how many went. Stores whose locks
    /// expire by themselves answer 0.
    async fn purge_locks(&self) -> Reply<u64>;
}

/// What a store does by itself that can do one [rule](LockStep) on several locks in one atomic step. The rest is said once, here.
pub(super) trait LockRuled: Debug + Send + Sync + 'static {
    /// Reads these locks, lets the rule change them, and writes what it has changed under the condition that nothing of what was read
    /// has changed since; otherwise all over again. The rule is pure, and may be asked more than once.
    fn on_locks<T: Send + 'static>(
        &self,
        op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> impl Future<Output = Reply<T>> + Send;

    /// [`LockStore::locks`].
    fn lock_records(&self, names: &[LockName]) -> impl Future<Output = Reply<(DateTime<Utc>, Vec<LockRecord>)>> + Send;

    /// [`LockStore::lock_names`].
    fn known_names(&self) -> impl Future<Output = Reply<Vec<LockName>>> + Send;

    /// [`LockStore::listen`].
    fn lock_hints(&self, instance: Token) -> LockWakeups;

    /// [`LockStore::lock_poll`].
    fn poll(&self) -> Option<Duration>;

    /// [`LockStore::purge_locks`].
    fn remove_idle_locks(&self) -> impl Future<Output = Reply<u64>> + Send;
}

#[async_trait]
impl<S: LockRuled> LockStore for S {
    async fn acquire(&self, request: &AcquireRequest) -> Reply<Acquired> {
        let own = request.clone();
        self.on_locks(Op::Acquire, request.demands.names(), move |step| step.acquire(&own)).await
    }

    async fn renew_lock(&self, hold: &LockHold) -> Reply<LockRenewal> {
        let own = hold.clone();
        self.on_locks(Op::RenewLock, hold.demands.names(), move |step| step.renew(&own)).await
    }

    async fn release(&self, exit: &LockExit) -> Reply<LockRelease> {
        let own = exit.clone();
        self.on_locks(Op::Release, exit.demands.names(), move |step| step.release(&own)).await
    }

    async fn locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        self.lock_records(names).await
    }

    async fn lock_names(&self) -> Reply<Vec<LockName>> {
        self.known_names().await
    }

    async fn evict(&self, lock: &LockName, token: Token, audit: &Audit) -> Reply<Intervention> {
        let (name, audit) = (lock.clone(), audit.clone());
        self.on_locks(Op::Evict, vec![lock.clone()], move |step| step.evict(&name, token, &audit)).await
    }

    fn listen(&self, instance: Token) -> LockWakeups {
        self.lock_hints(instance)
    }

    fn lock_poll(&self) -> Option<Duration> {
        self.poll()
    }

    async fn purge_locks(&self) -> Reply<u64> {
        self.remove_idle_locks().await
    }
}

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// Hints within one process, each to the instance that it is for.
#[derive(Debug, Default)]
pub(super) struct LockHints(Mutex<BTreeMap<Token, broadcast::Sender<LockHint>>>);

impl LockHints {
    /// Hints to this instance from now on.
    pub(super) fn listen(&self, instance: Token) -> LockWakeups {
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody listens to any more.
        senders.retain(|_, sender| sender.receiver_count() > 0);
        senders.entry(instance).or_insert_with(|| broadcast::Sender::new(HINTS)).subscribe()
    }

    /// The instances to which somebody listens here.
    #[cfg(feature = "redis")]
    pub(super) fn instances(&self) -> Vec<Token> {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.iter().filter(|(_, sender)| sender.receiver_count() > 0).map(|(instance, _)| *instance).collect()
    }

    /// Tells one process.
    #[cfg(feature = "redis")]
    pub(super) fn pass_on(&self, instance: Token, hint: LockHint) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // No receiver is no fault: nobody waits any more.
        let _ = senders.get(&instance).map(|sender| sender.send(hint));
    }

    /// Tells each request's process that it may hold now.
    pub(super) fn tell(&self, wakes: Vec<(Token, Token)>) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (instance, token) in wakes {
            // No receiver is no fault: nobody waits, or another process does.
            let _ = senders.get(&instance).map(|sender| sender.send(LockHint::Ready(token)));
        }
    }

    /// Passes a message on ([`messages_to`]); false where it is no hint on a lock.
    #[cfg(any(feature = "postgres", feature = "etcd", feature = "zookeeper"))]
    pub(super) fn hear(&self, message: &str) -> bool {
        if message == TO_ALL {
            self.resync();
            return true;
        }
        let wake = || {
            let (instance, token) = message.strip_prefix("lock ")?.split_once(' ')?;
            Some((instance.parse().ok()?, token.parse().ok()?))
        };
        wake().map(|wake| self.tell(vec![wake])).is_some()
    }

    /// Hints may have been lost: tells every instance.
    #[cfg(any(feature = "postgres", feature = "etcd", feature = "zookeeper"))]
    pub(super) fn resync(&self) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in senders.values() {
            let _ = sender.send(LockHint::Resync);
        }
    }
}

/// The hint that everybody has to look.
#[cfg(any(feature = "postgres", feature = "etcd", feature = "zookeeper"))]
const TO_ALL: &str = "lock all";

/// Hints as they are published where all processes of a namespace hear them: each for which instance, and which of its requests. Those that
/// one is not for let it pass. More than `most` are one to all.
#[cfg(any(feature = "postgres", feature = "etcd", feature = "zookeeper"))]
pub(super) fn messages_to(wakes: &[(Token, Token)], most: usize) -> Vec<String> {
    if wakes.len() > most {
        return vec![TO_ALL.to_owned()];
    }
    wakes.iter().map(|(instance, token)| format!("lock {instance} {token}")).collect()
}

#[cfg(all(test, any(feature = "postgres", feature = "etcd", feature = "zookeeper")))]
mod tests {
    use super::*;
    use crate::store::Wake;

    #[test]
    fn a_hint_reaches_the_instance_that_it_is_for_and_is_none_on_a_slot() {
        let hints = LockHints::default();
        let [one, other] = [7, 8].map(Token::from_bits);
        let (mut own, mut others) = (hints.listen(one), hints.listen(other));
        let messages = messages_to(&[(one, Token::from_bits(1))], 1);
        assert!(messages.iter().all(|message| hints.hear(message) && message.parse::<Wake>().is_err()));
        assert_eq!((own.try_recv().ok(), others.try_recv().ok()), (Some(LockHint::Ready(Token::from_bits(1))), None));
        for text in ["", "resync", "lock", "lock x", "lock x y", "lock all of them", "job a"] {
            assert!(!hints.hear(text), "{text}");
        }
    }

    #[test]
    fn hints_to_too_many_are_one_to_all() {
        let hints = LockHints::default();
        let mut anybody = hints.listen(Token::from_bits(9));
        let wakes: Vec<_> = (0..4).map(|at| (Token::from_bits(at), Token::from_bits(at))).collect();
        assert_eq!(messages_to(&wakes, 4).len(), 4);
        let messages = messages_to(&wakes, 3);
        assert_eq!(messages.len(), 1);
        assert!(messages.iter().all(|message| hints.hear(message)));
        assert_eq!(anybody.try_recv().ok(), Some(LockHint::Resync));
    }
}
