//! Each layer over the specification.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Call, Chaos, ChaosFault, Layer, Layered, Odds, Reply, Timeout};
use crate::clock::ManualClock;
use crate::job::{JobName, NodeName};
use crate::resource::{AcquireRequest, Acquired, Demand, Demands, LockHint};
use crate::slot::{Slot, Token};
use crate::store::memory::MemoryStore;
use crate::store::{Applied, Claim, ClaimRequest, ErrorKind, Op, Store, StoreOptions};

fn clock() -> ManualClock {
    ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap())
}

fn memory() -> MemoryStore {
    MemoryStore::new(StoreOptions::default(), Arc::new(clock()))
}

fn slot() -> Slot {
    Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

fn request() -> ClaimRequest {
    ClaimRequest::new(slot(), Token::from_bits(1), NodeName::new("a").unwrap(), Duration::from_secs(60), 3)
}

fn attempts(store: &MemoryStore) -> Option<u32> {
    store.with_ledger(|ledger, _| ledger.counter(&slot()))
}

/// Answers when it is too late, or never.
#[derive(Debug)]
struct Stall;

#[async_trait]
impl Layer for Stall {
    async fn around<'a, T: Send + 'a>(&'a self, _op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let _applied = call().await;
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_in_time_may_have_been_applied() {
    let memory = memory();
    let stalled = Layered::new(Arc::new(memory.clone()), Stall);
    let store = Layered::new(Arc::new(stalled), Timeout::after(Duration::from_millis(500)));
    let error = store.claim(&request()).await.unwrap_err();
    assert_eq!((error.kind, error.applied, error.op), (ErrorKind::Timeout, Applied::Maybe, Op::Claim));
    assert_eq!(error.to_string(), "memory:: claim: no answer within 500ms");
    assert_eq!(attempts(&memory), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_not_answered_in_time_changed_nothing() {
    let stalled = Layered::new(Arc::new(memory()), Stall);
    let store = Layered::new(Arc::new(stalled), Timeout::after(Duration::from_millis(500)));
    assert_eq!(store.inspect(&[slot()]).await.unwrap_err().applied, Applied::No);
    assert_eq!(store.jobs().await.unwrap_err().applied, Applied::No);
    assert_eq!(store.purge().await.unwrap_err().applied, Applied::Maybe);
}

fn demands() -> Demands {
    Demands::from("db".parse::<Demand>().unwrap())
}

fn asking(token: u128) -> AcquireRequest {
    let node = NodeName::new("a").unwrap();
    AcquireRequest::new(Token::from_bits(token), node, Token::from_bits(9), Duration::from_secs(60), demands())
}

#[tokio::test(start_paused = true)]
async fn the_locks_of_a_store_are_behind_its_layers() {
    let memory = memory();
    let stalled = Layered::new(Arc::new(memory.clone()), Stall);
    let store: Arc<dyn Store> = Arc::new(Layered::new(Arc::new(stalled), Timeout::after(Duration::from_millis(500))));
    let locks = store.lock_store().unwrap();
    let error = locks.acquire(&asking(1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied, error.op), (ErrorKind::Timeout, Applied::Maybe, Op::Acquire));
    assert_eq!(locks.locks(&[]).await.unwrap_err().applied, Applied::No);
    assert_eq!(memory.with_ledger(|ledger, now| ledger.lock_records(&[], now))[0].entries.len(), 1);
}

#[tokio::test]
async fn the_hints_on_locks_pass_through_layers() {
    let store: Arc<dyn Store> = Arc::new(Layered::new(Arc::new(memory()), Timeout::after(Duration::from_secs(60))));
    let locks = store.lock_store().unwrap();
    let mut hints = locks.listen(Token::from_bits(9));
    assert!(matches!(locks.acquire(&asking(1)).await.unwrap(), Acquired::Held { .. }));
    assert!(matches!(locks.acquire(&asking(2)).await.unwrap(), Acquired::Waiting { .. }));
    locks.release(&asking(1).exit(false)).await.unwrap();
    assert_eq!(hints.try_recv().ok(), Some(LockHint::Ready(Token::from_bits(2))));
}

#[tokio::test]
async fn an_answer_in_time_is_passed_on() {
    let store = Layered::new(Arc::new(memory()), Timeout::after(Duration::from_secs(60)));
    assert!(matches!(store.claim(&request()).await.unwrap(), Claim::Claimed { attempt: 1, .. }));
    assert_eq!((store.capability().name, store.location()), ("memory", "memory:"));
}

#[tokio::test]
async fn a_lost_request_is_not_applied_and_a_lost_reply_is() {
    for (fault, applied) in [(ChaosFault::LoseRequest, None), (ChaosFault::LoseReply, Some(1))] {
        let (memory, chaos) = (memory(), Chaos::scripted());
        let store = chaos.over(Arc::new(memory.clone()));
        chaos.next(Op::Claim, fault);
        let error = store.claim(&request()).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe));
        assert_eq!(attempts(&memory), applied, "{fault:?}");
    }
}

#[tokio::test]
async fn a_script_is_for_the_next_call_of_its_operation_alone() {
    let chaos = Chaos::scripted();
    let store = chaos.over(Arc::new(memory()));
    chaos.next(Op::Claim, ChaosFault::Pass);
    chaos.next(Op::Claim, ChaosFault::LoseReply);
    store.inspect(&[slot()]).await.unwrap();
    store.claim(&request()).await.unwrap();
    store.claim(&request()).await.unwrap_err();
    store.claim(&request()).await.unwrap();
}

#[tokio::test]
async fn a_duplicate_is_applied_twice_and_answered_with_the_first() {
    let (memory, chaos) = (memory(), Chaos::scripted());
    let store = chaos.over(Arc::new(memory.clone()));
    chaos.next(Op::Reset, ChaosFault::Duplicate);
    let audit = crate::slot::Audit {
        verb: "reset".to_owned(),
        who: String::new(),
        host: String::new(),
        why: String::new(),
        at: chrono::DateTime::UNIX_EPOCH,
    };
    store.reset(&slot(), &audit).await.unwrap();
    assert_eq!(store.inspect(&[slot()]).await.unwrap().1[0].audit.len(), 2);
}

/// Whether each of a hundred calls was lost.
async fn weather(seed: u64) -> Vec<bool> {
    let odds = Odds { lose_request: 200, lose_reply: 100, duplicate: 100, delay: 100 };
    let store = Chaos::seeded(seed, odds).over(Arc::new(memory()));
    let job = JobName::new("job").unwrap();
    let audit = crate::slot::Audit {
        verb: "pause".to_owned(),
        who: String::new(),
        host: String::new(),
        why: String::new(),
        at: chrono::DateTime::UNIX_EPOCH,
    };
    let mut lost = Vec::new();
    for _ in 0..100 {
        lost.push(store.pause(&job, None, &audit).await.is_err());
    }
    lost
}

#[tokio::test]
async fn the_same_seed_brings_the_same_faults() {
    assert_eq!(weather(7).await, weather(7).await);
    assert_ne!(weather(7).await, weather(8).await);
    let lost = weather(7).await.into_iter().filter(|lost| *lost).count();
    assert!((15..=45).contains(&lost), "{lost} of 100 lost, about 30 expected");
}
