//! The store is away at the tick.

use std::time::Duration;

use crate::daemon::Daemon;
use crate::place::Place;
use crate::recorder::Run;
use crate::redis_server::RedisServer;
use crate::{jobs, recorder, wait};

const SLOT_MS: i64 = 6_000;

pub(super) fn a_slot_is_done_when_the_store_comes_back_within_it_and_told_as_missed_when_not(place: &Place) {
    // The data outlives the crash: each write is in the file before its answer is sent.
    let mut server = RedisServer::start_with(&[("appendonly", "yes")]);
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::every(6), 0.1, 0)));
    let nodes = place.nodes(["a", "b", "c"], &server.url());
    let before = place.end_of_run(2);
    wait::let_pass(Duration::from_millis(500));
    server.kill();
    // The whole next slot passes, and a second of the one after it.
    let missed_ms = before.slot_start_ms + SLOT_MS;
    let late_ms = missed_ms + SLOT_MS;
    wait::until_true("the store was away long enough", || wait::now_ms() > late_ms + 1_000);
    assert_eq!(place.runs().len(), 2, "nothing starts while the store is away");
    server.start_again();

    let late = place.end_of_run(3);
    assert_eq!(late.slot_start_ms, late_ms, "it runs in the slot in which the store came back: {late:?}");
    assert!(late.start_ms < late_ms + SLOT_MS, "{late:?}");
    let missed = key_before(&late);
    wait::until_true("the missed slot is told", || !told_of(&nodes, &missed).is_empty());
    // By the verdicts of the next slots a second node would have told of this one.
    place.end_of_run(5);
    assert_eq!(told_of(&nodes, &missed), ["missed"], "told once in the whole cluster");
    let slots: Vec<i64> = place.runs().iter().map(|run| run.slot_start_ms).collect();
    assert_eq!(slots[1..], [late_ms - 2 * SLOT_MS, late_ms, late_ms + SLOT_MS, late_ms + 2 * SLOT_MS]);
    let told = place.json(&["attempts", "--job", "work", "--state", "missed"], &server.url());
    let told = told.as_array().unwrap().iter().map(|slot| &slot["slot"]);
    // The slot in which the nodes started may have ended before they could do it.
    let told: Vec<_> = told.filter(|key| recorder::start_ms(key) > before.slot_start_ms).collect();
    assert_eq!(told, [&serde_json::Value::from(missed)], "the only one that was missed");
}

/// An operator flushes the server: no connection is lost, and no hint.
pub(super) fn a_store_that_is_emptied_under_live_nodes_is_reported_by_each_of_them(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::every(6), 0.1, 0)));
    let nodes = place.nodes(["a", "b"], &server.url());
    let is_known = |name: &str| server.number(&["HEXISTS", "cronward:default:nodes", name]) == 1;
    wait::until_true("both are known", || is_known("a") && is_known("b"));
    // Each has acknowledged a claim since its first heartbeat.
    place.end_of_run(1);
    server.command(&["FLUSHALL"]);
    for node in &nodes {
        assert_eq!(node.says("the store has lost its data")["level"], "ERROR");
    }
    wait::until_true("the job is known again", || server.number(&["HEXISTS", "cronward:default:jobs", "work"]) == 1);
}

/// The key of the slot before this run's.
fn key_before(run: &Run) -> String {
    let start = chrono::DateTime::from_timestamp_millis(run.slot_start_ms - SLOT_MS).unwrap();
    cronward::slot::SlotKey::of(start).unwrap().to_string()
}

/// The verdicts that all nodes told of a slot.
fn told_of(nodes: &[Daemon], slot: &str) -> Vec<String> {
    let lines = nodes.iter().flat_map(|node| node.said("slot closed")).filter(|line| line["slot"] == *slot);
    lines.map(|line| line["verdict"].as_str().unwrap().to_owned()).collect()
}
