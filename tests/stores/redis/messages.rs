//! Messages: what is at their keys, and what happens to whoever else wrote there.

use std::time::Duration;

use cronward::job::{JobName, NodeName};
use cronward::slot::Token;
use cronward::store::{Applied, Delivery, ErrorKind, MessageKey, Store, StoreOptions, Telling, Topic};

use crate::redis::store;
use crate::redis_server::RedisServer;

const KEY: &str = "cronward:default:{billing}:messages";

fn message() -> MessageKey {
    MessageKey::new(JobName::new("billing").unwrap(), "2026-11-21T14Z failed", "ops").unwrap()
}

async fn tell(store: &impl Store, token: u128) -> Telling {
    let node = NodeName::new("a").unwrap();
    store.tell(&message(), &node, Token::from_bits(token), Duration::from_secs(60)).await.unwrap()
}

#[tokio::test]
async fn what_was_told_is_one_text_for_each_job_that_goes_with_the_retention() {
    let server = RedisServer::start();
    let store = store(&server).await;
    assert!(matches!(tell(&store, 1).await, Telling::Yours { tries: 1, .. }));
    let text = server.text(&["GET", KEY]).unwrap();
    assert!(text.contains(r#""subject":"2026-11-21T14Z failed","sink":"ops","state":"sending","node":"a""#), "{text}");
    let retention = i64::try_from(StoreOptions::default().retention.as_millis()).unwrap();
    server.command(&["PEXPIRE", KEY, "60000"]);
    store.told(&message(), Token::from_bits(1), &Delivery::Delivered).await.unwrap();
    let left = server.number(&["PTTL", KEY]);
    assert!((retention - 60_000..=retention).contains(&left), "kept from the last change on: {left}");
    assert!(server.text(&["GET", KEY]).unwrap().contains(r#""state":"told""#));
    // A server that has forgotten its scripts is told them again.
    server.command(&["SCRIPT", "FLUSH"]);
    assert!(matches!(tell(&store, 2).await, Telling::Told { .. }));
    assert_eq!(store.untold(&[message().topic().clone(), Topic::Cluster]).await.unwrap().1, Vec::new());
}

#[tokio::test]
async fn a_key_of_another_type_is_refused_by_its_name_and_left() {
    let server = RedisServer::start();
    let store = store(&server).await;
    server.command(&["RPUSH", KEY, "somebody else's"]);
    let errors = [
        store.told(&message(), Token::from_bits(1), &Delivery::Delivered).await.unwrap_err(),
        store.untold(&[message().topic().clone()]).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{error}");
        assert!(error.to_string().contains(KEY), "{error}");
    }
    assert_eq!(server.number(&["LLEN", KEY]), 1);
}
