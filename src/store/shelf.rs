//! Queues of locks in a store that keeps a document for each: as they were read, decided on by a rule, and what that has changed. And the
//! one seam for stores of keys and values: each brings how it reads documents and how it writes them all or none.

use std::collections::BTreeMap;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use std::future::Future;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::LockName;
use crate::resource::LockRecord;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::slot::Token;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::store::keyed::{Call, Fault, Framed, json};
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::store::locks::{LockRuled, LockWakeups};
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::store::ruled::Reply;
use crate::store::rules::{LockState, LockStep};
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::store::{ErrorKind, Op};

/// A lock, its queue and the version of that.
pub(super) type StoredLock<V> = (LockName, (LockState, V));

/// Queues as they were read, each with its version. One that nobody has used is not there.
#[derive(Debug)]
pub(super) struct LoadedLocks<V> {
    /// The store's clock.
    pub(super) now: DateTime<Utc>,
    pub(super) stored: BTreeMap<LockName, (LockState, V)>,
}

/// A lock that a step has looked at, and how it leaves it.
#[derive(Debug)]
pub(super) struct LockChange<V> {
    pub(super) name: LockName,
    pub(super) state: LockState,
    /// Its version; none where it was not there.
    pub(super) read: Option<V>,
    /// Whether it is to be written. Otherwise it has to be still as it was read.
    pub(super) is_changed: bool,
}

impl<V: Copy> LoadedLocks<V> {
    /// For a rule to decide.
    pub(super) fn step(&self) -> LockStep {
        let states = self.stored.iter().map(|(name, (state, _))| (name.clone(), state.clone()));
        LockStep::new(states.collect(), self.now)
    }

    /// What it comes to, in the order of names; nothing where nothing is to be written.
    pub(super) fn changes(&self, left: BTreeMap<LockName, LockState>) -> Vec<LockChange<V>> {
        let change = |(name, state): (LockName, LockState)| {
            let (stored, read) = self.stored.get(&name).map(|(stored, version)| (stored, *version)).unzip();
            let is_changed = stored.map_or_else(|| !state.is_untouched(), |stored| *stored != state);
            LockChange { name, state, read, is_changed }
        };
        let changes: Vec<_> = left.into_iter().map(change).collect();
        if changes.iter().any(|change| change.is_changed) { changes } else { Vec::new() }
    }

    /// The clock, and what is known of each, in the order asked; by name where none is named.
    pub(super) fn records(&self, names: &[LockName]) -> (DateTime<Utc>, Vec<LockRecord>) {
        let record = |name: &LockName| {
            let state = self.stored.get(name).map(|(state, _)| state.clone());
            state.unwrap_or_default().record(name, self.now)
        };
        let all = if names.is_empty() {
            self.stored.keys().map(record).collect()
        } else {
            names.iter().map(record).collect()
        };
        (self.now, all)
    }
}

/// How often a step is tried anew when others change the same locks meanwhile. Each time one of them has got through.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
const MOST_TRIES: usize = 200;

/// A document to be written, or none where it has to stay as it was read.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
#[derive(Debug)]
pub(super) struct LockDocument<V> {
    pub(super) name: LockName,
    pub(super) read: Option<V>,
    pub(super) text: Option<Vec<u8>>,
}

/// What a store of keys and values does by itself.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) trait LockShelf: Framed {
    type Version: Copy + Send + Sync + 'static;

    /// The most bytes of documents that one request may write.
    const MOST_BYTES: usize;

    /// Reads the documents of these locks as they are at one moment; of all, each by itself, where none is named.
    fn load_locks(&self, names: &[LockName]) -> impl Future<Output = Result<LoadedLocks<Self::Version>, Fault>> + Send;

    /// Writes the documents, all or none: if each is still as it was read. False when nothing was written. The hints go with it.
    fn save_locks(
        &self,
        call: &Call,
        documents: &[LockDocument<Self::Version>],
        wakes: &[(Token, Token)],
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// [`LockRuled::known_names`].
    fn load_names(&self) -> impl Future<Output = Result<Vec<LockName>, Fault>> + Send;

    /// [`LockRuled::remove_idle_locks`].
    fn purge_idle(&self, call: &Call) -> impl Future<Output = Result<u64, Fault>> + Send;

    /// [`LockRuled::lock_hints`].
    fn listen_locks(&self, instance: Token) -> LockWakeups;

    /// How often somebody who waits looks again.
    fn look_again(&self) -> Duration;
}

/// The documents of these changes. More than fits into a request is refused here: the server's own word for it would be a broken
/// connection, or none.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
fn documents<V>(changes: Vec<LockChange<V>>, most: usize) -> Result<Vec<LockDocument<V>>, Fault> {
    let document = |change: LockChange<V>| {
        let text = change.is_changed.then(|| json(&change.state)).transpose()?;
        Ok(LockDocument { name: change.name, read: change.read, text })
    };
    let documents = changes.into_iter().map(document).collect::<Result<Vec<_>, Fault>>()?;
    let bytes: usize = documents.iter().filter_map(|document| document.text.as_ref()).map(Vec::len).sum();
    if bytes > most {
        let kib = |bytes: usize| bytes.div_ceil(1_024);
        let message = format!(
            "the queues of these locks take {} KiB, and one request may write {}: name fewer locks at once, shorten labels, or \
             let fewer wait",
            kib(bytes),
            kib(most)
        );
        return Err(Fault::new(ErrorKind::Overloaded, message));
    }
    Ok(documents)
}

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
impl<S: LockShelf> LockRuled for S {
    async fn on_locks<T: Send + 'static>(
        &self,
        op: Op,
        names: Vec<LockName>,
        rule: impl Fn(&mut LockStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let call = Call::new(op);
        let work = async {
            for _ in 0..MOST_TRIES {
                let loaded = self.load_locks(&names).await?;
                let mut step = loaded.step();
                let answer = rule(&mut step);
                let documents = documents(loaded.changes(step.locks), Self::MOST_BYTES)?;
                if documents.is_empty() || self.save_locks(&call, &documents, &step.wakes).await? {
                    return Ok(answer);
                }
            }
            Err(Fault::contended())
        };
        call.within(self.frame(), work).await
    }

