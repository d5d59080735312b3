//! Servers that stop and come back.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Claim, Renewal, Settlement, Store, Wake};

use crate::zookeeper::{ended, eventually, granted, next, open_within, request, slot_of, store};
use crate::zookeeper_server::ZookeeperServer;

#[tokio::test]
async fn a_restart_loses_nothing_that_was_answered() {
    let mut server = ZookeeperServer::start();
    let store = open_within(&server.url(), Duration::from_secs(10)).await;
    let (held, done) = (slot_of("held"), slot_of("done"));
    let lease = granted(&store, &request(&held, 1)).await;
    let finished = granted(&store, &request(&done, 2)).await;
    let settled = store.complete(&finished, &ended(&finished, Outcome::Success), Duration::from_secs(3_600)).await;
    assert_eq!(settled.unwrap(), Settlement::Recorded);
    server.kill();
    let error = store.renew(&lease).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    server.start_again();
    let mut renewed = None;
    eventually("the lease can be renewed", async || {
        renewed = store.renew(&lease).await.ok();
        renewed.is_some()
    })
    .await;
    assert_eq!(renewed, Some(Renewal::Renewed));
    assert!(matches!(store.claim(&request(&done, 3)).await.unwrap(), Claim::Done(_)));
}

#[tokio::test]
async fn a_watch_comes_back_after_a_restart_and_says_that_hints_may_be_lost() {
    let mut server = ZookeeperServer::start();
    let (here, there) = (store(&server).await, store(&server).await);
    let mut hints = there.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.kill();
    server.start_again();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let slot = slot_of("a");
    let mut claimed = None;
    eventually("the other one is back as well", async || {
        claimed = here.claim(&request(&slot, 1)).await.ok();
        claimed.is_some()
    })
    .await;
    let lease = request(&slot, 1).granted(1, crate::zookeeper::now());
    here.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    loop {
        match next(&mut hints).await {
            Wake::Resync => {}
            wake => {
                assert_eq!(wake.to_string(), format!("released {slot}"));
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_namespace_that_is_gone_is_made_again() {
    let server = ZookeeperServer::start();
    let store = store(&server).await;
    let lease = granted(&store, &request(&slot_of("a"), 1)).await;
    let client = server.connect().await;
    crate::zookeeper_server::remove_all(&client, "/cronward").await.unwrap();
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Restored);
    assert_eq!(store.jobs().await.unwrap(), []);
    granted(&store, &request(&slot_of("b"), 1)).await;
}
