//! What a call costs: its round trips, counted by the time that a slow link adds to it.

use std::time::Duration;

use cronward::store::{Claim, ClaimRequest, Store};

use super::database::{Database, failed, granted, open, request, slot, slot_in};
use super::dialect::FIRST_CLAIM;
use crate::proxy::{Mode, Proxy};
use crate::round_trips::round_trips;

/// Added in each direction: much more than a call takes, also on a busy machine.
const DELAY: Duration = Duration::from_millis(120);

#[tokio::test]
async fn a_claim_costs_so_many_round_trips_a_renewal_two_and_a_refusal_one() {
    let database = Database::new().await;
    database.store().await;
    let proxy = Proxy::before(database.server.port()).await;
    let store = open(&database.url_by(proxy.port()));
    // The connection is made and has seen each statement once; an older slot is done, as a rule.
    let older = slot_in("job", -2);
    let done = granted(&*store, &ClaimRequest { past: true, ..request(&older, 1) }).await;
    store.complete(&done, &failed(&done), Duration::from_secs(60)).await.unwrap();
    let after = |job: &str, claimer| ClaimRequest { exclusive: true, ..request(&slot(job), claimer) };
    let warm = granted(&*store, &after("warm", 1)).await;
    store.fail(&warm, &failed(&warm), Duration::ZERO).await.unwrap();
    let lease = granted(&*store, &after("job", 1)).await;
    assert!(matches!(store.claim(&after("job", 2)).await.unwrap(), Claim::Held { .. }));
    let first_attempts = async |store: &dyn Store, job: &str| {
        for turn in 0..5 {
            let lease = granted(store, &after(&format!("{job}-{turn}"), 1)).await;
            store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
        }
    };
    first_attempts(&*store, "again").await;
    first_attempts(&*database.store().await, "elsewhere").await;
    for turn in 0..5 {
        // What each job has once is there from its first claim on.
        let earlier = ClaimRequest { exclusive: true, past: true, ..request(&slot_in(&format!("job-{turn}"), -2), 1) };
        let lease = granted(&*store, &earlier).await;
        store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    }
    proxy.set(Mode::Delay(DELAY));
    let claim = round_trips(DELAY, async |turn| {
        granted(&*store, &after(&format!("job-{turn}"), 1)).await;
    });
    assert_eq!(claim.await, FIRST_CLAIM, "a first claim that is granted, exclusively");
    let retry = round_trips(DELAY, async |turn| {
        granted(&*store, &after(&format!("again-{turn}"), 2)).await;
    });
    assert_eq!(retry.await, 2, "a later attempt");
    let retry = round_trips(DELAY, async |turn| {
        granted(&*store, &after(&format!("elsewhere-{turn}"), 2)).await;
    });
    assert_eq!(retry.await, 2, "the second attempt, by another node");
    let renewal = round_trips(DELAY, async |_| {
        store.renew(&lease).await.unwrap();
    });
    assert_eq!(renewal.await, 2, "a renewal");
    let refusal = round_trips(DELAY, async |_| {
        assert!(matches!(store.claim(&after("job", 2)).await.unwrap(), Claim::Held { .. }));
    });
    assert_eq!(refusal.await, 1, "a refusal");
}
