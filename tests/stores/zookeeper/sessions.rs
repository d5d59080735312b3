//! Sessions that end: no lease is kept by them, so none is lost with them; each is in doubt until it is renewed.

use std::time::Duration;

use cronward::store::{Applied, Claim, Renewal, Store, Wake};

use crate::proxy::{Mode, Proxy};
use crate::zookeeper::{eventually, granted, next, open, open_within, request, slot_of, store};
use crate::zookeeper_server::ZookeeperServer;

/// Sessions of at most two seconds.
const TICK: Duration = Duration::from_millis(100);

#[tokio::test]
async fn an_expired_session_loses_no_lease_and_a_new_one_is_begun() {
    let server = ZookeeperServer::start_with_tick(TICK);
    let link = Proxy::before(server.port()).await;
    let store = open_within(&format!("zookeeper://127.0.0.1:{}", link.port()), Duration::from_secs(10)).await;
    let other = crate::zookeeper::store(&server).await;
    let slot = slot_of("push");
    let lease = granted(&store, &request(&slot, 1)).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    link.set(Mode::BlackHole);
    // The servers give both sessions up; the lease stands all the same.
    eventually("the sessions have expired", async || server.sessions() <= 2).await;
    let error = store.renew(&lease).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(matches!(other.claim(&request(&slot, 2)).await.unwrap(), Claim::Held { .. }));
    link.set(Mode::Pass);
    assert_eq!(next(&mut hints).await, Wake::Resync, "holders are told to look");
    eventually("a new session is begun", async || {
        store.renew(&lease).await.is_ok_and(|renewal| renewal == Renewal::Renewed)
    })
    .await;
}

#[tokio::test]
async fn a_lease_does_not_end_with_the_one_who_claimed_it() {
    let server = ZookeeperServer::start_with_tick(TICK);
    let slot = slot_of("push");
    let claimer = store(&server).await;
    let lease = granted(&claimer, &request(&slot, 1)).await;
    drop(claimer);
    let other = store(&server).await;
    eventually("its session is over", async || server.sessions() <= 1).await;
    assert!(matches!(other.claim(&request(&slot, 2)).await.unwrap(), Claim::Held { .. }));
    assert_eq!(other.renew(&lease).await.unwrap(), Renewal::Renewed);
}

#[tokio::test]
async fn a_lost_reply_may_have_been_applied_and_burns_no_attempt() {
    let server = ZookeeperServer::start();
    let link = Proxy::before(server.port()).await;
    let store = open_within(&format!("zookeeper://127.0.0.1:{}", link.port()), Duration::from_secs(10)).await;
    let lease = granted(&store, &request(&slot_of("push"), 1)).await;
    link.set(Mode::LoseReplies);
    let error = store.renew(&lease).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    link.set(Mode::Pass);
    eventually("the lease is renewed", async || {
        store.renew(&lease).await.is_ok_and(|renewal| renewal == Renewal::Renewed)
    })
    .await;
    let again = store.claim(&request(&slot_of("push"), 1)).await.unwrap();
    assert!(matches!(again, Claim::Claimed { attempt: 1, used: 1, .. }), "{again:?}");
}

#[tokio::test]
async fn an_ensemble_that_is_down_is_told_at_once_and_nothing_was_applied() {
    let mut server = ZookeeperServer::start();
    server.kill();
    let store = open(&server.url()).await;
    let error = store.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!(error.applied, Applied::No, "{error}");
    assert!(error.is_transient(), "{error}");
    server.start_again();
    eventually("it is there again", async || store.claim(&request(&slot_of("a"), 1)).await.is_ok()).await;
}
