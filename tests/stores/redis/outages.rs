//! Servers that are away, stop, restart; links that lose, cut and swallow.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Applied, Claim, ClaimRequest, ErrorKind, Renewal, Store};

use crate::proxy::{Mode, Proxy};
use crate::redis::{LIMIT, ended, eventually, granted, mark_of, open, open_within, request, slot_of, store};
use crate::redis_server::RedisServer;

const SHORT: Duration = Duration::from_secs(3);

fn through(proxy: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", proxy.port())
}

#[tokio::test]
async fn a_server_that_is_down_at_the_start_is_one_quick_error_and_later_works() {
    let mut server = RedisServer::start();
    server.kill();
    let store = store(&server).await;
    let slot = slot_of("a");
    // A call that waited for its time limit would be a time-out.
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
    assert!(error.message.starts_with("cannot connect"), "{error}");
    server.start_again();
    granted(&store, &request(&slot, 1)).await;
}

#[tokio::test]
async fn a_server_that_restarts_costs_one_error_at_most() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let lease = granted(&store, &request(&slot_of("a"), 1)).await;
    server.restart_with_data();
    let _ = store.renew(&lease).await;
    store.renew(&lease).await.unwrap();
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_unavailable_until_it_has() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let (done, held, new) = (slot_of("done"), request(&slot_of("held"), 1), request(&slot_of("new"), 1));
    let lease = granted(&store, &request(&done, 1)).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), LIMIT).await.unwrap();
    let lease = granted(&store, &ClaimRequest { lease_ttl: Duration::from_secs(3_600), ..held }).await;
    server.restart_loading();
    // The connection from before is gone: that may be told once.
    let _ = store.jobs().await;
    let calls = [
        store.claim(&new).await.map(drop),
        store.claim(&request(&done, 2)).await.map(drop),
        store.renew(&lease).await.map(drop),
        store.inspect(std::slice::from_ref(&done)).await.map(drop),
    ];
    for error in calls.map(Result::unwrap_err) {
        assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
        assert!(error.is_transient() && error.message.contains("still loading"), "{error}");
    }
    assert!(server.errors("LOADING") >= 4);

    server.end_loading();
    assert!(matches!(store.claim(&request(&done, 2)).await.unwrap(), Claim::Done(_)), "what was done stays done");
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    assert!(matches!(store.claim(&new).await.unwrap(), Claim::Claimed { attempt: 1, used: 1, .. }));
}

#[tokio::test]
async fn a_replica_that_tells_nothing_without_its_primary_is_unavailable() {
    let server = RedisServer::start_with(&[("replica-serve-stale-data", "no")]);
    let store = store(&server).await;
    let done = slot_of("done");
    let lease = granted(&store, &request(&done, 1)).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), LIMIT).await.unwrap();
    // Nobody answers there.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.command(&["REPLICAOF", "127.0.0.1", &silent.local_addr().unwrap().port().to_string()]);
    for claim in [request(&done, 2), request(&slot_of("new"), 1)] {
        let error = store.claim(&claim).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
        assert!(error.is_transient() && error.message.contains("name the primary"), "{error}");
    }
    assert!(server.errors("MASTERDOWN") >= 2);
    server.command(&["REPLICAOF", "NO", "ONE"]);
    assert!(matches!(store.claim(&request(&done, 2)).await.unwrap(), Claim::Done(_)), "what was done stays done");
    granted(&store, &request(&slot_of("new"), 1)).await;
}

#[tokio::test]
async fn a_lost_reply_burns_no_attempt() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open_within(&through(&proxy), SHORT).await;
    // Now the server knows the script: the reply that is lost is the grant.
    granted(&store, &request(&slot_of("warm"), 1)).await;
    let slot = slot_of("a");

    proxy.set(Mode::LoseReplies);
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe), "{error}");
    let counter = format!("{}:attempts", mark_of(&slot));
    assert_eq!(server.text(&["GET", &counter]), Some("1".to_owned()), "it was granted all the same");
    proxy.set(Mode::Pass);
    proxy.cut();
    let mut again = None;
    eventually("the same token is told its grant", async || {
        again = store.claim(&request(&slot, 1)).await.ok();
        again.is_some()
    })
    .await;
    assert!(matches!(again, Some(Claim::Claimed { attempt: 1, used: 1, .. })), "{again:?}");
    assert_eq!(server.text(&["GET", &counter]), Some("1".to_owned()));
}

