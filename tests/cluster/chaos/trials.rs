//! The trials. The short ones run with all others; the long one when it is asked for (`make chaos`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::campaign::{Campaign, Outcome};
use super::controls;
use super::fault::{Fault, NodeFault, ServerFault};
use super::folder::Folder;
use super::plan::{Injection, Shape, draw};
use super::redis::{self, Redis};
use super::sqlite::{self, Sqlite};
use crate::place::Place;

/// Replays a run.
const SEED: &str = "CRONWARD_CHAOS_SEED";
/// Where the outcome is written to.
const JSON: &str = "CRONWARD_CHAOS_JSON";

const SHORT: Shape = Shape {
    nodes: 4,
    storms: 3,
    storm: Duration::from_secs(13),
    calm: Duration::from_secs(9),
    has_links: true,
    of_server: redis::FAULTS,
};

const LONG: Shape =
    Shape { nodes: 5, storms: 26, storm: Duration::from_secs(15), calm: Duration::from_secs(12), ..SHORT };

const LOCAL: Shape = Shape { nodes: 3, storms: 1, has_links: false, of_server: sqlite::FAULTS, ..SHORT };

fn seed_or(default: impl FnOnce() -> u64) -> u64 {
    std::env::var(SEED).map_or_else(|_| default(), |seed| seed.parse().expect("a number in CRONWARD_CHAOS_SEED"))
}

fn on_redis(name: &'static str, seed: u64, shape: &Shape, plan: Vec<Injection>) -> Outcome {
    let campaign = Campaign { name, nodes: shape.nodes, seed, plan };
    campaign.run(Folder::new(name), &mut Redis::new(shape.nodes))
}

/// The whole: thousands of slots, hundreds of faults.
pub(crate) fn thousands_of_slots_on_redis_are_each_once_or_explained(_: &Place) {
    let seed = seed_or(|| u64::from(std::process::id()) ^ chrono::Utc::now().timestamp().unsigned_abs());
    let mut outcome = on_redis("long", seed, &LONG, draw(seed, &LONG));
    let path = std::env::var_os(JSON).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/reliability/chaos-redis.json")),
        PathBuf::from,
    );
    outcome.save(&path);
    outcome.is_clean();
    assert!(outcome.faults >= 200, "{} faults", outcome.faults);
    assert!(outcome.judgement.report.slots >= 2_000, "{} slots", outcome.judgement.report.slots);
    outcome.covers(LONG.span());
    outcome.folder.is_not_needed();
}

pub(crate) fn every_kind_of_fault_on_redis_leaves_each_slot_once_or_explained(_: &Place) {
    let seed = seed_or(|| 1);
    let mut outcome = on_redis("short", seed, &SHORT, draw(seed, &SHORT));
    outcome.is_clean();
    assert!(outcome.faults >= 20, "{} faults", outcome.faults);
    outcome.covers(SHORT.span());
    outcome.folder.is_not_needed();
}

pub(crate) fn nodes_and_runs_that_die_on_one_file_leave_each_slot_once_or_explained(_: &Place) {
    let seed = seed_or(|| 1);
    let folder = Folder::new("sqlite");
    let mut store = Sqlite::new(folder.path());
    let campaign = Campaign { name: "sqlite", nodes: LOCAL.nodes, seed, plan: draw(seed, &LOCAL) };
    let mut outcome = campaign.run(folder, &mut store);
    outcome.is_clean();
    outcome.covers(LOCAL.span());
    outcome.folder.is_not_needed();
}

/// The store's data is gone, again and again, and each time a node looks at its slots anew; nothing else happens. Besides,
/// the judge is put to the test: of evidence that was tampered with he has to complain.
pub(crate) fn a_wiped_store_costs_each_slot_one_repeat_at_most_and_the_judge_can_tell(_: &Place) {
    let shape = Shape { storms: 1, nodes: 3, ..SHORT };
    let wipe_and_look = |number: u32| {
        let at = Duration::from_millis(4_300) * number;
        let wipe = Fault::Server(ServerFault::Flush);
        let wipe = Injection { at, lasts: Duration::ZERO, fault: wipe, node: 0, pick: 0 };
        // A node that has learnt that a slot is done asks no more; one that reads its file again does.
        let (at, node) = (at + Duration::from_millis(200), usize::try_from(number).unwrap() % shape.nodes);
        [wipe.clone(), Injection { at, fault: Fault::Node(NodeFault::Reload), node, ..wipe }]
    };
    let mut outcome = on_redis("wipes", 0, &shape, (0..6).flat_map(wipe_and_look).collect());
    outcome.is_clean();
    controls::each_wipe_costs_a_slot_one_repeat_at_most(&outcome);
    controls::evidence_that_was_tampered_with_is_seen_through(&outcome.evidence);
    outcome.folder.is_not_needed();
}

pub(crate) fn a_seed_is_a_plan(_: &Place) {
    for seed in 0..200 {
        let plan = draw(seed, &SHORT);
        assert_eq!(plan, draw(seed, &SHORT));
        assert_ne!(plan, draw(seed + 1, &SHORT));
        assert!(plan.len() >= 20, "{seed}: {} faults", plan.len());
        let drawn: BTreeSet<Fault> = plan.iter().map(|injection| injection.fault).collect();
        let all: BTreeSet<Fault> = Fault::all(true, redis::FAULTS).into_iter().collect();
        assert_eq!(drawn, all, "{seed}");
        assert!(draw(seed, &LONG).len() >= 215, "{seed}: {}", draw(seed, &LONG).len());
    }
}

pub(crate) fn a_plan_leaves_one_node_well_and_strikes_nothing_that_is_down(_: &Place) {
    for seed in 0..200 {
        let plan = draw(seed, &LONG);
        for (index, one) in plan.iter().enumerate() {
            let until = one.at + one.lasts;
            let mut others = plan[index + 1..].iter().take_while(|other| other.at <= until);
            let same = |other: &&Injection| match (one.fault, other.fault) {
                (Fault::Server(_), Fault::Server(_)) => true,
                _ => one.fault.strikes_a_node() && other.fault.strikes_a_node() && one.node == other.node,
            };
            assert_eq!(others.find(same), None, "{seed}: {one:?}");
            let ill = plan
                .iter()
                .filter(|other| other.fault.strikes_a_node() && other.at <= one.at && one.at < other.at + other.lasts);
            assert!(ill.map(|other| other.node).collect::<BTreeSet<_>>().len() < LONG.nodes, "{seed}: {one:?}");
        }
    }
}
