//! Every history of a small Redlock: three masters, two nodes, one slot, two attempts, and each order in which messages
//! arrive, are lost or come late, nodes stall, leases lapse and a master loses its data. Each state that can be reached is
//! visited, and the invariants of `docs/redlock.md` are asked of it.
//!
//! What decides is the real code: `cronward::store::redlock`. What is modelled is the world around it: the masters (`master`,
//! by the scripts that they run), the nodes' rounds of calls (`node`), time in whole ticks and the faults (`world`). A call is
//! one step, request and answer together; what a late or lost message adds to that is a fault.
//!
//! **What is left out**: that masters tell of the longest lease they were asked for (all nodes know it here; `store::redlock` tries
//! it by itself), operators, pauses, waits between attempts, the slot's start and end, clocks that drift apart, masters
//! that are added. The masters are alike, so states that differ only in their order are one.
//!
//! `CRONWARD_MODEL_JSON=FILE` appends what was visited, one JSON line per world and per control. The larger worlds are
//! `#[ignore]`d: `make model-long` runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "a test says what it expects"
)]

mod master;
mod node;
mod properties;
mod turn;
mod world;

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use self::properties as is;
use self::world::{Bug, Faults, World};

/// Appends a line to the file that the environment names, if it names one.
fn tell(line: &str) {
    if let Some(file) = std::env::var_os("CRONWARD_MODEL_JSON") {
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(file).expect("the file can be written");
        writeln!(file, "{line}").expect("the file can be written");
    }
    say(line);
}

/// Written directly: what is printed by a test that passes is not shown. One write, so that tests that run side by side do not
/// mix their lines.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("stderr is writable");
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(","))
}