#[tokio::test]
async fn a_lost_request_was_not_applied_and_can_be_repeated() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open_within(&through(&proxy), SHORT).await;
    store.jobs().await.unwrap();
    let slot = slot_of("a");
    proxy.set(Mode::LoseRequests);
    assert_eq!(store.claim(&request(&slot, 1)).await.unwrap_err().applied, Applied::Maybe);
    assert_eq!(server.number(&["DBSIZE"]), 0);
    proxy.set(Mode::Pass);
    proxy.cut();
    eventually("it is granted", async || store.claim(&request(&slot, 1)).await.is_ok()).await;
}

#[tokio::test]
async fn a_reply_cut_in_the_middle_is_no_answer() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open(&through(&proxy)).await;
    let slot = slot_of("a");
    granted(&store, &request(&slot_of("warm"), 1)).await;
    proxy.set_standing(Mode::CutReply(3));
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::Maybe), "{error}");
    let again = store.claim(&request(&slot, 1)).await.unwrap();
    assert!(matches!(again, Claim::Claimed { attempt: 1, .. }), "{again:?}");
}

#[tokio::test]
async fn a_server_that_stands_still_times_out_and_later_works() {
    let server = RedisServer::start();
    let store = open_within(&server.url(), SHORT).await;
    let slot = slot_of("a");
    granted(&store, &request(&slot_of("warm"), 1)).await;
    server.pause();
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::Maybe), "{error}");
    // The second gives the link up; the third finds that it can not connect.
    let _ = store.claim(&request(&slot, 1)).await.unwrap_err();
    let error = store.claim(&request(&slot, 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Timeout, Applied::No), "{error}");
    server.unpause();
    let mut answer = None;
    eventually("it answers again", async || {
        answer = store.claim(&request(&slot, 1)).await.ok();
        answer.is_some()
    })
    .await;
    assert!(matches!(answer, Some(Claim::Claimed { attempt: 1, used: 1, .. })), "{answer:?}");
}

#[tokio::test]
async fn a_link_that_silently_drops_is_given_up_after_two_calls() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open_within(&through(&proxy), SHORT).await;
    let slot = slot_of("a");
    granted(&store, &request(&slot_of("warm"), 1)).await;
    proxy.set_standing(Mode::BlackHole);
    for _ in 0..2 {
        assert_eq!(store.claim(&request(&slot, 1)).await.unwrap_err().kind, ErrorKind::Timeout);
    }
    granted(&store, &request(&slot, 1)).await;
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn callers_who_give_up_count_against_a_silent_link_too() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open(&through(&proxy)).await;
    let slot = slot_of("a");
    granted(&store, &request(&slot_of("warm"), 1)).await;
    proxy.set_standing(Mode::BlackHole);
    for _ in 0..2 {
        tokio::time::timeout(Duration::from_millis(50), store.claim(&request(&slot, 1))).await.unwrap_err();
    }
    let granted = tokio::time::timeout(LIMIT, store.claim(&request(&slot, 1))).await.unwrap().unwrap();
    assert!(matches!(granted, Claim::Claimed { .. }));
}

#[tokio::test]
async fn many_calls_at_once_share_one_connection_and_one_failure() {
    let mut server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = std::sync::Arc::new(open(&through(&proxy)).await);
    let ask = |n: u32| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move { store.claim(&request(&slot_of(&format!("job{n}")), 1)).await })
    };
    for answer in futures_util::future::join_all((0..50).map(ask)).await {
        answer.unwrap().unwrap();
    }
    assert_eq!(proxy.connections(), 1);
    server.kill();
    let _ = store.jobs().await;
    let all = futures_util::future::join_all((50..100).map(ask));
    for answer in tokio::time::timeout(LIMIT, all).await.expect("no queue of attempts to connect") {
        answer.unwrap().unwrap_err();
    }
}
