//! A client that goes away without a word: the server rolls back what it has begun.

use std::time::Duration;

use cronward::slot::{OutputTail, RunRecord};
use cronward::store::{ErrorKind, Renewal};

use super::dialect::{CLOSE_GATE, OPEN_GATE, WAIT_AT_GATE};
use super::suite::database::{Database, failed, granted, open_within, request, run, slot};

/// What is stopped in the middle of a transaction, which only the end of a run with an output has, keeps nobody waiting for long.
#[tokio::test]
async fn a_client_that_stops_in_the_middle_of_a_write_loses_its_locks() {
    let database = Database::new().await;
    let store = database.store().await;
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    database.before_each("UPDATE", WAIT_AT_GATE).await;
    let mut gate = database.connect().await;
    run(&mut gate, CLOSE_GATE).await;
    let (freeze, frozen) = tokio::sync::oneshot::channel::<()>();
    let (told, is_frozen) = tokio::sync::oneshot::channel::<()>();
    let (thaw, thawed) = std::sync::mpsc::channel::<()>();
    let stopped = std::thread::spawn({
        let (url, lease) = (database.url(), lease.clone());
        let run = RunRecord { output: Some(OutputTail::default()), ..failed(&lease) };
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = open_within(&url, Duration::from_secs(2));
                let call = tokio::spawn(async move { store.fail(&lease, &run, Duration::ZERO).await });
                frozen.await.unwrap();
                told.send(()).unwrap();
                // Nothing of this runtime goes on until then, the call neither.
                let _ = thawed.recv();
                call.await.unwrap()
            })
        }
    });
    database.until_waiting(1).await;
    freeze.send(()).unwrap();
    is_frozen.await.unwrap();
    // Now the row is written, in a transaction that nobody goes on with.
    run(&mut gate, OPEN_GATE).await;
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    thaw.send(()).unwrap();
    let outcome = tokio::task::spawn_blocking(|| stopped.join().unwrap()).await.unwrap();
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Unavailable);
}