/// Visits every state; nothing may be broken, and these must have been possible.
fn holds(title: &str, world: World, possible: &[&'static str]) {
    let started = Instant::now();
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries();
    let mut reached: Vec<&'static str> = found.keys().copied().collect();
    reached.sort_unstable();
    tell(&format!(
        r#"{{"world":"redlock: {title}","states":{},"unique":{},"depth":{},"seconds":{:.1},"reached":{}}}"#,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
        quoted(&reached)
    ));
    for (name, path) in found {
        let failed = checker.model().property(name).expectation == Expectation::Always;
        if failed {
            path.clone().into_vec().into_iter().for_each(|(state, then)| say(&format!("{state:?}\n{then:?}")));
        }
        assert!(!failed, "{title}: {name}: broken, as shown above");
    }
    for name in possible {
        assert!(reached.contains(name), "{title}: impossible: {name}");
    }
}

/// Visits states until each of these laws was broken.
fn breaks(bug: Bug, world: World, expected: &[&'static str]) {
    let world = World { bug: Some(bug), ..world };
    let until = HasDiscoveries::AllOf(expected.iter().copied().collect());
    let checker = world.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    let always = |name: &&&'static str| checker.model().property(name).expectation == Expectation::Always;
    let broken: Vec<&'static str> = found.keys().filter(always).copied().collect();
    let steps = expected.first().and_then(|name| found.get(name));
    let steps = steps.map_or(0, |path| path.clone().into_actions().len());
    tell(&format!(
        r#"{{"control":"redlock: {bug:?}","breaks":{},"expected":{},"states":{},"steps":{steps}}}"#,
        quoted(&broken),
        quoted(expected),
        checker.unique_state_count()
    ));
    for name in expected {
        assert!(broken.contains(name), "{bug:?} breaks {broken:?} but not: {name}");
    }
}

const NONE: Faults = Faults { losses: 0, late: 0, wipes: 0, renewals: 0 };

#[test]
fn with_nodes_that_stall_for_any_time() {
    holds(
        "stalls",
        World::small(NONE),
        &[is::RETRY, is::EXHAUSTED, is::TAKEOVER, is::DONE, is::CONTENDED, is::SAME_GRANT],
    );
}

#[test]
fn with_a_lost_message() {
    let faults = Faults { losses: 1, ..NONE };
    holds("a lost message", World::brief(faults), &[is::RETRY, is::TAKEOVER, is::DONE, is::VETOED, is::REPAIRED]);
}

#[test]
fn with_a_late_message() {
    let possible = &[is::RETRY, is::TAKEOVER, is::DONE, is::VOIDED];
    holds("a late message", World::brief(Faults { late: 1, ..NONE }), possible);
}

#[test]
fn with_a_master_that_loses_its_data() {
    let faults = Faults { wipes: 1, ..NONE };
    holds("a wiped master", World::brief(faults), &[is::RETRY, is::TAKEOVER, is::VETOED, is::REPAIRED]);
}

/// The one that lost its data is missed only where another is not heard: short, so that each order of the two can be visited.
#[test]
fn with_a_master_that_loses_its_data_and_a_lost_message() {
    let world = World { horizon: 1, ..World::brief(Faults { wipes: 1, losses: 1, ..NONE }) };
    holds("a wipe and a loss at once", world, &[is::YOUNG, is::VETOED, is::DONE]);
}

/// A master that is older than one node's lease and younger than the other's.
#[test]
fn with_leases_of_two_lengths_a_wiped_master_and_a_lost_message() {
    holds("leases of two lengths", World::uneven(WIPED_AND_LOST), &[is::YOUNG, is::VETOED, is::DONE]);
}

#[test]
fn with_renewals() {
    let faults = Faults { renewals: 1, ..NONE };
    holds("renewals", World::brief(faults), &[is::RENEWED, is::RESTORED, is::RENEWAL_LOST, is::DONE]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_larger_worlds() {
    let renewed = Faults { renewals: 1, ..NONE };
    let (lost, late, wiped) = (Faults { losses: 1, ..NONE }, Faults { late: 1, ..NONE }, Faults { wipes: 1, ..NONE });
    holds("long: a lost message", World::small(lost), &[is::RETRY, is::SAME_GRANT, is::VETOED, is::REPAIRED]);
    holds("long: a late message", World::small(late), &[is::RETRY, is::VOIDED, is::DONE]);
    holds("long: a wiped master", World::small(wiped), &[is::RETRY, is::VETOED, is::REPAIRED]);
    holds("long: renewals", World::small(renewed), &[is::RENEWED, is::RESTORED, is::RENEWAL_LOST]);
    holds("long: staggered", World::staggered(NONE), &[is::RETRY, is::TAKEOVER, is::DONE]);
    holds("long: two lost messages", World::brief(Faults { losses: 2, ..NONE }), &[is::RETRY, is::VETOED]);
    holds("long: lost and late", World::brief(Faults { late: 1, ..lost }), &[is::RETRY, is::DONE]);
    holds("long: a wipe and a loss", World::brief(Faults { losses: 1, ..wiped }), &[is::YOUNG, is::VETOED]);
    holds("long: a wipe and a late message", World::brief(Faults { late: 1, ..wiped }), &[is::YOUNG]);
    holds("long: renewals and a loss", World::brief(Faults { losses: 1, ..renewed }), &[is::RENEWED, is::RESTORED]);
    holds("long: renewals and a wipe", World::brief(Faults { wipes: 1, ..renewed }), &[is::RENEWED, is::RESTORED]);
    holds("long: renewals, a late message", World::brief(Faults { late: 1, ..renewed }), &[is::RENEWED]);
}

/// Each bug, a world in which it shows, and what it breaks there.
const CONTROLS: &[(Bug, World, &[&str])] = &[
    (Bug::QuorumOfOne, World::brief(NONE), &[is::ONE_VALID]),
    (Bug::YoungCounts, World::brief(WIPED_AND_LOST), &[is::ONE_VALID]),
    (Bug::LongestForgotten, World::uneven(WIPED_AND_LOST), &[is::ONE_VALID]),
    (Bug::DoneIsNoVeto, World::brief(NONE), &[is::ABSORBING]),
    (Bug::ReleasedWhereGranted, World::brief(Faults { losses: 1, ..NONE }), &[is::RELEASED]),
    (Bug::NumberOnOne, World::brief(NONE), &[is::RISING]),
    (Bug::FailedRenewalUnlocks, World::brief(Faults { renewals: 1, losses: 2, ..NONE }), &[is::BACKED]),
    (Bug::LimitIgnored, World::small(NONE), &[is::BOUNDED]),
];

const WIPED_AND_LOST: Faults = Faults { wipes: 1, losses: 1, ..NONE };

#[test]
fn each_bug_breaks_what_it_should() {
    for (bug, world, expected) in CONTROLS {
        breaks(*bug, *world, expected);
    }
}

/// A law that no bug breaks would say nothing.
#[test]
fn each_law_is_broken_by_some_bug() {
    let broken: BTreeSet<&str> = CONTROLS.iter().flat_map(|(_, _, expected)| expected.iter().copied()).collect();
    let laws = is::of().into_iter().filter(|property| property.expectation == Expectation::Always);
    assert_eq!(broken, laws.map(|law| law.name).collect());
}

#[test]
#[ignore = "minutes: make model-long"]
fn a_number_that_comes_back_meets_a_late_request() {
    breaks(Bug::NumbersComeBack, World::small(Faults { late: 1, ..NONE }), &[is::BACKED]);
}
