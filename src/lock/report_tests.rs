//! What an observer learns of the locks of a service, and how their client ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{LockError, Locks, LocksBuilder, ShutdownError, Standing};
use crate::clock::{Clock, RuntimeClock, SystemClock};
use crate::event::{Event, LeaveAnswer, LockWait};
use crate::job::LockName;
use crate::observe::Observer;
use crate::slot::Slot;
use crate::store::StoreOptions;
use crate::store::memory::MemoryStore;

const GRACE: Duration = Duration::from_secs(60);

/// Keeps what was reported.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Event>>>);

impl Observer for Recorder {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        assert_eq!(slot, None, "{event:?}");
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Recorder {
    fn waits(&self) -> Vec<LockWait> {
        let wait = |event: &Event| if let Event::LockWaiting(wait) = event { Some(wait.clone()) } else { None };
        self.0.lock().unwrap().iter().filter_map(wait).collect()
    }
}

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)))
}

fn observed(store: &Arc<MemoryStore>, node: &str) -> (LocksBuilder, Recorder) {
    let recorder = Recorder::default();
    (Locks::builder(store.clone(), node).observer(Arc::new(recorder.clone())), recorder)
}

fn name() -> LockName {
    LockName::new("x").unwrap()
}

#[tokio::test]
async fn a_lost_lock_is_reported_with_its_name_and_its_new_holder() {
    let store = store();
    let (builder, recorder) = observed(&store, "a");
    let locks = builder.ttl(Duration::from_secs(6)).build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    store.with_ledger(|ledger, _| ledger.forget_lock(&name()));
    let other = Locks::builder(store, "b").build().unwrap().mutex("x").unwrap().lock().await.unwrap();
    assert_eq!(held.lost().await, Standing::Lost);
    let events = recorder.0.lock().unwrap().clone();
    let Some(Event::LockLost(loss)) = events.last() else { panic!("{events:?}") };
    let to = loss.to.as_ref().map(ToString::to_string);
    assert_eq!((loss.locks[0].lock(), to.as_deref(), loss.in_doubt), (&name(), Some("b"), false));
    drop(other);
}

#[tokio::test]
async fn a_lock_that_is_dropped_after_it_lapsed_is_reported() {
    let store = store();
    let (builder, recorder) = observed(&store, "a");
    let locks = builder.build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    store.with_ledger(|ledger, now| ledger.expire_lock(&name(), None, now));
    let other = Locks::builder(store, "b").build().unwrap().mutex("x").unwrap().lock().await.unwrap();
    drop(held);
    assert_eq!(locks.shutdown(GRACE).await, Ok(()));
    let events = recorder.0.lock().unwrap().clone();
    let Some(Event::LockLeft(leave)) = events.last() else { panic!("{events:?}") };
    let by = leave.by.as_ref().map(ToString::to_string);
    assert_eq!((leave.answer, by.as_deref(), leave.locks.len()), (LeaveAnswer::Overtaken, Some("b"), 1));
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_ten_seconds_is_reported_once_with_its_holder() {
    let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T14:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
    let holds = Locks::builder(store.clone(), "a").clock(Arc::clone(&clock)).build().unwrap();
    let held = holds.mutex("x").unwrap().lock().await.unwrap();
    let (builder, recorder) = observed(&store, "b");
    let mutex = builder.clock(clock).build().unwrap().mutex("x").unwrap();
    let mut waits = Box::pin(mutex.lock());
    for (seconds, reported) in [(9, 0), (2, 1), (600, 1)] {
        let waited = tokio::time::timeout(Duration::from_secs(seconds), &mut waits).await;
        assert!(waited.is_err(), "it is held");
        assert_eq!(recorder.waits().len(), reported, "after {seconds} s more");
    }
    let wait = recorder.waits().remove(0);
    assert_eq!((wait.by.as_str(), wait.ahead, wait.locks[0].lock()), ("a", 1, &name()));
    drop(held);
    drop(waits.await.unwrap());
}

#[tokio::test]
async fn what_was_dropped_is_free_when_the_shutdown_returns() {
    let store = store();
    let locks = Locks::builder(store.clone(), "a").build().unwrap();
    drop(locks.mutex("x").unwrap().lock().await.unwrap());
    assert_eq!(locks.shutdown(GRACE).await, Ok(()));
    let other = Locks::builder(store, "b").build().unwrap();
    assert!(other.mutex("x").unwrap().try_lock().await.is_ok());
}

#[tokio::test]
async fn a_client_that_is_shut_down_asks_for_nothing_and_leaves_the_queues() {
    let store = store();
    let (a, b) = ["a", "b"].map(|node| Locks::builder(store.clone(), node).build().unwrap()).into();
    let held = a.mutex("x").unwrap().lock().await.unwrap();
    let mutex = b.mutex("x").unwrap();
    let (waited, ended) = tokio::join!(mutex.lock(), b.shutdown(GRACE));
    assert!(matches!(waited, Err(LockError::ShutDown)), "{waited:?}");
    assert_eq!(ended, Ok(()));
    assert!(matches!(mutex.lock().await, Err(LockError::ShutDown)));
    assert_eq!(a.list().await.unwrap()[0].entries.len(), 1, "the holder alone");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_asked_to_end_and_what_it_goes_on_holding_is_counted() {
    let locks = Locks::builder(store(), "a").build().unwrap();
    let held = locks.mutex("x").unwrap().lock().await.unwrap();
    let token = held.token();
    assert_eq!(locks.shutdown(Duration::from_millis(10)).await, Err(ShutdownError { left: 1 }));
    assert!(token.is_cancelled());
    assert_eq!(held.standing(), Standing::Held, "its work may go on");
    drop(held);
    assert_eq!(locks.shutdown(GRACE).await, Ok(()));
}
