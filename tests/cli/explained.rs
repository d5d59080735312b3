//! `cronward why`, `nodes` and `doctor`, as a person and a script call them, on the embedded store and without a daemon.

use serde_json::Value;

use crate::guarding::zone;
use crate::program::{Ended, Place};

const STORE: &str = "sqlite:store.db";

/// A place with a store in which nothing has happened.
fn empty() -> Place {
    let place = Place::new();
    assert_eq!(place.run(&["migrate", "--store", STORE]).code, 0);
    place
}

fn exec(place: &Place, script: &str) -> Ended {
    let zone = zone();
    let base = ["exec", "--store", STORE, "--job", "push", "--slot", "day", "--timezone", &zone, "--node", "crontab-1"];
    place.run(&[&base[..], &["--", "/bin/sh", "-c", script]].concat())
}

fn json(place: &Place, words: &[&str]) -> (i32, Value) {
    let told = place.run(&[words, &["--json", "--store", STORE]].concat());
    let value = serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"));
    (told.code, value)
}

#[test]
fn why_tells_who_did_a_slot_and_who_found_it_done() {
    let place = Place::new();
    assert_eq!(exec(&place, "exit 3").code, 3);
    assert_eq!(exec(&place, "true").code, 0);
    assert_eq!(exec(&place, "true").code, 0);
    let (code, why) = json(&place, &["why", "push"]);
    let told: Vec<&str> = why["decisions"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    let count = |what: &str| told.iter().filter(|told| **told == what).count();
    assert_eq!((code, count("asked"), count("claimed"), count("ended"), count("done")), (0, 3, 2, 2, 1), "{why:#}");
    let sentence = why["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("the slot ran: node crontab-1 completed it at "), "{sentence}");
    assert!(sentence.ends_with("with attempt 2, after 1 attempt without success"), "{sentence}");
    assert_eq!((&why["state"], &why["fix"]), (&Value::from("done"), &Value::Null));

    let shown = place.run(&["why", "push", "--store", STORE]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""));
    assert!(shown.stdout.contains("\n\nthe slot ran: node crontab-1 completed it"), "{}", shown.stdout);
}

#[test]
fn why_of_a_slot_that_failed_names_the_command_that_mends_it() {
    let place = Place::new();
    (0..3).for_each(|_| assert_eq!(exec(&place, "exit 3").code, 3));
    let shown = place.run(&["why", "push", "--store", STORE]);
    assert!(shown.stdout.contains("the slot failed: all 3 attempts are exhausted; "), "{}", shown.stdout);
    assert!(shown.stdout.lines().last().unwrap().starts_with("fix: cronward reset push@"), "{}", shown.stdout);
}

#[test]
fn why_of_a_job_that_nobody_knows_says_so() {
    let place = empty();
    let told = place.run(&["why", "billing", "--store", STORE]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.contains("no job billing at sqlite:/"), "{}", told.stderr);
}

#[test]
fn nodes_without_a_daemon_are_none() {
    let place = empty();
    let (code, nodes) = json(&place, &["nodes"]);
    assert_eq!((code, nodes), (0, Value::Array(vec![])));
    assert!(place.run(&["nodes", "--store", STORE]).stderr.starts_with("no nodes: "));
}

#[test]
fn doctor_of_the_embedded_store_finds_no_fault() {
    let place = empty();
    let (code, found) = json(&place, &["doctor"]);
    // A busy machine or a nearly full disk is warned of.
    assert!(code <= 1, "{found:#}");
    assert_eq!((&found["kind"], found["findings"][0]["check"].as_str()), (&Value::from("sqlite"), Some("reachable")));
    let rights = found["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "rights").unwrap();
    assert_eq!(rights["severity"], "ok", "{rights}");
    // What was tried is nobody's job, and leaves none behind.
    assert_eq!(json(&place, &["jobs"]).1, Value::Array(vec![]));
}

#[test]
fn doctor_of_a_store_that_is_away_is_a_fault() {
    let told = Place::new().run(&["doctor", "--store", "redis://127.0.0.1:1"]);
    assert_eq!((told.code, &*told.stderr), (2, ""), "{told:?}");
    assert!(told.stdout.contains("can happen: nothing is claimed: no slot starts"), "{}", told.stdout);
}
