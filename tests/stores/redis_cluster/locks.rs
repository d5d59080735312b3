//! Locks in a cluster: several of them are one step, for the keys of all share a tag.

use super::{ClusterGroup, PATIENCE, a_moment, answered, is_master, open, until};
use crate::lock_words::{held, instance as process, left, lock, next_hint, next_ready, request, waits, write};
use cronward::resource::{LockHint, LockRelease, LockRenewal};
use cronward::store::LockStore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_locks_are_one_step_at_one_server() {
    let group = ClusterGroup::start();
    let store = open(&group.url()).await;
    let all = [write("x"), write("y"), write("z")];
    let warm = held(&store, &request(1, &all)).await;
    left(&store, &warm).await;
    let mut hints = store.listen(process(3));
    let calls = |command| group.servers.iter().map(|server| server.calls(command)).sum::<u64>();
    group.servers.iter().for_each(|server| drop(server.command(&["CONFIG", "RESETSTAT"])));
    let hold = held(&store, &request(2, &all)).await;
    assert_eq!(calls("evalsha"), 1);
    waits(&store, &request(3, &[write("z"), write("x")])).await;
    assert_eq!(left(&store, &hold).await, LockRelease::Released);
    // Published at the server that keeps the locks, heard at whichever is listened to.
    assert_eq!(next_ready(&mut hints).await, request(3, &all).token);
    held(&store, &request(3, &[write("z"), write("x")])).await;
    assert_eq!(answered(&group, "CROSSSLOT"), 0);
    let (_, locks) = store.locks(&[]).await.unwrap();
    assert_eq!(locks.iter().map(|record| record.lock.clone()).collect::<Vec<_>>(), ["x", "y", "z"].map(lock));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_costs_no_lock_that_its_replica_knows() {
    let mut group = ClusterGroup::start();
    let store = open(&group.url()).await;
    let mut hints = store.listen(process(1));
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    let hold = held(&store, &request(1, &[write("x"), write("y")])).await;
    let keeper = group.keeper_of("cronward:default:{default:locks}");
    until("its replica has the locks", || group.servers[keeper + 3].number(&["DBSIZE"]) > 3);
    group.servers[keeper].kill();
    until("its replica has taken over", || is_master(&group.servers[keeper + 3]));
    let began = super::instant();
    let renewed = loop {
        match store.renew_lock(&hold).await {
            Ok(answer) => break answer,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        assert!(began.elapsed() < PATIENCE);
        a_moment().await;
    };
    assert!(matches!(renewed, LockRenewal::Renewed | LockRenewal::Restored), "{renewed:?}");
    waits(&store, &request(2, &[write("y")])).await;
}
