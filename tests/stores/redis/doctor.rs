//! `cronward doctor` before real servers with one thing wrong each: it finds that thing, names the line, and ends with the
//! code that says how bad it is.

use std::time::Duration;

use crate::patient::{doctor, within_two_seconds};
use crate::proxy::{Mode, Proxy};
use crate::redis::eventually;
use crate::redis_server::{RedisServer, documented_permissions};

const KEPT: (&str, &str) = ("appendonly", "yes");

#[tokio::test]
async fn a_server_that_keeps_what_it_answers_and_evicts_nothing_is_well() {
    let server = RedisServer::start_with(&[KEPT]);
    let told = doctor(&server.url()).await;
    assert_eq!(told.names(), [""; 0], "{:?}", told.bad);
    assert!(told.code <= 1);
}

#[tokio::test]
async fn every_operation_is_tried_and_nothing_of_it_is_left() {
    let server = RedisServer::start_with(&[KEPT]);
    let told = doctor(&server.url()).await;
    // All but the purge, which asks nothing of a server that forgets by itself.
    assert_eq!(told.found("rights"), ["all 28 operations are allowed: each was tried"]);
    assert_eq!(server.number(&["DBSIZE"]), 0, "{:?}", server.command(&["KEYS", "*"]));
}

/// What forgets the old is asked too, and forgets nothing: a node that is down for a day stays listed.
#[tokio::test]
async fn a_node_that_is_down_stays_listed() {
    let server = RedisServer::start_with(&[KEPT]);
    let old = r#"{"name":"a","instance":"i","version":"1","config_hash":"","job_hashes":{},"labels":{},"started_at":"2026-01-01T00:00:00Z","clock_offset_ms":0,"running":[],"draining":false,"behind":{},"seen_ms":1000}"#;
    server.command(&["HSET", "cronward:default:nodes", "a", old]);
    doctor(&server.url()).await;
    assert_eq!(server.number(&["HEXISTS", "cronward:default:nodes", "a"]), 1);
}

