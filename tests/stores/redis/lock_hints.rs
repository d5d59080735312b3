//! Hints about locks: each process has a channel of its own, on the one connection that listens.

use std::sync::Arc;
use std::time::Duration;

use cronward::resource::{Acquired, LockHint};
use cronward::slot::Token;
use cronward::store::{LockStore, Store, Wake};

use crate::lock_words::{held, instance, left, next_hint, next_ready, read, request, waits, write};
use crate::proxy::{Mode, Proxy};
use crate::redis::{eventually, next, open, open_within, store};
use crate::redis_server::{RedisServer, documented_permissions};

fn channels(server: &RedisServer) -> Vec<String> {
    redis::from_redis_value(server.command(&["PUBSUB", "CHANNELS"])).unwrap()
}

#[tokio::test]
async fn whoever_leaves_tells_the_next_one_and_nobody_else() {
    let server = RedisServer::start();
    let (here, there) = (store(&server).await, store(&server).await);
    let (mut own, mut other) = (there.listen(instance(2)), there.listen(instance(3)));
    let hold = held(&here, &request(1, &[write("x")])).await;
    waits(&there, &request(2, &[write("x")])).await;
    waits(&there, &request(3, &[write("x")])).await;
    left(&here, &hold).await;
    assert_eq!(next_ready(&mut own).await, Token::from_bits(2));
    let second = held(&there, &request(2, &[write("x")])).await;
    left(&there, &second).await;
    assert_eq!(next_ready(&mut other).await, Token::from_bits(3));
    assert!(!matches!(own.try_recv(), Ok(LockHint::Ready(_))), "what is told to one is not told to another");
}

/// Nobody hears of a release that comes before the channel is subscribed to, so whoever is told to wait has asked after that.
#[tokio::test]
async fn no_release_falls_between_the_first_ask_and_the_subscription() {
    let server = RedisServer::start();
    let here = store(&server).await;
    for number in 1..=30_u128 {
        let (leaves, waiting) = (number * 2, number * 2 + 1);
        let hold = held(&here, &request(leaves, &[write("x")])).await;
        let there = store(&server).await;
        let mut hints = there.listen(instance(waiting));
        waits(&there, &request(waiting, &[write("x")])).await;
        assert!(channels(&server).contains(&format!("cronward:default:wake:{}", instance(waiting))));
        left(&here, &hold).await;
        assert_eq!(next_ready(&mut hints).await, Token::from_bits(waiting));
        let hold = held(&there, &request(waiting, &[write("x")])).await;
        left(&there, &hold).await;
    }
}

/// The same where the release comes for certain in between.
#[tokio::test]
async fn a_release_before_the_subscription_is_found_by_asking_once_more() {
    let server = RedisServer::start();
    let here = store(&server).await;
    let hold = held(&here, &request(1, &[write("x")])).await;
    let proxy = Proxy::before(server.port()).await;
    proxy.set(Mode::HoldRequest("SUBSCRIBE"));
    let there = open_within(&format!("redis://127.0.0.1:{}", proxy.port()), Duration::from_secs(60)).await;
    let there = Arc::new(there);
    let _hints = there.listen(instance(2));
    let asking = tokio::spawn({
        let there = Arc::clone(&there);
        async move { there.acquire(&request(2, &[write("x")])).await.unwrap() }
    });
    proxy.held().await;
    eventually("it stands in the queue", async || {
        server.number(&["ZCARD", "cronward:default:{default:locks}:x:queue"]) == 2
    })
    .await;
    left(&here, &hold).await;
    proxy.set(Mode::Pass);
    let answer = asking.await.unwrap();
    assert!(matches!(answer, Acquired::Held { .. }), "{answer:?}");
}

