//! No node is there for a while.

use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::{jobs, recorder, wait};

const SLOT_MS: i64 = 4_000;

pub(super) fn slots_that_ended_while_no_node_was_alive_are_told_as_missed_once(place: &Place) {
    // Two heartbeats of ten seconds are missed.
    silence(place, 26_000);
}

pub(super) fn a_slot_that_ended_while_all_nodes_were_started_again_is_told_as_missed_once(place: &Place) {
    silence(place, SLOT_MS);
}

/// All nodes are killed after a slot was done, and come back after so long and one slot more.
fn silence(place: &Place, silence_ms: i64) {
    let server = RedisServer::start();
    let known = jobs::recorded("known", &jobs::every(4), 0.1, 0);
    place.jobs(&jobs::file(&known));
    let nodes = place.nodes(["a", "b"], &server.url());
    place.end_of_run(2);
    wait::until_true("the marks", || marks(&server) == place.runs().len());
    drop(nodes);
    // Killed in the slot of the last run; that one and those before are done.
    let last = place.runs().pop().unwrap();
    let back_ms = last.slot_start_ms + silence_ms + SLOT_MS;
    wait::until_true("the silence was long enough", || wait::now_ms() > back_ms);
    place.jobs(&jobs::file(&format!("{known}{}", jobs::recorded("fresh", &jobs::every(4), 0.1, 0))));
    let nodes = place.nodes(["a", "b"], &server.url());
    let runs_before = place.runs().len();
    place.end_of_run(runs_before + 4);

    let first_again = place.runs_of("known").into_iter().find(|run| run.start_ms > back_ms).expect("it runs again");
    let missed = (first_again.slot_start_ms - last.slot_start_ms) / SLOT_MS - 1;
    // The slot in which the first nodes started may have ended before they could do it.
    let since = |slot: &serde_json::Value| recorder::start_ms(&slot["slot"]) > last.slot_start_ms;
    let told = || nodes.iter().flat_map(|node| node.said("slot closed")).filter(since).collect::<Vec<_>>();
    wait::until_true("every missed slot is told", || i64::try_from(told().len()).unwrap() >= missed);
    place.end_of_run(place.runs().len() + 2);
    let mut slots: Vec<_> = told().iter().map(|line| line["slot"].as_str().unwrap().to_owned()).collect();
    slots.sort();
    slots.dedup();
    let all = told();
    assert_eq!(
        (all.len(), slots.len()),
        (missed.try_into().unwrap(), missed.try_into().unwrap()),
        "each once: {all:#?}"
    );
    // Nothing is said of slots that ended before anybody knew the job, nor of those that were done.
    assert!(all.iter().all(|line| line["job"] == "known" && line["verdict"] == "missed"), "{all:#?}");
    let listed = place.json(&["attempts", "--state", "missed"], &server.url());
    let listed = listed.as_array().unwrap().iter().filter(|slot| since(slot)).count();
    assert_eq!(listed, usize::try_from(missed).unwrap());
}

/// Done markers so far.
fn marks(server: &RedisServer) -> usize {
    let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "cronward:default:{*}"])).unwrap();
    keys.iter().filter(|key| server.text(&["GET", key]).is_some_and(|mark| mark.starts_with("done "))).count()
}
