//! What a work learns of its lease: by the clock, at each instant, also where nothing has had a turn.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::{Clock, ManualClock, RuntimeClock};
use crate::job::OnLost;
use crate::service::{Guard, GuardBuilder, Hold, RunOutcome, Standing};
use crate::store::StoreOptions;
use crate::store::memory::MemoryStore;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap()))
}

/// A lease of a minute on a clock that the test moves.
fn builder(clock: &Arc<ManualClock>) -> GuardBuilder {
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), clock.clone()));
    Guard::builder(store, "push", "a").lease_ttl(Duration::from_secs(60)).clock(clock.clone())
}

#[tokio::test]
async fn a_work_that_stood_still_past_its_lease_is_in_doubt_before_any_task_has_had_a_turn() {
    for on_lost in [OnLost::Continue, OnLost::Kill] {
        let clock = clock();
        let guard = builder(&clock).on_lost(on_lost).build().unwrap();
        let stalls = guard.run_current(|hold| {
            let clock = &clock;
            async move {
                clock.advance(Duration::from_secs(57));
                assert_eq!(hold.standing(), Standing::Held, "{on_lost:?}");
                clock.advance(Duration::from_secs(2));
                assert_eq!(hold.standing(), Standing::InDoubt, "{on_lost:?}");
                assert_eq!(hold.lost().await, Standing::InDoubt, "{on_lost:?}");
                Ok::<_, io::Error>(())
            }
        });
        let outcome = stalls.await.unwrap();
        assert!(outcome.last_run().unwrap().overlapped, "{on_lost:?}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_has_ended_holds_nothing_while_the_next_one_does() {
    let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T14:10:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
    let guard = Guard::builder(store, "push", "a").retry_delay(Duration::ZERO).wait(Duration::MAX).clock(clock);
    let guard = guard.build().unwrap();
    let holds: Mutex<Vec<Hold>> = Mutex::default();
    let answer = guard.run_current(|hold| {
        holds.lock().unwrap().push(hold.clone());
        let first = holds.lock().unwrap()[0].clone();
        async move {
            if hold.attempt() == 1 {
                return Err(io::Error::other("not yet"));
            }
            assert_eq!((first.standing(), hold.standing()), (Standing::InDoubt, Standing::Held));
            assert_eq!(first.lost().await, Standing::InDoubt);
            Ok(())
        }
    });
    assert!(answer.await.unwrap().is_done());
    for hold in holds.into_inner().unwrap() {
        assert_eq!((hold.standing(), hold.lost().await), (Standing::InDoubt, Standing::InDoubt));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn where_the_runtime_is_gone_the_lease_is_in_doubt_and_the_loss_is_told() {
    let (owner, guard) = (runtime(), builder(&clock()).build().unwrap());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let hold = owner.block_on(async move {
        tokio::spawn(async move {
            let run = guard.run_current(|hold| {
                let _ = sender.take().map(|sender| sender.send(hold));
                std::future::pending::<Result<(), io::Error>>()
            });
            let outcome: RunOutcome<(), io::Error> = run.await.unwrap();
            panic!("it never ends: {outcome:?}");
        });
        receiver.await.unwrap()
    });
    assert_eq!(hold.standing(), Standing::Held);
    drop(owner);
    assert_eq!(hold.standing(), Standing::InDoubt);
    let lost = async { tokio::time::timeout(Duration::from_secs(60), hold.lost()).await };
    assert_eq!(runtime().block_on(lost), Ok(Standing::InDoubt));
}
