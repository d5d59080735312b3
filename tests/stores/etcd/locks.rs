//! Locks: others at the same ones, hints to other processes, and what is removed.

use std::sync::Arc;
use std::time::Duration;

use cronward::resource::AcquireRequest;
use cronward::store::{LockStore, StoreOptions, open_locks};

use crate::etcd_server::EtcdServer;
use crate::lock_words::{
    asking, each_is_served_once, held, hints_come_again, idle_locks_are_removed, lock, one_is_told_elsewhere,
};
use crate::words::LIMIT;

async fn locks_at(server: &EtcdServer, options: StoreOptions) -> Arc<dyn LockStore> {
    open_locks(&server.url(), options.with_op_timeout(Duration::from_secs(60))).await.unwrap()
}

async fn two_at(server: &EtcdServer) -> [Arc<dyn LockStore>; 2] {
    [locks_at(server, StoreOptions::default()).await, locks_at(server, StoreOptions::default()).await]
}

#[tokio::test]
async fn of_those_who_want_locks_at_once_one_holds_and_nobody_is_lost() {
    let server = EtcdServer::start();
    each_is_served_once(&two_at(&server).await).await;
}

#[tokio::test]
async fn whoever_may_hold_a_lock_is_told_in_another_process_and_nobody_else() {
    let server = EtcdServer::start();
    one_is_told_elsewhere(&two_at(&server).await).await;
}

/// The watch goes on from where it was: nothing is lost.
#[tokio::test]
async fn hints_of_locks_come_again_after_a_restart() {
    let mut server = EtcdServer::start();
    let two = two_at(&server).await;
    hints_come_again(&two, false, || {
        server.kill();
        server.start_again();
    })
    .await;
}

#[tokio::test]
async fn locks_that_nobody_needs_are_removed_and_others_are_kept() {
    let server = EtcdServer::start();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    idle_locks_are_removed(&[locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await]).await;
}

#[tokio::test]
async fn what_somebody_else_wrote_beside_the_locks_keeps_nothing_from_being_removed() {
    let server = EtcdServer::start();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    let [store, hasty] = [locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await];
    server.set("/cronward/default/lock/unreadable", "what is this", false);
    let gone = held(&*store, &AcquireRequest { ttl: Duration::from_millis(1), ..asking(2, &["y"]) }).await;
    store.release(&gone.exit(false)).await.unwrap();
    let purged = async { while hasty.purge_locks().await.unwrap() == 0 {} };
    tokio::time::timeout(LIMIT, purged).await.expect("it goes");
}

#[tokio::test]
async fn more_locks_are_shown_than_one_transaction_may_name() {
    let server = EtcdServer::start();
    let store = locks_at(&server, StoreOptions::default()).await;
    let names: Vec<_> = (0..300).map(|index| lock(&format!("l{index}"))).collect();
    held(&*store, &asking(1, &["l299"])).await;
    let (_, records) = store.locks(&names).await.unwrap();
    assert_eq!((records.len(), records[299].entries.len()), (300, 1));
}
