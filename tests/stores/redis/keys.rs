//! Keys as `docs/stores.md` shows them, and what stands there when somebody else wrote it.

use std::time::Duration;

use cronward::slot::{Mark, Outcome, Slot};
use cronward::store::{Applied, Claim, ClaimRequest, ErrorKind, Op, Renewal, Settlement, Store, StoreError};

use crate::redis::{audit, ended, granted, mark_of, request, slot_of, store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn the_keys_have_their_documented_names_and_every_one_has_a_ttl() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    let lease = granted(&store, &request(&slot, 1)).await;

    let mark = mark_of(&slot);
    let token = lease.token;
    let at = lease.claimed_at.timestamp_millis();
    assert_eq!(server.text(&["GET", &mark]), Some(format!("running {token} node-1 1 {at}")));
    assert_eq!(server.text(&["GET", &format!("{mark}:attempts")]), Some("1".to_owned()));
    let record = server.text(&["HGET", &format!("{mark}:log"), "1"]).unwrap();
    assert_eq!(
        record,
        format!(r#"{{"attempt":1,"token":"{token}","node":"node-1","trigger":"schedule","claimed_ms":{at}}}"#)
    );
    assert!((1..=60_000).contains(&server.number(&["PTTL", &mark])));
    let running = "cronward:default:{billing}:running";
    let held = server.text(&["HGET", running, &slot.key().to_string()]).unwrap();
    let until = held.strip_prefix(&format!("{token} node-1 1 ")).and_then(|until| until.parse::<i64>().ok());
    assert!(until.is_some_and(|until| until >= at + 60_000), "{held}");
    assert!((1..=60_000).contains(&server.number(&["PTTL", running])));
    let ahead = (slot.end() - crate::redis::now()).num_seconds();
    for key in ["attempts", "log"] {
        // Seven days from the slot's end on.
        let left = server.number(&["TTL", &format!("{mark}:{key}")]) - 7 * 86_400;
        assert!((ahead - 100..=ahead + 100).contains(&left), "{key}: {left}, with {ahead} ahead");
    }

    store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(7_200)).await.unwrap();
    let done = server.text(&["GET", &mark]).unwrap();
    assert!(done.starts_with(&format!("done {token} node-1 1 ")), "{done}");
    assert!((7_100..=7_200).contains(&server.number(&["TTL", &mark])));
    assert!(server.text(&["HGET", &format!("{mark}:log"), "verdict"]).unwrap().contains(r#""verdict":"done""#));
    let all: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "*"])).unwrap();
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.iter().all(|key| server.number(&["PTTL", key]) > 0), "{all:?}");
}

#[tokio::test]
async fn what_runs_of_a_job_is_known_again_after_the_next_renewal_where_it_was_lost() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    let lease = granted(&store, &request(&slot, 1)).await;
    server.command(&["DEL", "cronward:default:{billing}:running"]);
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    let other = Slot::new(slot.job().clone(), slot.start() - chrono::TimeDelta::hours(1), slot.end()).unwrap();
    let claim = store.claim(&ClaimRequest { exclusive: true, ..request(&other, 2) }).await.unwrap();
    assert!(matches!(claim, Claim::Blocked { key, .. } if key == slot.key()), "{claim:?}");
}

#[tokio::test]
async fn what_runs_of_a_job_never_grows_beyond_what_runs() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let running = "cronward:default:{billing}:running";
    // Leases that nobody settled, of nodes that are gone.
    let token = "0".repeat(32);
    for hour in 10..20 {
        let (key, value) = (format!("2026-11-21T{hour}Z"), format!("{token} node-9 1 1000"));
        server.command(&["HSET", running, &key, &value]);
    }
    let slot = slot_of("billing");
    granted(&store, &ClaimRequest { exclusive: true, ..request(&slot, 1) }).await;
    assert_eq!(server.number(&["HLEN", running]), 1);
    server.command(&["HSET", running, "2026-11-21T14Z", "what somebody else wrote"]);
    let other = Slot::new(slot.job().clone(), slot.start() - chrono::TimeDelta::hours(1), slot.end()).unwrap();
    let error = store.claim(&ClaimRequest { exclusive: true, ..request(&other, 2) }).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{error}");
    assert!(error.message.contains(running), "{error}");
}

#[tokio::test]
async fn a_key_of_another_type_that_stops_every_slot_of_a_job_is_named() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (slot, running) = (slot_of("billing"), "cronward:default:{billing}:running");
    let lease = granted(&store, &request(&slot, 1)).await;
    server.command(&["DEL", running]);
    server.command(&["SET", running, "what somebody else keeps here"]);
    foreign(store.claim(&request(&slot, 2)).await, Op::Claim, running);
    foreign(
        store.complete(&lease, &ended(&lease, Outcome::Success), Duration::from_secs(60)).await,
        Op::Complete,
        running,
    );
    foreign(store.reset(&slot, &audit("reset")).await, Op::Reset, running);
    assert_eq!(server.text(&["GET", running]).unwrap(), "what somebody else keeps here");
    server.command(&["DEL", running]);
    assert!(matches!(store.claim(&request(&slot, 3)).await.unwrap(), Claim::Held { .. }));
}

