//! Locks: others at the same ones, hints to other processes, and what is removed.

use std::sync::Arc;
use std::time::Duration;

use cronward::resource::{AcquireRequest, Acquired, LockRenewal};
use cronward::store::{LockStore, StoreOptions, open_locks};
use zookeeper_client::{Acls, CreateMode};

use crate::lock_words::{
    asking, each_is_served_once, held, hints_come_again, idle_locks_are_removed, one_is_told_elsewhere,
};
use crate::proxy::{Mode, Proxy};
use crate::words::LIMIT;
use crate::zookeeper_server::ZookeeperServer;

async fn locks_at(server: &ZookeeperServer, options: StoreOptions) -> Arc<dyn LockStore> {
    open_locks(&server.url(), options.with_op_timeout(Duration::from_secs(60))).await.unwrap()
}

async fn two_at(server: &ZookeeperServer) -> [Arc<dyn LockStore>; 2] {
    [locks_at(server, StoreOptions::default()).await, locks_at(server, StoreOptions::default()).await]
}

#[tokio::test]
async fn of_those_who_want_locks_at_once_one_holds_and_nobody_is_lost() {
    let server = ZookeeperServer::start();
    each_is_served_once(&two_at(&server).await).await;
}

#[tokio::test]
async fn whoever_may_hold_a_lock_is_told_in_another_process_and_nobody_else() {
    let server = ZookeeperServer::start();
    one_is_told_elsewhere(&two_at(&server).await).await;
}

#[tokio::test]
async fn hints_of_locks_come_again_after_a_restart_and_whoever_waits_is_told_to_look() {
    let mut server = ZookeeperServer::start();
    let two = two_at(&server).await;
    hints_come_again(&two, true, || {
        server.kill();
        server.start_again();
    })
    .await;
}

#[tokio::test]
async fn locks_that_nobody_needs_are_removed_and_others_are_kept() {
    let server = ZookeeperServer::start();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    idle_locks_are_removed(&[locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await]).await;
}

/// A node that is made anew has the versions of the one that was removed once more.
#[tokio::test]
async fn who_has_read_before_a_purge_writes_nothing_after_it() {
    let server = ZookeeperServer::start();
    let proxy = Proxy::before(server.port()).await;
    let patient = StoreOptions::default().with_op_timeout(Duration::from_secs(60));
    let slow = open_locks(&format!("zookeeper://127.0.0.1:{}", proxy.port()), patient).await.unwrap();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    let [store, hasty] = [locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await];
    let brief = |number| AcquireRequest { ttl: Duration::from_millis(1), ..asking(number, &["x"]) };
    // Two versions: that of the request, and that of the release.
    let gone = held(&*store, &brief(1)).await;
    store.release(&gone.exit(false)).await.unwrap();
    // Its session stands, and it has read that the lock is free.
    slow.locks(&[]).await.unwrap();
    let late = asking(0xabc, &["x"]);
    proxy.set(Mode::HoldRequest("00000000000000000000000000000abc"));
    let asked = tokio::spawn({
        let late = late.clone();
        async move { slow.acquire(&late).await.unwrap() }
    });
    proxy.held().await;
    let purged = async { while hasty.purge_locks().await.unwrap() == 0 {} };
    tokio::time::timeout(LIMIT, purged).await.expect("it goes");
    let lease = held(&*store, &asking(2, &["x"])).await;
    assert!(matches!(store.acquire(&asking(3, &["x"])).await.unwrap(), Acquired::Waiting { ahead: 1, .. }));
    proxy.set(Mode::Pass);
    assert!(matches!(asked.await.unwrap(), Acquired::Waiting { ahead: 2, .. }));
    assert_eq!(store.renew_lock(&lease).await.unwrap(), LockRenewal::Renewed);
}

#[tokio::test]
async fn what_somebody_else_wrote_beside_the_locks_keeps_nothing_from_being_removed() {
    let server = ZookeeperServer::start();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    let stores = [locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await];
    held(&*stores[0], &asking(1, &["x"])).await;
    let (client, open) = (server.connect().await, CreateMode::Persistent.with_acls(Acls::anyone_all()));
    for (node, text) in [("unreadable", "what is this"), ("No Name", "{}")] {
        client.create(&format!("/cronward/default/lock/{node}"), text.as_bytes(), &open).await.unwrap();
    }
    let gone = held(&*stores[0], &AcquireRequest { ttl: Duration::from_millis(1), ..asking(2, &["y"]) }).await;
    stores[0].release(&gone.exit(false)).await.unwrap();
    let purged = async { while stores[1].purge_locks().await.unwrap() == 0 {} };
    tokio::time::timeout(LIMIT, purged).await.expect("it goes");
}
