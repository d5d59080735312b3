//! What a call costs: its round trips, counted by the time that a slow link adds to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cronward::store::{Claim, Store};

use crate::bench::{Database, failed, granted, open, request, slot};
use crate::proxy::{Mode, Proxy};

/// Added in each direction: much more than a call takes on a fast link, also on a busy machine.
const DELAY: Duration = Duration::from_millis(40);

/// Whole round trips in the shortest of several calls.
#[allow(clippy::disallowed_methods, reason = "the figure is a time")]
async fn round_trips(mut call: impl AsyncFnMut(u32)) -> u128 {
    let mut shortest = Duration::MAX;
    for turn in 0..5 {
        let begun = Instant::now();
        call(turn).await;
        shortest = shortest.min(begun.elapsed());
    }
    shortest.as_millis() / (2 * DELAY).as_millis()
}

#[tokio::test]
async fn a_step_costs_two_round_trips_and_a_refusal_one() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store: Arc<dyn Store> = open(&format!("postgres://owner:secret@127.0.0.1:{}/{}", proxy.port(), database.name));
    // The connection is made and has seen each statement once.
    let warm = granted(&*store, &request(&slot("warm"), 1)).await;
    store.fail(&warm, &failed(&warm), Duration::ZERO).await.unwrap();
    let lease = granted(&*store, &request(&slot("job"), 1)).await;
    proxy.set(Mode::Delay(DELAY));
    let claim = round_trips(async |turn| {
        granted(&*store, &request(&slot(&format!("job-{turn}")), 1)).await;
    });
    assert_eq!(claim.await, 2, "a claim that is granted");
    let renewal = round_trips(async |_| {
        store.renew(&lease).await.unwrap();
    });
    assert_eq!(renewal.await, 2, "a renewal");
    let refusal = round_trips(async |_| {
        assert!(matches!(store.claim(&request(&slot("job"), 2)).await.unwrap(), Claim::Held { .. }));
    });
    assert_eq!(refusal.await, 1, "a refusal");
}
