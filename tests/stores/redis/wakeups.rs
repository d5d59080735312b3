//! Hints: published by what changes a slot, received by others, back after an outage.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{Store, Wake};

use crate::proxy::{Mode, Proxy};
use crate::redis::{audit, ended, eventually, granted, next, open, request, slot_of, store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn another_node_hears_of_what_changes_a_slot() {
    let server = RedisServer::start();
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
}

#[tokio::test]
async fn what_strangers_publish_is_no_hint() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    for message in ["hello", "", "released", "done A@1"] {
        server.command(&["PUBLISH", "cronward:default:wake", message]);
    }
    server.command(&["PUBLISH", "cronward:other:wake", "job other"]);
    server.command(&["PUBLISH", "cronward:default:wake", "job mine"]);
    assert_eq!(next(&mut hints).await, Wake::Job("mine".parse().unwrap()));
}

#[tokio::test]
async fn a_listener_comes_back_after_a_restart_and_says_that_hints_may_be_lost() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.restart_empty();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    server.command(&["PUBLISH", "cronward:default:wake", "job mine"]);
    assert_eq!(next(&mut hints).await, Wake::Job("mine".parse().unwrap()));
}

#[tokio::test]
async fn a_listener_on_a_silent_link_comes_back() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    proxy.set_standing(Mode::BlackHole);
    assert_eq!(next(&mut hints).await, Wake::Resync);
}

#[tokio::test]
async fn a_subscription_made_while_the_server_is_down_is_silent_and_then_says_resync() {
    let mut server = RedisServer::start();
    server.kill();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    server.start_again();
    assert_eq!(next(&mut hints).await, Wake::Resync);
}

#[tokio::test]
async fn a_dropped_store_leaves_no_connection_behind() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut hints = store.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    store.jobs().await.unwrap();
    let clients = || server.text(&["CLIENT", "LIST"]).unwrap().lines().count();
    // The one that asks counts too.
    assert_eq!(clients(), 3);
    drop(store);
    eventually("both connections are closed", async || clients() == 1).await;
    assert!(hints.recv().await.is_err());
}

#[tokio::test]
async fn the_connection_has_a_name_that_an_operator_knows() {
    let server = RedisServer::start();
    store(&server).await.jobs().await.unwrap();
    let store = store(&server).await;
    store.jobs().await.unwrap();
    assert!(server.text(&["CLIENT", "LIST"]).unwrap().contains("name=cronward:default"));
}
