//! The first claim of a slot, on a database server: whatever is in the way is seen, and a connection that had died costs nothing.

use std::time::Duration;

use cronward::store::{Claim, ClaimRequest};

use super::database::{Database, audit, failed, granted, open, request, slot, slot_in};

/// A store that has not seen the slot before says so, and writes nothing.
#[tokio::test]
async fn whatever_is_in_the_way_is_seen_by_the_first_claim() {
    let database = Database::new().await;
    let store = database.store().await;
    let fresh = async |request: &ClaimRequest| open(&database.url()).claim(request).await.unwrap();
    assert_eq!(fresh(&request(&slot_in("job", -3), 1)).await, Claim::Closed);
    assert!(matches!(fresh(&request(&slot_in("job", 2), 1)).await, Claim::Early { .. }));

    let paused = request(&slot("paused"), 1);
    store.pause(paused.slot.job(), None, &audit("pause")).await.unwrap();
    assert!(matches!(fresh(&paused).await, Claim::Paused { .. }));
    store.resume(paused.slot.job(), &audit("pause")).await.unwrap();
    assert!(matches!(fresh(&paused).await, Claim::Claimed { attempt: 1, .. }));

    let older = slot_in("long", -1);
    let lease = granted(&*store, &ClaimRequest { past: true, ..request(&older, 1) }).await;
    let newer = ClaimRequest { exclusive: true, ..request(&slot_in("long", 0), 2) };
    assert!(matches!(fresh(&newer).await, Claim::Blocked { .. }));
    assert_eq!(database.number("SELECT count(*) FROM cronward_slots").await, 2);
    store.fail(&lease, &failed(&lease), Duration::ZERO).await.unwrap();
    assert!(matches!(fresh(&newer).await, Claim::Claimed { attempt: 1, .. }));
    assert!(matches!(fresh(&request(&newer.slot, 3)).await, Claim::Held { .. }));
}

#[tokio::test]
async fn a_lease_without_end_is_kept_as_one() {
    let database = Database::new().await;
    let store = database.store().await;
    let endless = ClaimRequest { lease_ttl: Duration::MAX, ..request(&slot("job"), 1) };
    let lease = granted(&*store, &endless).await;
    assert!(matches!(open(&database.url()).claim(&request(&slot("job"), 2)).await.unwrap(), Claim::Held { .. }));
    store.renew(&lease).await.unwrap();
}

/// A connection that died while it was idle costs nothing, also where the first thing to be sent is a claim.
#[tokio::test]
async fn a_claim_on_a_connection_that_had_died_is_one_grant() {
    let database = Database::new().await;
    let store = database.store().await;
    database.kill_others().await;
    let claim = store.claim(&request(&slot("job"), 1)).await.unwrap();
    assert!(matches!(claim, Claim::Claimed { attempt: 1, used: 1, .. }), "{claim:?}");
}
