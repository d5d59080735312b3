//! Commands that fail.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};

use crate::daemon::Daemon;
use crate::place::Place;
use crate::recorder::Run;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, stall, wait};

pub(super) fn a_slot_that_always_fails_is_tried_three_times_on_several_nodes_and_told_once(place: &Place) {
    const LENGTH_MS: i64 = 6_000;
    const STANDS_BACK: Duration = Duration::from_millis(250);
    let begun = Instant::now();
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("bad", &jobs::every(6), 0.1, 3)));
    let nodes = place.nodes(["a", "b", "c"], &server.url());
    // The first slot may be cut short by the start; the second is a whole one.
    let first = place.run_number(1).slot;
    let whole = wait::until("a whole slot", || place.runs().into_iter().find(|run| run.slot != first));
    let (slot, slot_start_ms) = (whole.slot, whole.slot_start_ms);
    let closings = || nodes.iter().flat_map(|node| closed(node, &slot)).collect::<Vec<_>>();
    wait::until_true("the slot's verdict", || !closings().is_empty());
    // The next slot has its runs too: by then a late one of this slot would have been seen.
    let later = || place.runs().into_iter().filter(|run| run.slot_start_ms > slot_start_ms).count();
    wait::until_true("the next slot's runs", || later() >= 3);

    assert_eq!(closings(), ["failed"], "told once in the whole cluster");
    assert_eq!(stored::counter_of(&server, "bad", &slot).as_deref(), Some("3"));
    let runs: Vec<_> = place.runs().into_iter().filter(|run| run.slot == slot).collect();
    were_tries_within(&runs, LENGTH_MS);
    // The failing node stands back for a quarter of a second. On a machine that stalls for so long, and in the first slot,
    // during which nodes were still starting, others may come later than that.
    if stall::allowance(begun) < STANDS_BACK {
        let all: Vec<_> = place.runs().into_iter().filter(|run| run.slot != first).collect();
        let same = |pair: &&[Run]| pair[0].slot == pair[1].slot && pair[0].node == pair[1].node;
        assert_eq!(all.windows(2).find(same).map(|pair| format!("{pair:?}")), None, "another node gets the retry");
    }
    is_listed(&place.json(&["attempts", "--job", "bad"], &server.url()), &runs);
}

/// Three attempts, one after the other, before the slot's end, on more than one node.
fn were_tries_within(runs: &[Run], length_ms: i64) {
    assert_eq!(runs.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(runs.iter().map(|run| run.trigger.as_str()).collect::<Vec<_>>(), ["schedule", "retry", "retry"]);
    assert!(runs.iter().all(|run| run.start_ms < run.slot_start_ms + length_ms && !run.overlap), "{runs:?}");
    assert!(runs.windows(2).all(|pair| pair[0].fence < pair[1].fence), "{runs:?}");
    let on: BTreeSet<_> = runs.iter().map(|run| run.node.clone()).collect();
    assert!(on.len() > 1, "each retry on the node that had failed: {runs:?}");
}

/// The listing has these runs' slot as failed, with each run's node, exit code and output.
fn is_listed(listing: &serde_json::Value, runs: &[Run]) {
    let told =
        listing.as_array().unwrap().iter().find(|view| view["slot"] == *runs[0].slot).expect("the slot is listed");
    assert_eq!((told["state"].as_str(), told["attempts"].as_u64()), (Some("failed"), Some(3)), "{told:#}");
    assert_eq!(told["runs"].as_array().unwrap().len(), runs.len(), "{told:#}");
    for (run, view) in runs.iter().zip(told["runs"].as_array().unwrap()) {
        assert_eq!((view["node"].as_str(), view["exit_code"].as_i64()), (Some(run.node.as_str()), Some(3)));
        let output = format!("attempt {} on {}\n", run.attempt, run.node);
        assert_eq!(view["output_tail"].as_str(), Some(output.as_str()));
    }
}

/// The verdicts that a node told of a slot.
fn closed(node: &Daemon, slot: &str) -> Vec<String> {
    let lines = node.said("slot closed").into_iter().filter(|line| line["slot"] == *slot);
    lines.map(|line| line["verdict"].as_str().unwrap().to_owned()).collect()
}

pub(super) fn a_command_that_does_not_exist_fails_with_127_and_uses_attempts_up(place: &Place) {
    let server = RedisServer::start();
    let job = format!("[jobs.gone]\n{}\ncommand = [\"./no-such-program\"]\n", jobs::one_slot(wait::SOON));
    place.jobs(&jobs::file(&job));
    let nodes = place.nodes(["a", "b"], &server.url());
    wait::until_true("the attempts are used up", || {
        nodes.iter().any(|node| !node.said("attempts exhausted").is_empty())
    });
    assert_eq!(stored::counter(&server, "gone"), "3");
    let told = place.json(&["attempts", "--job", "gone"], &server.url());
    assert_eq!(told[0]["state"], "failed", "{told:#}");
    let runs = told[0]["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["exit_code"].as_i64()).collect::<Vec<_>>(), [Some(127); 3], "{told:#}");
    assert!(runs.iter().all(|run| run["message"].as_str().is_some_and(|text| text.contains("no-such-program"))));
}

pub(super) fn a_node_without_a_free_descriptor_leaves_every_slot_to_its_neighbour_and_recovers(place: &Place) {
    const SLOTS: usize = 12;
    let server = RedisServer::start();
    let schedule = format!("{}\nmax_attempts = 1", jobs::every(2));
    place.jobs(&jobs::file(&["x", "y"].map(|name| jobs::recorded(name, &schedule, 0.0, 0)).concat()));
    let [poor, _well] = place.nodes(["poor", "well"], &server.url());
    place.run_number(2);
    let before = limit_descriptors(&poor, lowest_free(&poor));
    let told = poor.says("commands cannot be started");
    assert_eq!(told["level"], "ERROR", "{told:#}");
    let (ran, begun) = (place.runs().len(), Instant::now());
    place.run_number(ran + SLOTS);
    let listed = place.json(&["attempts"], &server.url());
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|slot| slot["state"].as_str().unwrap()).collect();
    assert!(!states.contains(&"failed"), "{listed:#}");
    assert_eq!(poor.said("commands cannot be started").len(), 1, "one line while it lasts");
    // One claim after each pause of 1, 2, 4, … seconds, and those of the slots that were let in before the first.
    let tries = poor.said("not started for want of a resource: giving the attempt back").len();
    let most = 4 + 6 + usize::try_from(begun.elapsed().as_secs()).unwrap() / 30;
    assert!((1..=most).contains(&tries), "{tries} attempts were given back");
    limit_descriptors(&poor, before);
    poor.says("commands can be started again");
    wait::until_true("the node runs commands again", || place.runs().iter().skip(ran).any(|run| run.node == "poor"));
}

/// The lowest number that no descriptor of the node has.
fn lowest_free(node: &Daemon) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{}/fd", node.pid().as_raw_nonzero())).unwrap();
    let open: BTreeSet<u64> = open.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

/// Lets the node open no descriptor of this number or above, and answers the limit before.
fn limit_descriptors(node: &Daemon, current: u64) -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(current), ..limit };
    prlimit(Some(node.pid()), Resource::Nofile, limit).unwrap().current.unwrap()
}
