//! What stands in etcd, and what stands there no longer.

use std::time::Duration;

use cronward::slot::{Audit, Outcome};
use cronward::store::{Applied, Claim, ErrorKind, Renewal, Settlement, Store};

use crate::etcd::{ended, eventually, granted, request, slot_of, store};
use crate::etcd_server::EtcdServer;
use crate::words::audit;
use crate::words::of_two_that_exclude_each_other_one_is_granted;

#[tokio::test]
async fn a_person_can_read_what_a_slot_is_about() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let lease = granted(&store, &request(&slot, 1)).await;
    let mark = server.get(&format!("/cronward/default/mark/{slot}")).unwrap();
    assert!(mark.value.contains("\"running\"") && mark.value.contains("\"node-1\""), "{}", mark.value);
    assert_ne!(mark.lease, 0, "a lease's mark stands under an etcd lease");
    assert_eq!(server.get(&format!("/cronward/default/attempts/{slot}")).unwrap().value, "1");
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    let done = server.get(&format!("/cronward/default/mark/{slot}")).unwrap();
    assert!(done.value.contains("\"done\""), "{}", done.value);
    assert_eq!(done.lease, 0, "a done marker does not go with the lease of its run");
}

#[tokio::test]
async fn a_renewal_writes_nothing() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let lease = granted(&store, &request(&slot_of("push"), 1)).await;
    let before = server.revision();
    for _ in 0..5 {
        assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn no_etcd_lease_is_left_behind() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    for claimer in 1..=3 {
        let lease = granted(&store, &request(&slot, claimer)).await;
        let longer = cronward::slot::Lease { ttl: Duration::from_secs(120), ..lease.clone() };
        assert_eq!(store.renew(&longer).await.unwrap(), Renewal::Renewed);
        store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    }
    eventually("every etcd lease is given up", async || server.leases() == 0).await;
}

#[tokio::test]
async fn claimers_that_lose_leave_no_etcd_lease() {
    let server = EtcdServer::start();
    let slot = slot_of("push");
    let mut claims = Vec::new();
    for claimer in 1..=16 {
        let (store, request) = (store(&server).await, request(&slot, claimer));
        claims.push(tokio::spawn(async move { store.claim(&request).await.unwrap() }));
    }
    let mut winners = 0;
    for claim in claims {
        winners += u32::from(matches!(claim.await.unwrap(), Claim::Claimed { .. }));
    }
    assert_eq!(winners, 1);
    eventually("only the winner's lease is left", async || server.leases() == 1).await;
}

#[tokio::test]
async fn a_lease_shorter_than_etcds_shortest_lasts_longer_not_shorter() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let short = cronward::store::ClaimRequest { lease_ttl: Duration::from_millis(300), ..request(&slot, 1) };
    let lease = granted(&store, &short).await;
    eventually("it lapses by itself", async || {
        matches!(store.claim(&request(&slot, 2)).await.unwrap(), Claim::Claimed { attempt: 2, .. })
    })
    .await;
    let lasted = crate::etcd::now() - lease.claimed_at;
    assert!(lasted.num_milliseconds() >= 300, "{lasted}");
}

#[tokio::test]
async fn what_is_older_than_the_retention_is_removed_and_the_rest_is_kept() {
    let server = EtcdServer::start();
    let young = store(&server).await;
    let options = cronward::store::StoreOptions::default()
        .with_retention(Duration::ZERO)
        .with_op_timeout(Duration::from_secs(10));
    let clock = std::sync::Arc::new(cronward::clock::SystemClock);
    let forgetful = cronward::store::etcd::EtcdStore::open(&server.url(), options, clock).await.unwrap();
    let ended_slot = |job: &str| {
        let slot = slot_of(job);
        cronward::slot::Slot::new(slot.job().clone(), slot.start(), slot.start() + chrono::TimeDelta::minutes(30))
            .unwrap()
    };
    let audit = cronward::slot::Audit {
        verb: "mark_done".into(),
        who: "ann".into(),
        host: "desk".into(),
        why: String::new(),
        at: crate::etcd::now(),
    };
    young.mark_done(&ended_slot("short"), &audit, Duration::from_millis(1)).await.unwrap();
    young.mark_done(&ended_slot("long"), &audit, Duration::from_secs(3_600)).await.unwrap();
    let running = granted(&young, &request(&slot_of("running"), 1)).await;
    assert_eq!(young.purge().await.unwrap(), 0);
    let mut gone = 0;
    eventually("what is over is removed", async || {
        gone += forgetful.purge().await.unwrap();
        gone > 0
    })
    .await;
    assert_eq!(gone, 1, "a marker that stands keeps its records");
    let left: Vec<String> = server.get_all("/cronward/default/slot/").into_iter().map(|found| found.key).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(young.renew(&running).await.unwrap(), Renewal::Renewed);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_slots_that_exclude_each_other_are_never_both_granted() {
    let server = EtcdServer::start();
    let (one, other) = (store(&server).await, store(&server).await);
    of_two_that_exclude_each_other_one_is_granted([std::sync::Arc::new(one), std::sync::Arc::new(other)]).await;
}

/// It is told where it is asked for, and left as it is.
#[tokio::test]
async fn what_somebody_else_wrote_of_a_job_keeps_no_run_from_its_end_and_no_purge_from_its_slots() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let (key, text) = ("/cronward/default/latest/push", "somebody else's");
    server.set(key, text, false);
    let lease = granted(&store, &request(&slot, 1)).await;
    let settled = store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(settled, Settlement::Recorded);
    let error = store.latest(&[slot.job().clone()]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    store.purge().await.unwrap();
    assert_eq!(server.get_all(key).len(), 1);
    assert_eq!(server.get(key).unwrap().value, text);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_for_its_content() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    // More than etcd takes, and more than its gRPC server takes.
    for length in [1_800_000, 3_000_000] {
        let audit = Audit { why: "x".repeat(length), ..audit("pause") };
        let error = store.pause(slot_of("push").job(), None, &audit).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Content, Applied::No), "{length}: {error}");
        assert!(error.message.contains("--max-request-bytes"), "{error}");
    }
}
