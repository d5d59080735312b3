//! The ephemeral node beside a lease: it tells of lost sessions, and excludes nobody.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::slot::{Outcome, OutputTail, Slot};
use cronward::store::{Claim, ClaimRequest, Renewal, Store, StoreOptions, Wake};
use serde_json::Value;

use crate::proxy::{Mode, Proxy};
use crate::zookeeper::{audit, ended, eventually, granted, next, open_within, request, slot_of, store};
use crate::zookeeper_server::ZookeeperServer;

/// Sessions of at most two seconds.
const TICK: Duration = Duration::from_millis(100);

fn path_of(slot: &Slot) -> String {
    format!("/cronward/default/slot/{}/{}", slot.job(), slot.key())
}

/// Whose session the node beside the lease belongs to, if it is there. Each look has a session of its own.
async fn owner(server: &ZookeeperServer, slot: &Slot) -> Option<i64> {
    let stat = server.connect().await.check_stat(&format!("{}/owner", path_of(slot))).await.unwrap();
    stat.map(|stat| stat.ephemeral_owner)
}

async fn below(server: &ZookeeperServer, slot: &Slot) -> Vec<String> {
    server.connect().await.list_children(&path_of(slot)).await.unwrap()
}

/// When the mark ends.
async fn end(server: &ZookeeperServer, slot: &Slot) -> DateTime<Utc> {
    let (data, _) = server.connect().await.get_data(&path_of(slot)).await.unwrap();
    let text: Value = serde_json::from_slice(&data).unwrap();
    DateTime::from_timestamp_millis(text["mark"]["until_ms"].as_i64().unwrap()).unwrap()
}

#[tokio::test]
async fn a_lost_session_puts_its_lease_in_doubt_until_the_next_renewal() {
    let server = ZookeeperServer::start_with_tick(TICK);
    let link = Proxy::before(server.port()).await;
    let cut_off = open_within(&format!("zookeeper://127.0.0.1:{}", link.port()), Duration::from_secs(10)).await;
    let other = store(&server).await;
    let slot = slot_of("push");
    let lease = granted(&cut_off, &request(&slot, 1)).await;
    let first = owner(&server, &slot).await;
    assert!(first.is_some_and(|session| session != 0), "{first:?}");
    link.set(Mode::BlackHole);
    eventually("its session has expired", async || owner(&server, &slot).await.is_none()).await;
    assert!(matches!(other.claim(&request(&slot, 2)).await.unwrap(), Claim::Held { .. }), "the mark stands");
    link.set(Mode::Pass);
    let mut hints = cut_off.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync, "the watch begins");
    let mut renewed = None;
    eventually("a new session is begun", async || {
        renewed = cut_off.renew(&lease).await.ok();
        renewed.is_some()
    })
    .await;
    assert_eq!(renewed, Some(Renewal::Renewed), "it is its lease all the same");
    assert_eq!(next(&mut hints).await, Wake::Resync, "whatever else that session held is in doubt");
    let second = owner(&server, &slot).await;
    assert!(second.is_some() && second != first, "{first:?}, then {second:?}");
    assert!(matches!(other.claim(&request(&slot, 2)).await.unwrap(), Claim::Held { .. }));
    cut_off.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(below(&server, &slot).await, Vec::<String>::new());
}

#[tokio::test]
async fn nobody_is_granted_a_slot_for_a_lost_session_before_the_mark_ends() {
    let server = ZookeeperServer::start_with_tick(TICK);
    let link = Proxy::before(server.port()).await;
    let cut_off = open_within(&format!("zookeeper://127.0.0.1:{}", link.port()), Duration::from_secs(10)).await;
    let other = store(&server).await;
    let slot = slot_of("push");
    let lease_ttl = Duration::from_secs(6);
    let lease = granted(&cut_off, &ClaimRequest { lease_ttl, ..request(&slot, 1) }).await;
    let end = end(&server, &slot).await;
    link.set(Mode::BlackHole);
    eventually("its session has expired", async || owner(&server, &slot).await.is_none()).await;
    let mut granted_at = None;
    eventually("another is granted the slot", async || {
        if let Claim::Claimed { at, attempt: 2, .. } = other.claim(&request(&slot, 2)).await.unwrap() {
            granted_at = Some(at);
        }
        granted_at.is_some()
    })
    .await;
    assert!(granted_at.unwrap() >= end, "{granted_at:?} is before {end}");
    let second = owner(&server, &slot).await;
    link.set(Mode::Pass);
    let mut told = None;
    eventually("the first one is back", async || {
        told = cut_off.renew(&lease).await.ok();
        told.is_some()
    })
    .await;
    assert!(matches!(told, Some(Renewal::Lost { to: Some(_) })), "{told:?}");
    assert_eq!(owner(&server, &slot).await, second, "who has lost the lease leaves the other's node alone");
}

