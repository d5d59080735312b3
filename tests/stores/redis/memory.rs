//! A server whose memory is full: no new lease, but what runs can be ended.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Applied, Claim, ErrorKind, Release, Renewal, Settlement, Store};

use crate::redis::{audit, ended, granted, request, slot_of, store};
use crate::redis_server::RedisServer;

/// Fills the memory until the server refuses a write.
fn fill(server: &RedisServer) {
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = server.try_command(&["SET", "filler", "x"]).unwrap_err();
    assert_eq!(refused.code(), Some("OOM"));
}

#[tokio::test]
async fn what_runs_can_be_ended_when_memory_is_full() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slots: Vec<_> = ["a", "b", "c", "d", "e"].map(slot_of).to_vec();
    let mut leases = Vec::new();
    for slot in &slots {
        leases.push(granted(&store, &request(slot, 1)).await);
    }
    fill(&server);

    let [a, b, c, d, e] = &leases[..] else { unreachable!() };
    assert_eq!(store.renew(a).await.unwrap(), Renewal::Renewed);
    let minute = Duration::from_secs(60);
    assert_eq!(store.complete(a, &ended(a, Outcome::Success), minute).await.unwrap(), Settlement::Recorded);
    assert_eq!(store.fail(b, &ended(b, Outcome::Failure), minute).await.unwrap(), Release::Released);
    assert_eq!(store.fail(c, &ended(c, Outcome::Failure), Duration::ZERO).await.unwrap(), Release::Released);
    assert_eq!(store.give_back(d, &ended(d, Outcome::GivenBack)).await.unwrap(), Release::Released);
    store.unlock(&slots[4], &audit("unlock")).await.unwrap();
    store.mark_done(&slots[4], &audit("mark_done"), minute).await.unwrap();
    assert_eq!(e.attempt, 1);

    let (_, records) = store.inspect(&slots).await.unwrap();
    for (record, outcome) in records.iter().zip([
        Outcome::Success,
        Outcome::Failure,
        Outcome::Failure,
        Outcome::GivenBack,
        Outcome::LostLease,
    ]) {
        assert_eq!(record.runs[0].outcome, Some(outcome));
    }
    let jobs: Vec<_> = slots.iter().map(|slot| slot.job().clone()).collect();
    let ends = store.latest(&jobs).await.unwrap().into_iter().map(|latest| latest.end.map(|end| end.outcome));
    let (done, bad) = (Some(Outcome::Success), Some(Outcome::Failure));
    assert_eq!(ends.collect::<Vec<_>>(), [done, bad, bad, Some(Outcome::GivenBack), None]);
}

#[tokio::test]
async fn a_claim_refused_for_memory_changes_nothing_and_later_costs_no_attempt() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    fill(&server);
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
    assert!(error.message.contains("maxmemory"), "{error}");
    assert_eq!(server.number(&["DBSIZE"]), 0);

    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(store.claim(&request(&slot, 1)).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

#[tokio::test]
async fn a_holder_gets_its_lease_back_from_an_empty_server_whose_memory_is_full() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    let lease = granted(&store, &request(&slot, 1)).await;
    server.command(&["FLUSHALL"]);
    fill(&server);
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Restored);
}