#[tokio::test]
async fn a_record_of_the_same_number_and_another_token_stands_beside_it() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    let old = granted(&store, &request(&slot, 1)).await;
    server.restart_empty();
    let _ = store.inspect(&[]).await;
    let new = granted(&store, &request(&slot, 2)).await;
    assert_eq!((old.attempt, new.attempt), (1, 1));

    let answer = store.complete(&old, &ended(&old, Outcome::Success), Duration::from_secs(60)).await.unwrap();
    assert!(matches!(answer, Settlement::Overtaken { by } if by.node == new.node));
    let log = format!("{}:log", mark_of(&slot));
    assert!(server.text(&["HGET", &log, "1"]).unwrap().contains("node-2"));
    assert!(server.text(&["HGET", &log, "1.00000001"]).unwrap().contains("node-1"));
    let (_, records) = store.inspect(&[slot]).await.unwrap();
    assert_eq!(records[0].runs.len(), 2);
}

#[tokio::test]
async fn a_server_that_restarted_empty_gets_the_lease_back_from_its_holder() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let slot = slot_of("billing");
    granted(&store, &request(&slot, 1)).await;
    // A second attempt, to see that the number comes back too.
    server.command(&["DEL", &mark_of(&slot)]);
    let lease = granted(&store, &request(&slot, 2)).await;
    server.restart_empty();
    let _ = store.inspect(&[]).await;
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Restored);
    assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed);
    let (_, records) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
    assert!(matches!(&records[0].mark, Mark::Leased { by, .. } if by.attempt == 2));
    assert_eq!(records[0].attempts, 2);
    assert!(matches!(store.claim(&request(&slot, 3)).await.unwrap(), Claim::Held { .. }));
}

fn foreign(answer: Result<impl std::fmt::Debug, StoreError>, op: Op, key: &str) {
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.applied, error.op), (ErrorKind::Corrupt, Applied::No, op), "{error}");
    assert!(error.to_string().contains(key), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[tokio::test]
async fn what_somebody_else_wrote_at_a_key_is_told_with_the_key_and_left_as_it_is() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for (n, (suffix, words)) in [
        ("", &["SET", "KEY", "running"][..]),
        ("", &["SET", "KEY", "somebody\nelse", "PX", "100000"]),
        ("", &["SET", "KEY", "running 00 a 1 1", "PX", "100000"]),
        ("", &["SET", "KEY", "running 00000000000000000000000000000001 a 1 1"]),
        ("", &["SET", "KEY", "running 00000000000000000000000000000001 a 99999999999999999999 1", "PX", "100000"]),
        ("", &["SET", "KEY", "done 00000000000000000000000000000001 a 1 99999999999999999999", "PX", "100000"]),
        ("", &["SET", "KEY", "done 0000000000000000000000000000000A a 1 1", "PX", "100000"]),
        ("", &["SET", "KEY", "done 00000000000000000000000000000001 a. 1 1", "PX", "100000"]),
        ("", &["SET", "KEY", "running - a 1 1", "PX", "100000"]),
        ("", &["SADD", "KEY", "x"]),
        (":attempts", &["SET", "KEY", "-1"]),
        (":attempts", &["SET", "KEY", "1e3"]),
        (":attempts", &["SET", "KEY", "99999999999999999999"]),
        (":attempts", &["LPUSH", "KEY", "1"]),
        (":log", &["SET", "KEY", "x"]),
        (":log", &["HSET", "KEY", "forgiven", "many"]),
    ]
    .into_iter()
    .enumerate()
    {
        let slot = slot_of(&format!("job{n}"));
        let key = format!("{}{suffix}", mark_of(&slot));
        let words: Vec<&str> = words.iter().map(|word| if *word == "KEY" { &*key } else { *word }).collect();
        server.command(&words);
        let before = server.command(&["DUMP", &key]);
        let claim = request(&slot, 1);
        let lease = claim.granted(1, slot.start());
        let named = mark_of(&slot);
        foreign(store.claim(&claim).await, Op::Claim, &named);
        foreign(store.complete(&lease, &ended(&lease, Outcome::Success), claim.lease_ttl).await, Op::Complete, &named);
        foreign(store.fail(&lease, &ended(&lease, Outcome::Failure), claim.lease_ttl).await, Op::Fail, &named);
        foreign(store.give_back(&lease, &ended(&lease, Outcome::GivenBack)).await, Op::GiveBack, &named);
        foreign(store.reset(&slot, &audit("reset")).await, Op::Reset, &named);
        foreign(store.inspect(std::slice::from_ref(&slot)).await, Op::Inspect, &named);
        assert_eq!(server.command(&["DUMP", &key]), before, "{words:?}");
    }
}

#[tokio::test]
async fn foreign_fields_of_the_registry_are_told_with_the_key() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for key in ["jobs", "nodes"] {
        server.command(&["HSET", &format!("cronward:default:{key}"), "billing", "{\"name\":\"no"]);
    }
    foreign(store.jobs().await, Op::Jobs, "cronward:default:jobs");
    foreign(store.nodes().await, Op::Nodes, "cronward:default:nodes");
    let pause = "cronward:default:{billing}:pause";
    server.command(&["HSET", "cronward:default:pauses", "billing", "1"]);
    for foreigner in ["hello", r#"{"since_ms":1,"until_ms":inf,"audit":{}}"#] {
        server.command(&["SET", pause, foreigner]);
        foreign(store.pauses().await, Op::Pauses, pause);
        foreign(store.claim(&request(&slot_of("billing"), 1)).await, Op::Claim, pause);
        foreign(store.resume(&"billing".parse().unwrap(), &audit("resume")).await, Op::Resume, pause);
    }
    server.command(&["HSET", "cronward:default:pauses", "NO NAME", "1"]);
    foreign(store.pauses().await, Op::Pauses, "cronward:default:pauses");
}
