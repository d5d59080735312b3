//! Changes: the server is listened to only while somebody looks on, and by its own channel.

use std::time::Duration;

use cronward::slot::Outcome;
use cronward::store::{ChangeHint, Changes, Store};

use crate::redis::{ended, eventually, granted, open, request, slot_of, store};
use crate::redis_server::RedisServer;

const CHANNEL: &str = "cronward:default:events";

/// How many connections listen at the channel.
fn listeners(server: &RedisServer) -> i64 {
    let told = server.command(&["PUBSUB", "NUMSUB", CHANNEL]);
    let (_, count): (String, i64) = redis::from_redis_value(told).unwrap();
    count
}

async fn hint(changes: &mut Changes) -> ChangeHint {
    tokio::time::timeout(Duration::from_secs(30), changes.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn nobody_is_subscribed_once_the_last_who_looks_on_has_left() {
    let server = RedisServer::start();
    let store = store(&server).await;
    assert_eq!(listeners(&server), 0, "a store that nobody looks at listens to nothing");
    let mut first = store.changes();
    assert_eq!(hint(&mut first).await, ChangeHint::Resync);
    let second = store.changes();
    assert_eq!(listeners(&server), 1, "one connection for all of a process");
    drop(first);
    assert_eq!(listeners(&server), 1);
    drop(second);
    eventually("nobody is subscribed", async || listeners(&server) == 0).await;
    let mut again = store.changes();
    assert_eq!(hint(&mut again).await, ChangeHint::Resync);
    assert_eq!(listeners(&server), 1);
    drop(store);
    eventually("nobody is subscribed", async || listeners(&server) == 0).await;
}

#[tokio::test]
async fn what_strangers_publish_is_no_change_and_a_lost_connection_is_made_again() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let mut changes = store.changes();
    assert_eq!(hint(&mut changes).await, ChangeHint::Resync);
    for message in ["hello", "", "slot", "released a@2026-11-21T14Z"] {
        server.command(&["PUBLISH", CHANNEL, message]);
    }
    server.command(&["PUBLISH", CHANNEL, "job mine"]);
    assert_eq!(hint(&mut changes).await, ChangeHint::Job("mine".parse().unwrap()));
    server.restart_empty();
    assert_eq!(hint(&mut changes).await, ChangeHint::Resync);
    let slot = slot_of("a");
    let lease = granted(&store, &request(&slot, 1)).await;
    assert_eq!(hint(&mut changes).await, ChangeHint::of(&slot));
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert_eq!(hint(&mut changes).await, ChangeHint::of(&slot));
}

#[tokio::test]
async fn who_may_not_use_the_channel_is_told_to_look_by_a_timer_and_runs_all_the_same() {
    let server = RedisServer::start();
    let rule = "on >p resetchannels ~cronward:* &cronward:default:wake* +@all";
    let user: Vec<&str> = ["ACL", "SETUSER", "narrow"].into_iter().chain(rule.split(' ')).collect();
    server.command(&user);
    let store = open(&format!("redis://narrow:p@127.0.0.1:{}", server.port())).await;
    let _changes = store.changes();
    eventually("it is refused", async || !store.capability().tells_changes).await;
    let lease = granted(&store, &request(&slot_of("a"), 1)).await;
    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert!(store.capability().push, "wake-ups are another channel's");
}
