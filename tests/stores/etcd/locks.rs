//! Locks: others at the same ones, hints to other processes, and what is removed.

use std::sync::Arc;
use std::time::Duration;

use cronward::store::{LockStore, StoreOptions, open_locks};

use crate::etcd_server::EtcdServer;
use crate::words::{each_is_served_once, idle_locks_are_removed, one_is_told_elsewhere};

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

#[tokio::test]
async fn locks_that_nobody_needs_are_removed_and_others_are_kept() {
    let server = EtcdServer::start();
    let hasty = StoreOptions::default().with_retention(Duration::from_millis(1));
    idle_locks_are_removed(&[locks_at(&server, StoreOptions::default()).await, locks_at(&server, hasty).await]).await;
}
