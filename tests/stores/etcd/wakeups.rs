//! Hints by a watch: of releases, of leases that lapse, after a lost connection, and after a compaction.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Store, Wake, Wakeups};

use crate::etcd::{ended, granted, next, open, request, slot_of, store};
use crate::etcd_server::EtcdServer;
use crate::proxy::{Mode, Proxy};

/// The next hint that is not about lost hints.
async fn next_change(hints: &mut Wakeups) -> String {
    loop {
        match next(hints).await {
            Wake::Resync => {}
            wake => return wake.to_string(),
        }
    }
}

#[tokio::test]
async fn each_change_is_told_once_and_a_claim_is_not() {
    let server = EtcdServer::start();
    let (here, there) = (store(&server).await, store(&server).await);
    let mut hints = there.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let slot = slot_of("a");
    let first = granted(&here, &request(&slot, 1)).await;
    here.fail(&first, &ended(&first, Outcome::Failure), Duration::ZERO).await.unwrap();
    assert_eq!(next(&mut hints).await.to_string(), format!("released {slot}"));
    let second = granted(&here, &request(&slot, 2)).await;
    here.complete(&second, &ended(&second, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(next(&mut hints).await.to_string(), format!("done {slot}"));
}

#[tokio::test]
async fn a_lease_that_lapses_is_told() {
    let server = EtcdServer::start();
    let (here, there) = (store(&server).await, store(&server).await);
    let mut hints = there.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let slot = slot_of("a");
    let short = cronward::store::ClaimRequest { lease_ttl: Duration::from_secs(2), ..request(&slot, 1) };
    granted(&here, &short).await;
    assert_eq!(next(&mut hints).await.to_string(), format!("released {slot}"));
}

#[tokio::test]
async fn what_strangers_write_is_no_hint() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    for text in ["hello", "", "released", "done A@1"] {
        server.set("/cronward/default/mark/wake", text, false);
    }
    server.set("/cronward/default/mark/nonsense", "x", false);
    server.remove("/cronward/default/mark/nonsense");
    server.set("/cronward/other/mark/wake", "job other", false);
    server.set("/cronward/default/mark/wake", "job mine", false);
    assert_eq!(next(&mut hints).await.to_string(), "job mine");
}

#[tokio::test]
async fn a_watch_goes_on_where_the_broken_one_was() {
    let server = EtcdServer::start();
    let link = Proxy::before(server.port()).await;
    let listener = open(&format!("etcd://127.0.0.1:{}", link.port())).await;
    let mut hints = listener.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.set("/cronward/default/mark/wake", "job first", false);
    assert_eq!(next(&mut hints).await.to_string(), "job first");
    link.set(Mode::Refuse);
    for name in ["second", "third"] {
        server.set("/cronward/default/mark/wake", &format!("job {name}"), false);
    }
    link.set(Mode::Pass);
    assert_eq!(next(&mut hints).await.to_string(), "job second", "and no hint was lost, so none is missed");
    assert_eq!(next(&mut hints).await.to_string(), "job third");
}

#[tokio::test]
async fn a_compaction_under_a_watch_that_stands_costs_nothing() {
    let server = EtcdServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.set("/cronward/default/mark/wake", "job first", false);
    server.compact();
    server.set("/cronward/default/mark/wake", "job second", false);
    assert_eq!(next(&mut hints).await.to_string(), "job first");
    assert_eq!(next(&mut hints).await.to_string(), "job second");
}

#[tokio::test]
async fn what_was_compacted_away_while_the_watch_was_broken_is_told_as_lost() {
    let server = EtcdServer::start();
    let link = Proxy::before(server.port()).await;
    let listener = open(&format!("etcd://127.0.0.1:{}", link.port())).await;
    let mut hints = listener.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.set("/cronward/default/mark/wake", "job first", false);
    assert_eq!(next_change(&mut hints).await, "job first");
    link.set(Mode::Refuse);
    for name in ["lost", "also-lost"] {
        server.set("/cronward/default/mark/wake", &format!("job {name}"), false);
    }
    server.compact();
    link.set(Mode::Pass);
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.set("/cronward/default/mark/wake", "job later", false);
    assert_eq!(next_change(&mut hints).await, "job later");
}

#[tokio::test]
async fn a_watch_outlives_the_restart_of_its_member() {
    let mut server = EtcdServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.kill();
    server.start_again();
    server.set("/cronward/default/mark/wake", "job later", false);
    assert_eq!(next_change(&mut hints).await, "job later");
}