#[tokio::test]
async fn many_processes_share_the_connection_with_the_slots_and_are_subscribed_to_once() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut slots = store.subscribe();
    let mut all: Vec<_> = (1..=8).map(|number| store.listen(instance(number))).collect();
    assert_eq!(next(&mut slots).await, Wake::Resync);
    eventually("all are heard for", async || channels(&server).len() == 9).await;
    let clients = server.text(&["CLIENT", "LIST"]).unwrap();
    assert_eq!(clients.lines().count(), 2, "{clients}");
    for (index, hints) in all.iter_mut().enumerate() {
        let channel = format!("cronward:default:wake:{}", instance(index as u128 + 1));
        for message in ["hello", "lock", "released a@b", "lock 00000000000000000000000000000007"] {
            server.command(&["PUBLISH", &channel, message]);
        }
        assert_eq!(next_ready(hints).await, Token::from_bits(7));
    }
    server.command(&["PUBLISH", "cronward:default:wake", "job mine"]);
    assert_eq!(next(&mut slots).await, Wake::Job("mine".parse().unwrap()));
    // The one that takes one lock after the other keeps its channel.
    server.command(&["CONFIG", "RESETSTAT"]);
    for _ in 0..5 {
        drop(store.listen(instance(1)));
    }
    all.clear();
    drop(store.listen(instance(1)));
    server.command(&["PUBLISH", "cronward:default:wake", "job mine"]);
    next(&mut slots).await;
    assert_eq!((server.calls("subscribe"), server.calls("unsubscribe")), (0, 0));
}

#[tokio::test]
async fn channels_that_nobody_needs_are_left_where_there_are_many() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for number in 1..=100_u128 {
        let kept = store.listen(instance(number));
        eventually("it is heard for", async || {
            channels(&server).contains(&format!("cronward:default:wake:{}", instance(number)))
        })
        .await;
        drop(kept);
    }
    let many = channels(&server).len();
    assert!(many <= 67, "{many}");
}

#[tokio::test]
async fn after_a_restart_and_after_silence_hints_come_again_and_whoever_waits_is_told_to_look() {
    let mut server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let store = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    let mut hints = store.listen(instance(1));
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    server.restart_empty();
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    proxy.set_standing(Mode::BlackHole);
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
    eventually("it is heard for again", async || {
        server.number(&["PUBLISH", &format!("cronward:default:wake:{}", instance(1)), "lock x"]) > 0
    })
    .await;
    let hold = held(&store, &request(2, &[read("x")])).await;
    waits(&store, &request(1, &[write("x")])).await;
    left(&store, &hold).await;
    assert_eq!(next_ready(&mut hints).await, Token::from_bits(1));
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_looks_by_a_timer_until_it_may() {
    let server = RedisServer::start();
    let url = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    let of_slots_alone = "&cronward:default:wake";
    for (missing, instead) in [("+subscribe", None), ("&cronward:*", None), ("&cronward:*", Some(of_slots_alone))] {
        let rest = documented_permissions().into_iter().filter(|rule| rule != missing);
        server.allow(&rest.chain(instead.map(str::to_owned)).collect::<Vec<_>>());
        let store = open(&url).await;
        assert_eq!(store.lock_poll(), None, "until it is known");
        let mut hints = store.listen(instance(2));
        eventually("the refusal is known", async || store.lock_poll().is_some()).await;
        // Nobody waits for what does not come.
        let hold = held(&store, &request(1, &[write("x")])).await;
        waits(&store, &request(2, &[write("x")])).await;
        left(&store, &hold).await;
        assert_eq!(store.capability().push, instead.is_some());
        server.allow(&documented_permissions());
        if instead.is_none() {
            eventually("the listener is let in", async || store.lock_poll().is_none()).await;
        }
        while !matches!(hints.try_recv(), Err(tokio::sync::broadcast::error::TryRecvError::Empty)) {}
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_server_that_is_away_keeps_nobody_waiting_for_its_hints() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    server.kill();
    let mut hints = store.listen(instance(1));
    store.acquire(&request(1, &[write("x")])).await.unwrap_err();
    server.start_again();
    held(&store, &request(2, &[write("x")])).await;
    assert!(tokio::time::timeout(Duration::from_secs(60), waits(&store, &request(1, &[write("x")]))).await.is_ok());
    assert_eq!(next_hint(&mut hints).await, LockHint::Resync);
}
