//! What stands in ZooKeeper, and what stands there no longer.

use std::time::Duration;

use cronward::slot::{Audit, Outcome, Slot};
use cronward::store::{Applied, ErrorKind, Renewal, Settlement, Store, StoreOptions, Wake};

use crate::words::of_two_that_exclude_each_other_one_is_granted;
use crate::zookeeper::{audit, ended, eventually, granted, next, open, request, slot_of, store};
use crate::zookeeper_server::ZookeeperServer;

#[tokio::test]
async fn a_person_can_read_what_a_slot_is_about() {
    let server = ZookeeperServer::start();
    let store = open(&format!("{}/ops/cron", server.url())).await;
    let slot = slot_of("push");
    let lease = granted(&store, &request(&slot, 1)).await;
    let client = server.connect().await;
    let path = format!("/ops/cron/cronward/default/slot/push/{}", slot.key());
    let (data, _) = client.get_data(&path).await.unwrap();
    let text = String::from_utf8(data).unwrap();
    assert!(text.contains("\"running\"") && text.contains("\"node-1\"") && text.contains("\"attempts\":1"), "{text}");
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    let (data, _) = client.get_data(&path).await.unwrap();
    assert!(String::from_utf8(data).unwrap().contains("\"done\""));
}

#[tokio::test]
async fn each_change_is_told_and_leaves_no_node_behind() {
    let server = ZookeeperServer::start();
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
    here.pause(slot.job(), None, &audit("pause")).await.unwrap();
    assert_eq!(next(&mut hints).await, Wake::Job(slot.job().clone()));
    let left = server.connect().await.list_children("/cronward/default/wake").await.unwrap();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_older_than_the_retention_is_removed_and_the_rest_is_kept() {
    let server = ZookeeperServer::start();
    let young = store(&server).await;
    let options = StoreOptions::default().with_retention(Duration::ZERO).with_op_timeout(Duration::from_secs(10));
    let clock = std::sync::Arc::new(cronward::clock::SystemClock);
    let forgetful = cronward::store::zookeeper::ZookeeperStore::open(&server.url(), options, clock).await.unwrap();
    let over = |job: &str| {
        let slot = slot_of(job);
        Slot::new(slot.job().clone(), slot.start(), slot.start() + chrono::TimeDelta::minutes(30)).unwrap()
    };
    young.mark_done(&over("short"), &audit("mark_done"), Duration::from_millis(1)).await.unwrap();
    young.mark_done(&over("long"), &audit("mark_done"), Duration::from_secs(3_600)).await.unwrap();
    let running = granted(&young, &request(&slot_of("running"), 1)).await;
    assert_eq!(young.purge().await.unwrap(), 0);
    let mut gone = 0;
    eventually("what is over is removed", async || {
        gone += forgetful.purge().await.unwrap();
        gone > 0
    })
    .await;
    assert_eq!(gone, 1, "a marker that stands keeps its records");
    assert_eq!(young.renew(&running).await.unwrap(), cronward::store::Renewal::Renewed);
}

#[tokio::test]
async fn the_clock_is_the_servers_and_not_this_nodes() {
    let server = ZookeeperServer::start();
    // A node whose wall clock is ten years behind.
    let clock = cronward::clock::ManualClock::at(crate::zookeeper::now() - chrono::TimeDelta::days(3_650));
    let options = StoreOptions::default().with_op_timeout(Duration::from_secs(10));
    let (url, clock) = (server.url(), std::sync::Arc::new(clock));
    let behind = cronward::store::zookeeper::ZookeeperStore::open(&url, options, clock).await.unwrap();
    let (told, _) = behind.inspect(&[]).await.unwrap();
    assert!((crate::zookeeper::now() - told).num_seconds().abs() < 30, "{told}");
    granted(&behind, &request(&slot_of("push"), 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_slots_that_exclude_each_other_are_never_both_granted() {
    let server = ZookeeperServer::start();
    let (one, other) = (store(&server).await, store(&server).await);
    of_two_that_exclude_each_other_one_is_granted([std::sync::Arc::new(one), std::sync::Arc::new(other)]).await;
}

/// It is told where it is asked for, and left as it is.
#[tokio::test]
async fn what_somebody_else_wrote_of_a_job_keeps_no_run_from_its_end_and_no_purge_from_its_slots() {
    let server = ZookeeperServer::start();
    let store = store(&server).await;
    let slot = slot_of("push");
    let lease = granted(&store, &request(&slot, 1)).await;
    store.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO).await.unwrap();
    let (client, path) = (server.connect().await, "/cronward/default/latest/push");
    client.set_data(path, b"somebody else's", None).await.unwrap();
    let lease = granted(&store, &request(&slot, 2)).await;
    let settled = store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(settled, Settlement::Recorded);
    let error = store.latest(&[slot.job().clone()]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    store.purge().await.unwrap();
    assert_eq!(client.get_data(path).await.unwrap().0, b"somebody else's");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_for_its_content_before_it_breaks_the_connection() {
    let server = ZookeeperServer::start();
    let store = store(&server).await;
    let lease = granted(&store, &request(&slot_of("push"), 1)).await;
    let audit = Audit { why: "x".repeat(1_100_000), ..audit("pause") };
    let error = store.pause(slot_of("push").job(), None, &audit).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Content, Applied::No), "{error}");
    assert!(error.message.contains("jute.maxbuffer"), "{error}");
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
}