    async fn lock_records(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let call = Call::new(Op::Locks);
        call.within(self.frame(), async { Ok(self.load_locks(names).await?.records(names)) }).await
    }

    async fn known_names(&self) -> Reply<Vec<LockName>> {
        Call::new(Op::Locks).within(self.frame(), self.load_names()).await
    }

    fn lock_hints(&self, instance: Token) -> LockWakeups {
        self.listen_locks(instance)
    }

    fn poll(&self) -> Option<Duration> {
        Some(self.look_again())
    }

    async fn remove_idle_locks(&self) -> Reply<u64> {
        let call = Call::new(Op::Purge);
        call.within(self.frame(), self.purge_idle(&call)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::later;
    use crate::job::NodeName;
    use crate::resource::{AcquireRequest, Acquired, Demand, Demands};
    use crate::slot::Token;

    fn name(lock: &str) -> LockName {
        LockName::new(lock).unwrap()
    }

    fn request(token: u128, ttl: u64) -> AcquireRequest {
        let demands = ["a", "b"].map(|lock| Demand::exclusive(name(lock))).to_vec();
        let (token, node) = (Token::from_bits(token), NodeName::new("n").unwrap());
        AcquireRequest::new(token, node, token, Duration::from_secs(ttl), Demands::new(demands).unwrap())
    }

    /// Both locks, held by one request of the first second.
    fn held(request: &AcquireRequest) -> LoadedLocks<i64> {
        let now = later(DateTime::UNIX_EPOCH, Duration::from_secs(1));
        let mut step = LockStep::new(BTreeMap::new(), now);
        assert!(matches!(step.acquire(request), Acquired::Held { .. }));
        LoadedLocks { now, stored: step.locks.into_iter().map(|(name, state)| (name, (state, 7))).collect() }
    }

    #[test]
    fn what_was_read_and_is_not_written_has_to_be_as_it_was_all_the_same() {
        let request = request(1, 10);
        let loaded = held(&request);
        // One of its entries lasts longer already: the answer rests on it, and only the other is written.
        let mut left: BTreeMap<_, _> = loaded.step().locks;
        left.get_mut(&name("a")).unwrap().lapse_at(None, later(loaded.now, Duration::from_secs(20)));
        assert!(loaded.changes(left.clone()).is_empty(), "nothing lapses later than it did");
        left.get_mut(&name("b")).unwrap().lapse_at(None, loaded.now);
        let changes = loaded.changes(left);
        let told: Vec<_> = changes.iter().map(|c| (c.name.as_str(), c.read, c.is_changed)).collect();
        assert_eq!(told, [("a", Some(7), false), ("b", Some(7), true)]);
    }

    #[cfg(any(feature = "etcd", feature = "zookeeper"))]
    #[test]
    fn documents_that_do_not_fit_into_one_request_are_refused_with_a_way_out() {
        let loaded = LoadedLocks { now: DateTime::UNIX_EPOCH, stored: BTreeMap::<_, (_, i64)>::new() };
        let mut step = loaded.step();
        step.acquire(&request(1, 10));
        let changes = || loaded.changes(step.locks.clone());
        let fits = documents(changes(), 10_000).unwrap();
        let bytes: usize = fits.iter().filter_map(|document| document.text.as_ref()).map(Vec::len).sum();
        assert!(documents(changes(), bytes).is_ok());
        let fault = documents(changes(), bytes - 1).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::Overloaded);
        assert!(fault.refused && fault.message.contains("name fewer locks at once"), "{fault}");
    }

    /// The longest queue of requests whose labels are as long as they may be, and as many tokens as are remembered.
    #[test]
    fn a_full_queue_fits_into_one_request_of_every_store() {
        let lock = name("l");
        let now = later(DateTime::UNIX_EPOCH, Duration::from_secs(1_900_000_000));
        let mut step = LockStep::new(BTreeMap::new(), now);
        let ask = |at: u128| {
            let node = NodeName::new(&"n".repeat(40)).unwrap();
            let demands = Demands::from(Demand::exclusive(lock.clone()));
            let token = Token::from_bits(u128::MAX - at);
            AcquireRequest::new(token, node, token, Duration::from_secs(60), demands)
                .labelled(&"l".repeat(crate::resource::LONGEST_LABEL))
        };
        for at in 0..5_000 {
            step.acquire(&ask(at));
            step.release(&ask(at).exit(true));
        }
        for at in 5_000..6_100 {
            step.acquire(&ask(at));
        }
        let document = serde_json::to_vec(step.locks.get(&lock).unwrap()).unwrap();
        assert!((500_000..1_000_000).contains(&document.len()), "{} bytes", document.len());
    }
}
