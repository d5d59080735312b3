//! Many at once, where what the store has of some cannot be read: the others are read all the same.

#[cfg(feature = "http")]
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::error::{ErrorKind, Reply, StoreError};
use crate::job::{JobName, LockName};
#[cfg(feature = "http")]
use crate::message::{Topic, UntoldMessage};
use crate::resource::LockRecord;
use crate::slot::{JobLatest, Slot, SlotRecord};
use crate::store::{LockStore, Store};

/// What is left to be asked for. Where one cannot be read, a store answers nothing of those that were asked for with it: they are asked
/// for again in halves. So there are less than twice as many calls as things that were wanted.
struct Halves<'a, T>(Vec<&'a [T]>);

impl<'a, T> Halves<'a, T> {
    /// What cannot be read, alone; none where there is something to be asked for again. Any other error is passed on.
    fn met(&mut self, part: &'a [T], error: StoreError) -> Reply<Option<StoreError>> {
        match (error.kind, part) {
            (ErrorKind::Corrupt, []) | (ErrorKind::Corrupt, [_]) => Ok(Some(error)),
            (ErrorKind::Corrupt, _) => {
                let (first, second) = part.split_at(part.len() / 2);
                self.0.extend([second, first]);
                Ok(None)
            }
            _ => Err(error),
        }
    }
}

/// What is known of each slot, in the order asked, or why that cannot be read; and the store's clock, where any could be.
pub(crate) async fn inspect_each(
    store: &dyn Store,
    slots: &[Slot],
) -> Reply<(Option<DateTime<Utc>>, Vec<Reply<SlotRecord>>)> {
    let (mut parts, mut now, mut found) = (Halves(vec![slots]), None, Vec::with_capacity(slots.len()));
    while let Some(part) = parts.0.pop() {
        match store.inspect(part).await {
            Ok((at, records)) => {
                now = Some(at);
                found.extend(records.into_iter().map(Ok));
            }
            Err(error) => found.extend(parts.met(part, error)?.map(Err)),
        }
    }
    Ok((now, found))
}

/// What each job has come to lately, in the order asked, or why that cannot be read.
pub(crate) async fn latest_each(store: &dyn Store, jobs: &[JobName]) -> Reply<Vec<Reply<JobLatest>>> {
    let (mut parts, mut found) = (Halves(vec![jobs]), Vec::with_capacity(jobs.len()));
    while let Some(part) = parts.0.pop() {
        match store.latest(part).await {
            Ok(latest) => found.extend(latest.into_iter().map(Ok)),
            Err(error) => found.extend(parts.met(part, error)?.map(Err)),
        }
    }
    Ok(found)
}

/// What is known of each of these locks, by name of all where none is named, and why some cannot be read; and the store's clock,
/// where any could be.
pub(crate) async fn locks_each(store: &dyn LockStore, wanted: &[LockName]) -> Reply<LocksEach> {
    let all = match store.locks(wanted).await {
        Ok((now, records)) => return Ok(LocksEach { now: Some(now), records, unreadable: Vec::new() }),
        Err(error) if error.kind != ErrorKind::Corrupt => return Err(error),
        Err(_) if wanted.is_empty() => store.lock_names().await?,
        Err(_) => wanted.to_vec(),
    };
    let (mut parts, mut found) = (Halves(vec![all.as_slice()]), LocksEach::default());
    while let Some(part) = parts.0.pop() {
        match store.locks(part).await {
            Ok((now, records)) => {
                found.now = Some(now);
                found.records.extend(records);
            }
            Err(error) => found.unreadable.extend(parts.met(part, error)?),
        }
    }
    Ok(found)
}

/// What [`locks_each`] has found.
#[derive(Debug, Default)]
pub(crate) struct LocksEach {
    pub(crate) now: Option<DateTime<Utc>>,
    pub(crate) records: Vec<LockRecord>,
    pub(crate) unreadable: Vec<StoreError>,
}

/// What was begun about these topics and is not told, and which of them cannot be read; and the store's clock, where any could be.
#[cfg(feature = "http")]
pub(crate) async fn untold_each(store: &dyn Store, topics: &[Topic]) -> Reply<UntoldEach> {
    let (mut parts, mut found) = (Halves(vec![topics]), UntoldEach::default());
    while let Some(part) = parts.0.pop() {
        match store.untold(part).await {
            Ok((at, messages)) => {
                found.now = Some(at);
                found.messages.extend(messages);
            }
            Err(error) => found.unreadable.extend(part.first().cloned().zip(parts.met(part, error)?)),
        }
    }
    Ok(found)
}

