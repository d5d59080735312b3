//! Scripts: how many calls an operation is, and what becomes of it when the server has forgotten them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Claim, Store};

use crate::redis::{audit, ended, granted, request, slot_of, store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn a_claim_and_its_completion_are_two_round_trips_and_a_lost_claim_is_one() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let warm = granted(&store, &request(&slot_of("warm"), 1)).await;
    store.complete(&warm, &ended(&warm, Outcome::Success), Duration::from_secs(60)).await.unwrap();

    server.command(&["CONFIG", "RESETSTAT"]);
    let slot = slot_of("billing");
    let lease = granted(&store, &request(&slot, 1)).await;
    assert_eq!((server.calls("evalsha"), server.calls("eval")), (1, 0));
    assert!(matches!(store.claim(&request(&slot, 2)).await.unwrap(), Claim::Held { .. }));
    assert_eq!((server.calls("evalsha"), server.calls("eval")), (2, 0));
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!((server.calls("evalsha"), server.calls("eval")), (3, 0));
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_all_the_time_fails_nothing() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let stop = Arc::new(AtomicBool::new(false));
    let flushing = {
        let (stop, mut connection) = (Arc::clone(&stop), server.connect());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
            }
        })
    };
    for n in 0..30 {
        let slot = slot_of(&format!("job{n}"));
        let first = granted(&store, &request(&slot, 1)).await;
        store.renew(&first).await.unwrap();
        store.fail(&first, &ended(&first, Outcome::Failure), Duration::ZERO).await.unwrap();
        let second = granted(&store, &request(&slot, 2)).await;
        store.give_back(&second, &ended(&second, Outcome::GivenBack)).await.unwrap();
        let third = granted(&store, &request(&slot, 3)).await;
        store.complete(&third, &ended(&third, Outcome::Success), Duration::from_secs(60)).await.unwrap();
        store.close(&slot, 3, &third.node).await.unwrap();
        store.reset(&slot, &audit("reset")).await.unwrap();
        store.inspect(&[slot]).await.unwrap();
        store.nodes().await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    flushing.join().unwrap();
    assert!(server.calls("eval") > 0, "the scripts were never forgotten: nothing was tested");
}
