//! Runs the checker and tells what it found: on stderr, also where all is well, and, where `CRONWARD_MODEL_JSON` names a file,
//! as one line of JSON at its end for each world and each bug.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use serde_json::{Value, json};
use stateright::{Checker, HasDiscoveries, Model};

use super::properties;
use super::setup::{Bug, Setup};
use super::world::World;

/// Visits every state; no law may be broken, and these things must have been possible.
pub(crate) fn holds(title: &str, setup: Setup, possible: &[&'static str]) {
    let started = Instant::now();
    let world = World::new(setup, possible);
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, unique, depth) = (checker.state_count(), checker.unique_state_count(), checker.max_depth());
    let (machines, ledgers) = checker.model().sizes();
    let seconds = started.elapsed().as_secs_f64();
    tell(&format!(
        "{title}: {states} states, {unique} of them different, {depth} steps deep, \
         {machines} machines, {ledgers} ledgers, {seconds:.1} s"
    ));
    let mut reached = Vec::new();
    for (name, path) in checker.discoveries() {
        if possible.contains(&name) {
            reached.push(name);
        } else {
            let broken = properties::broken(checker.model(), path.last_state());
            panic!("{title}: {broken:?} broken by {:?}", path.into_actions());
        }
    }
    reached.sort_unstable();
    append(&json!({ "world": title, "states": states, "unique": unique, "depth": depth, "seconds": seconds,
        "reached": reached }));
    for name in possible {
        assert!(reached.contains(name), "{title}: impossible: {name}");
    }
}

/// Visits states until each of these laws was broken.
pub(crate) fn breaks(bug: Bug, setup: Setup, expected: &[&'static str]) {
    let world = World::new(Setup { bug: Some(bug), ..setup }, &[]);
    let all = HasDiscoveries::AllOf(expected.iter().copied().collect());
    let checker = world.checker().finish_when(all).spawn_bfs().join();
    let found = checker.discoveries();
    let broken: BTreeSet<&'static str> = found.keys().copied().collect();
    let path = expected.first().and_then(|name| found.get(name)).map(|path| path.clone().into_actions());
    tell(&format!("{bug:?} breaks {broken:?}, as by {path:?}"));
    let steps = path.map(|path| path.len());
    append(&json!({ "control": format!("{bug:?}"), "breaks": broken, "expected": expected, "steps": steps }));
    for name in expected {
        assert!(broken.contains(name), "{bug:?} breaks {broken:?} but not: {name}");
    }
}

/// Written directly: what is printed by a test that passes is not shown. One write for a line, as below.
fn tell(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("stderr is writable");
}

/// One write, so that tests that run side by side do not mix their lines.
fn append(line: &Value) {
    if let Some(file) = std::env::var_os("CRONWARD_MODEL_JSON") {
        let mut file =
            OpenOptions::new().create(true).append(true).open(file).expect("CRONWARD_MODEL_JSON is writable");
        file.write_all(format!("{line}\n").as_bytes()).expect("CRONWARD_MODEL_JSON is writable");
    }
}