/// What [`untold_each`] has found.
#[cfg(feature = "http")]
#[derive(Debug, Default)]
pub(crate) struct UntoldEach {
    pub(crate) now: Option<DateTime<Utc>>,
    pub(crate) messages: Vec<UntoldMessage>,
    pub(crate) unreadable: BTreeMap<Topic, StoreError>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::clock::ManualClock;
    use crate::error::{Applied, Op};
    use crate::job::NodeName;
    use crate::resource::{AcquireRequest, Demands};
    use crate::slot::Token;
    use crate::store::StoreOptions;
    use crate::store::layer::{Call, Layer, Layered};
    use crate::store::memory::MemoryStore;

    /// Counts the calls, and lets so many through.
    #[derive(Debug)]
    struct Calls(Arc<AtomicUsize>, usize);

    #[async_trait]
    impl Layer for Calls {
        async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
            if self.0.fetch_add(1, Ordering::Relaxed) >= self.1 {
                return Err(StoreError::new(ErrorKind::Timeout, Applied::No, op, location, "no answer"));
            }
            call().await
        }
    }

    fn names() -> Vec<JobName> {
        (0..100).map(|number| JobName::new(&format!("j{number:02}")).unwrap()).collect()
    }

    fn slots() -> Vec<Slot> {
        let slot = |name: &JobName| Slot::parse(name.as_str(), "2026-11-21T12Z", "2026-11-21T13Z").unwrap();
        names().iter().map(slot).collect()
    }

    /// A store in which these cannot be read and so many calls are answered, and the calls.
    fn store(spoilt: &[&str], most: usize) -> (impl Store, Arc<AtomicUsize>) {
        let clock = ManualClock::at("2026-11-21T12:10:00Z".parse().unwrap());
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(clock));
        memory.spoil(spoilt);
        let calls = Arc::<AtomicUsize>::default();
        (Layered::new(Arc::new(memory), Calls(Arc::clone(&calls), most)), calls)
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named_and_keeps_nobody_from_the_rest() {
        let (store, calls) = store(&["j37@2026-11-21T12Z", "j38@2026-11-21T12Z", "j99@2026-11-21T12Z"], 1_000);
        let (now, found) = inspect_each(&store, &slots()).await.unwrap();
        assert_eq!(now, Some("2026-11-21T12:10:00Z".parse().unwrap()));
        let (read, not): (Vec<_>, Vec<_>) = slots().into_iter().zip(found).partition(|(_, record)| record.is_ok());
        assert!(read.iter().all(|(slot, record)| record.as_ref().unwrap().slot == *slot));
        let not: Vec<String> = not.into_iter().map(|(_, record)| record.unwrap_err().to_string()).collect();
        let error = |name: &str| format!("memory:: inspect: {name}@2026-11-21T12Z: a key of another type");
        assert_eq!((read.len(), not), (97, ["j37", "j38", "j99"].map(error).to_vec()));
        assert!(calls.load(Ordering::Relaxed) <= 45, "{calls:?}");
    }

    #[tokio::test]
    async fn where_nothing_can_be_read_there_are_fewer_calls_than_twice_as_many_as_things_asked_for() {
        let names: Vec<String> = names().iter().map(ToString::to_string).collect();
        let (store, calls) = store(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1_000);
        let found = latest_each(&store, &self::names()).await.unwrap();
        assert_eq!((found.len(), found.iter().filter(|latest| latest.is_err()).count()), (100, 100));
        assert_eq!(calls.load(Ordering::Relaxed), 199);
    }

    #[tokio::test]
    async fn a_lock_that_cannot_be_read_keeps_nobody_from_the_others() {
        let clock = ManualClock::at("2026-11-21T12:10:00Z".parse().unwrap());
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(clock));
        for number in 0..20_u128 {
            let demands = Demands::new(vec![format!("l{number:02}").parse().unwrap()]).unwrap();
            let (token, node) = (Token::from_bits(number + 1), NodeName::new("n").unwrap());
            memory.acquire(&AcquireRequest::new(token, node, token, Duration::from_secs(60), demands)).await.unwrap();
        }
        memory.spoil(&["l07"]);
        let names = ["l06", "l07", "l08"].map(|name| LockName::new(name).unwrap());
        for (wanted, readable) in [(&[][..], 19), (&names, 2), (&names[1..2], 0)] {
            let found = locks_each(&memory, wanted).await.unwrap();
            assert_eq!((found.records.len(), found.now.is_some()), (readable, readable > 0), "{wanted:?}");
            let told: Vec<String> = found.unreadable.iter().map(ToString::to_string).collect();
            assert_eq!(told, ["memory:: locks: l07: a key of another type"]);
        }
    }

    #[tokio::test]
    async fn any_other_error_is_the_answer() {
        let (store, calls) = store(&["j37@2026-11-21T12Z"], 3);
        let error = inspect_each(&store, &slots()).await.unwrap_err();
        assert_eq!((error.kind, calls.load(Ordering::Relaxed)), (ErrorKind::Timeout, 4));
    }
}