#[tokio::test]
async fn a_lease_that_another_session_renews_is_tended_by_that_one_and_doubt_is_told_once() {
    let server = ZookeeperServer::start();
    let (claimer, renewer) = (store(&server).await, store(&server).await);
    let slot = slot_of("push");
    let lease = granted(&claimer, &request(&slot, 1)).await;
    let first = owner(&server, &slot).await;
    let mut hints = renewer.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync, "the watch begins");
    assert_eq!(renewer.renew(&lease).await.unwrap(), Renewal::Renewed);
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let second = owner(&server, &slot).await;
    assert!(second.is_some() && second != first, "{first:?}, then {second:?}");
    // Somebody removes it by hand: it is made again, and the same session is not told again.
    server.connect().await.delete(&format!("{}/owner", path_of(&slot)), None).await.unwrap();
    assert_eq!(renewer.renew(&lease).await.unwrap(), Renewal::Renewed);
    assert_eq!(owner(&server, &slot).await, second);
    renewer.pause(slot.job(), None, &audit("pause")).await.unwrap();
    assert_eq!(next(&mut hints).await, Wake::Job(slot.job().clone()));
}

#[tokio::test]
async fn whatever_ends_a_lease_leaves_no_ephemeral_node() {
    let server = ZookeeperServer::start();
    let store = store(&server).await;
    for end in ["complete", "fail", "fail and wait", "give back", "unlock"] {
        let slot = slot_of(&end.replace(' ', "-"));
        let lease = granted(&store, &request(&slot, 1)).await;
        assert_eq!(below(&server, &slot).await, ["owner"], "{end}");
        let (_, records) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
        assert_eq!(records[0].runs.len(), 1, "it is no output");
        let wait = if end == "fail and wait" { Duration::from_secs(60) } else { Duration::ZERO };
        match end {
            "complete" => {
                let told = OutputTail::default();
                let run = cronward::slot::RunRecord { output: Some(told), ..ended(&lease, Outcome::Success) };
                store.complete(&lease, &run, Duration::from_secs(60)).await.map(drop).unwrap();
                assert_eq!(below(&server, &slot).await, [format!("1.{}", lease.token)]);
                continue;
            }
            "give back" => store.give_back(&lease, &ended(&lease, Outcome::GivenBack)).await.map(drop).unwrap(),
            "unlock" => store.unlock(&slot, &audit("unlock")).await.map(drop).unwrap(),
            _ => store.fail(&lease, &ended(&lease, Outcome::Failure), wait).await.map(drop).unwrap(),
        }
        assert_eq!(below(&server, &slot).await, Vec::<String>::new(), "{end}");
    }
}

#[tokio::test]
async fn a_lease_that_lapsed_goes_with_its_ephemeral_node_when_its_time_is_over() {
    let server = ZookeeperServer::start();
    let holder = store(&server).await;
    let slot = slot_of("push");
    let over = Slot::new(slot.job().clone(), slot.start(), slot.start() + chrono::TimeDelta::minutes(30)).unwrap();
    let late = ClaimRequest { lease_ttl: Duration::from_millis(1), past: true, ..request(&over, 1) };
    granted(&holder, &late).await;
    assert_eq!(below(&server, &over).await, ["owner"], "its session goes on");
    let options = StoreOptions::default().with_retention(Duration::ZERO).with_op_timeout(Duration::from_secs(10));
    let clock = std::sync::Arc::new(cronward::clock::SystemClock);
    let forgetful = cronward::store::zookeeper::ZookeeperStore::open(&server.url(), options, clock).await.unwrap();
    eventually("it is removed", async || forgetful.purge().await.unwrap() == 1).await;
    assert!(server.connect().await.check_stat(&path_of(&over)).await.unwrap().is_none());
}
