//! A node that is asked to leave.

use std::time::{Duration, Instant};

use crate::daemon::{Daemon, dies_within};
use crate::link::Link;
use crate::place::Place;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, stall, wait};

/// Two nodes that leave after this drain, and the first run of a job on one of them; that one comes first.
fn running(place: &Place, server: &RedisServer, drain: &str, job: &str) -> [Daemon; 2] {
    place.jobs(&jobs::file(&format!("{job}\n[node]\ndrain = \"{drain}\"\n")));
    let [a, b] = place.nodes(["a", "b"], &server.url());
    if place.run_number(1).node == "a" { [a, b] } else { [b, a] }
}

pub(super) fn a_node_that_leaves_lets_its_run_finish(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::recorded("work", &jobs::one_slot(wait::SOON), 3.0, 0);
    let [mut leaving, _other] = running(place, &server, "30s", &job);
    leaving.terminate();
    leaving.says("shutting down");
    assert!(place.run_number(1).end_ms.is_none(), "the run goes on");
    assert_eq!(leaving.exits().code(), Some(0));
    assert!(place.run_number(1).end_ms.is_some(), "the run was let finish");
    assert!(stored::is_done(&server, "work"));
    assert_eq!((place.runs().len(), stored::counter(&server, "work").as_str()), (1, "1"));
}

pub(super) fn a_node_that_is_asked_twice_stops_its_run_and_gives_it_back(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2);
    let [mut leaving, other] = running(place, &server, "10m", &job);
    leaving.terminate();
    leaving.says("shutting down");
    leaving.terminate();
    assert_eq!(leaving.exits().code(), Some(0));
    let second = place.end_of_run(2);
    assert_eq!((second.attempt, second.node.as_str(), second.overlap), (2, other.name.as_str(), false));
}

pub(super) fn a_node_whose_store_is_silent_leaves_when_its_lease_would_have_lapsed(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    let job = jobs::recorded("work", &jobs::one_slot(wait::SOON), 0.1, 0);
    place.jobs(&jobs::file(&format!("{job}\n[node]\ndrain = \"10m\"\n")));
    let [mut node] = place.nodes(["a"], &link.url());
    // A node has more to ask and to tell after the first contact, and the claim is to meet the silence.
    wait::until_true("its jobs are known", || server.number(&["HEXISTS", "cronward:default:jobs", "work"]) == 1);
    link.set(Mode::BlackHole);
    // The claim may have arrived: the node cannot know.
    node.says_with("store failed", "op", "claim");
    let asked = Instant::now();
    node.terminate();
    assert_eq!(node.exits().code(), Some(0));
    let limit = jobs::LEASE_TTL + Duration::from_secs(8) + stall::allowance(asked);
    assert!(asked.elapsed() < limit, "it left after {:?}", asked.elapsed());
    assert_eq!(place.runs().len(), 0);
}

pub(super) fn a_node_that_leaves_while_its_store_is_away_says_which_success_the_store_does_not_know(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    let (go, journal) = (place.file("go"), place.file("a.jsonl"));
    let command = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    let job = format!("[jobs.work]\n{}\ncommand = \"{command}\"\n", jobs::one_slot(wait::SOON));
    place.jobs(&jobs::file(&format!("{job}[node]\ndrain = \"0s\"\njournal = {journal:?}\n")));
    let [mut node] = place.nodes(["a"], &link.url());
    node.says("run started");
    link.set(Mode::LoseRequests);
    std::fs::write(go, "").unwrap();
    assert_eq!(node.says("run ended")["outcome"], "success");
    assert!(!stored::is_done(&server, "work"), "it cannot know");
    node.terminate();
    assert_eq!(node.exits().code(), Some(0));
    assert_eq!(node.said("could not be recorded").len(), 1);
    let journal = std::fs::read_to_string(journal).unwrap();
    let events: Vec<serde_json::Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last: Vec<_> = events.iter().rev().take(2).map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(last, ["stopped", "settlement_given_up"], "{journal}");
}

pub(super) fn a_run_that_outlasts_the_drain_is_given_back_and_done_by_another_node(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2);
    let [mut leaving, other] = running(place, &server, "500ms", &job);
    let first = place.run_number(1);
    let asked = Instant::now();
    leaving.terminate();
    dies_within(Duration::from_millis(500 + 2_000) + stall::allowance(asked), first.pid);
    assert_eq!(leaving.exits().code(), Some(0));
    let second = place.end_of_run(2);
    assert_eq!((second.attempt, second.node.as_str(), second.overlap), (2, other.name.as_str(), false));
    assert!(second.fence > first.fence);
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    let told = place.json(&["attempts", "--all", "--job", "work"], &server.url());
    let numbers = ["attempts", "forgiven"].map(|field| told[0][field].as_u64());
    assert_eq!(numbers, [Some(1), Some(1)], "the run that was cut short does not count: {told:#}");
    let outcomes: Vec<_> = told[0]["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str()).collect();
    assert_eq!(outcomes, [Some("given_back"), Some("success")], "{told:#}");
}