#[tokio::test]
async fn a_server_that_evicts_leases_is_a_fault_with_the_line_to_change() {
    let server = RedisServer::start_with(&[KEPT, ("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")]);
    let told = doctor(&server.url()).await;
    assert_eq!(told.fix_of("eviction error"), "redis.conf: maxmemory-policy noeviction");
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn a_server_that_forgets_at_a_restart_is_warned_of() {
    let server = RedisServer::start();
    let told = doctor(&server.url()).await;
    assert_eq!(told.fix_of("persistence warning"), "redis.conf: appendonly yes");
    assert_eq!(told.code, 1);
}

#[tokio::test]
async fn a_right_that_is_missing_is_a_fault_that_names_the_operation() {
    let server = RedisServer::start_with(&[KEPT]);
    let user = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    let rules: Vec<String> = documented_permissions().into_iter().filter(|rule| rule != "+incr").collect();
    server.allow(&rules);
    let told = doctor(&user).await;
    let refused = told.bad.iter().find(|(name, _)| name == "rights error").unwrap();
    assert!(refused.1["found"].as_str().unwrap().starts_with("claim: "), "{refused:?}");
    assert!(told.fix_of("rights error").contains("docs/stores.md"));
    assert_eq!(told.code, 2);
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_hears_of_no_release_and_one_who_may_not_ask_for_info_is_told() {
    let server = RedisServer::start_with(&[KEPT]);
    let user = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    let rules: Vec<String> =
        documented_permissions().into_iter().filter(|rule| rule != "+subscribe" && rule != "+info").collect();
    server.allow(&rules);
    let told = doctor(&user).await;
    assert!(told.fix_of("notifications warning").contains("subscribing"));
    assert_eq!(told.fix_of("server warning"), "ACL SETUSER cronward +info");
    assert_eq!(told.code, 1);
}

/// What slots need, and nothing of locks: neither their keys nor the channels of processes.
#[tokio::test]
async fn a_user_who_lacks_what_locks_need_is_told_which_key_and_command_and_slots_are_well() {
    let server = RedisServer::start_with(&[KEPT]);
    let user = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    let without = |missing: &str, instead: &[&str]| {
        let rules = documented_permissions().into_iter().filter(|rule| rule != missing);
        server.allow(&rules.chain(instead.iter().map(|&rule| rule.to_owned())).collect::<Vec<_>>());
    };
    let of_slots = ["{doctor-*", "jobs", "nodes", "pauses"].map(|name| format!("~cronward:default:{name}"));
    without("~cronward:*", &of_slots.each_ref().map(String::as_str));
    let told = doctor(&user).await;
    assert_eq!(told.names(), ["rights warning"; 5], "{:?}", told.bad);
    let found: Vec<&str> = told.bad.iter().filter_map(|(_, finding)| finding["found"].as_str()).collect();
    for op in ["acquire", "renew_lock", "release", "locks", "evict"] {
        assert!(found.iter().any(|found| found.starts_with(&format!("{op}: "))), "{op}: {found:?}");
    }
    assert!(told.fix_of("rights warning").contains("docs/stores.md"));
    assert_eq!((told.code, server.number(&["DBSIZE"])), (1, 0), "{:?}", server.command(&["KEYS", "*"]));

    without("+zrange", &[]);
    let told = doctor(&user).await;
    // Which command, a server says from version 7.2 on.
    assert!(told.found_of("rights warning").starts_with("acquire: the user may not run "), "{:?}", told.bad);
    assert!(told.names().iter().all(|name| *name == "rights warning"), "{:?}", told.bad);

    without("&cronward:*", &["&cronward:default:wake"]);
    let told = doctor(&user).await;
    assert_eq!(told.names(), ["notifications warning"], "{:?}", told.bad);
    assert_eq!(told.found_of("notifications warning"), "delivered about a slot, none arrived about a lock");
    assert!(told.fix_of("notifications warning").contains("channels of locks"), "{:?}", told.bad);
}

/// `+hdel` is used where a lease ends, by what forgets old nodes, and by doctor itself.
#[tokio::test]
async fn what_could_not_be_removed_is_told() {
    let server = RedisServer::start_with(&[KEPT]);
    let user = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    server.allow(&documented_permissions().into_iter().filter(|rule| rule != "+hdel").collect::<Vec<_>>());
    let told = doctor(&user).await;
    assert!(told.found_of("leftovers warning").starts_with("doctor-"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
}

/// As some managed servers are.
#[tokio::test]
async fn a_server_that_does_not_answer_info_is_not_well_whatever_its_settings_are() {
    let evicts = [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru"), ("rename-command", "INFO hidden")];
    let server = RedisServer::start_with(&evicts);
    let told = doctor(&server.url()).await;
    assert!(told.found_of("server warning").starts_with("unknown: INFO is refused"), "{:?}", told.bad);
    assert_eq!((told.names(), told.code), (vec!["server warning"], 1), "{:?}", told.bad);
}

#[tokio::test]
async fn a_server_that_waits_for_replicas_which_are_not_there_is_one_error() {
    let server = RedisServer::start_with(&[KEPT, ("min-replicas-to-write", "1")]);
    let told = doctor(&server.url()).await;
    assert_eq!((told.names(), told.code), (vec!["replicas error"], 2), "{:?}", told.bad);
    assert!(told.fix_of("replicas error").contains("min-replicas-to-write 0"), "{:?}", told.bad);
}

/// The documented user may not ask for the configuration, and INFO tells it all the same.
#[tokio::test]
async fn replicas_that_nobody_waits_for_are_warned_of_also_to_the_documented_user() {
    let server = RedisServer::start_with(&[KEPT]);
    let _replica = RedisServer::start_with(&[("replicaof", &format!("127.0.0.1 {}", server.port()))]);
    let user = format!("redis://cronward:secret@127.0.0.1:{}", server.port());
    server.allow(&[documented_permissions(), vec!["+info".to_owned()]].concat());
    eventually("it has a replica", async || {
        server.text(&["INFO", "replication"]).is_some_and(|told| told.contains("connected_slaves:1"))
    })
    .await;
    let told = doctor(&user).await;
    assert_eq!(told.found_of("replicas warning"), "1, min-replicas-to-write is not set");
    assert_eq!(told.fix_of("replicas warning"), "redis.conf: min-replicas-to-write 1");
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let told = doctor(&user).await;
    assert_eq!(told.found("replicas"), ["1, min-replicas-to-write is set"]);
}

#[tokio::test]
async fn a_slow_link_is_warned_of_with_the_time_out_to_set() {
    let server = RedisServer::start_with(&[KEPT]);
    let proxy = Proxy::before(server.port()).await;
    // Both ways together are more than a quarter of op_timeout, and less than the half that a connection may take.
    proxy.set(Mode::Delay(Duration::from_millis(300)));
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let mut told = within_two_seconds(&url).await;
    for _ in 0..4 {
        // A machine on which a connection takes longer than the link makes it has shown nothing.
        if told.names().contains(&"reachable error") {
            told = within_two_seconds(&url).await;
        }
    }
    assert!(told.fix_of("latency warning").starts_with("[store] op_timeout"), "{:?}", told.bad);
}

#[tokio::test]
async fn a_replica_and_a_server_that_is_gone_are_faults() {
    let primary = RedisServer::start_with(&[KEPT]);
    let replica = RedisServer::start_with(&[("replicaof", &format!("127.0.0.1 {}", primary.port()))]);
    let told = doctor(&replica.url()).await;
    assert!(told.fix_of("role error").contains("primary"), "{:?}", told.bad);
    assert_eq!(told.code, 2);
    let gone = { RedisServer::start().url() };
    let told = doctor(&gone).await;
    assert_eq!((told.names(), told.code), (vec!["reachable error"], 2));
}
