//! The revision of a grant: what a transaction of the command's own can compare.

use std::time::Duration;

use cronward::slot::{Lease, Outcome};
use cronward::store::{Claim, ClaimRequest, Renewal, Store};

use crate::etcd::{ended, eventually, request, slot_of, store};
use crate::etcd_server::EtcdServer;

/// Claims; the lease, and the revision that it stands by.
async fn granted_at(store: &impl Store, request: &ClaimRequest) -> (Lease, u64) {
    match store.claim(request).await.unwrap() {
        Claim::Claimed { attempt, at, revision, .. } => (request.granted(attempt, at), revision.unwrap()),
        other => panic!("not granted: {other:?}"),
    }
}

#[tokio::test]
async fn an_overtaken_holder_cannot_write_and_each_later_grant_has_the_larger_revision() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let mark = format!("/cronward/default/mark/{slot}");
    let (first, one) = granted_at(&store, &request(&slot, 1)).await;
    assert!(server.set_while(&mark, one, ("/own/hour", "first")));
    assert_eq!(store.renew(&first).await.unwrap(), Renewal::Renewed);
    assert!(server.set_while(&mark, one, ("/own/hour", "first again")), "a renewal leaves the mark as it was written");
    // The wait stands at the same key, so the key was never gone in between.
    store.fail(&first, &ended(&first, Outcome::Failure), Duration::from_millis(1)).await.unwrap();
    assert!(server.get(&mark).is_some_and(|found| found.value.contains("backoff")));
    assert!(!server.set_while(&mark, one, ("/own/hour", "too late")), "while nobody holds it either");
    let (_, two) = granted_at(&store, &request(&slot, 2)).await;
    let (_, three) = granted_at(&store, &request(&slot_of("pull"), 3)).await;
    assert!(one < two && two < three, "{one}, {two}, {three}");
    assert!(!server.set_while(&mark, one, ("/own/hour", "too late")));
    assert!(server.set_while(&mark, two, ("/own/hour", "second")));
    assert_eq!(server.get("/own/hour").unwrap().value, "second");
}

#[tokio::test]
async fn a_claim_that_is_repeated_is_told_the_same_revision() {
    let server = EtcdServer::start();
    let request = request(&slot_of("push"), 1);
    let (_, first) = granted_at(&store(&server).await, &request).await;
    let (_, again) = granted_at(&store(&server).await, &request).await;
    assert_eq!(first, again);
}

/// A lease that was lost and is set again is a new mark: its holder's own compare fails from there on, never another's.
#[tokio::test]
async fn a_lease_that_is_set_again_stands_by_a_larger_revision() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let mark = format!("/cronward/default/mark/{slot}");
    let (lease, revision) = granted_at(&store, &request(&slot, 1)).await;
    assert!(server.revoke(server.get(&mark).unwrap().lease));
    eventually("the mark is gone", async || server.get(&mark).is_none()).await;
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Restored);
    assert!(!server.set_while(&mark, revision, ("/own/hour", "x")));
    let (_, now) = granted_at(&store, &request(&slot, 1)).await;
    assert!(now > revision, "the same claim, asked again");
}
