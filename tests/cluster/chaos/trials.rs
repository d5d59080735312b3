//! The trials. The short ones run with all others; the long ones when they are asked for (`make chaos`, `make chaos-stores`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::campaign::{Campaign, Outcome};
use super::fault::{Fault, NodeFault, ServerFault};
use super::folder::Folder;
use super::plan::{Injection, Shape, draw};
use super::stores::names;
use super::stores::redis::{self, Redis};
use super::stores::sqlite::{self, Sqlite};
use super::stores::{ALL, Store};
use super::turn::Turn;
use super::{controls, lock_controls};
use crate::place::Place;

/// Replays a run.
const SEED: &str = "CRONWARD_CHAOS_SEED";
/// Where the outcome is written to.
const JSON: &str = "CRONWARD_CHAOS_JSON";

const SHORT: Shape =
    Shape { nodes: 4, storms: 3, storm: Duration::from_secs(13), calm: Duration::from_secs(9), bears: redis::BEARS };

const LONG: Shape =
    Shape { nodes: 5, storms: 26, storm: Duration::from_secs(15), calm: Duration::from_secs(12), ..SHORT };

const LOCAL: Shape = Shape { nodes: 3, storms: 1, bears: sqlite::BEARS, ..SHORT };

/// The file has no server to be struck, and more time to be used.
const LONG_LOCAL: Shape = Shape { nodes: 4, storms: 4, calm: Duration::from_secs(12), ..LOCAL };

/// Several servers that sync to one disk, or a Java machine that has just started, take longer for a step than one Redis does.
const SYNCS: Duration = Duration::from_millis(400);

/// The other stores at short, and at length: half of a minute of storms, and a whole one.
impl Store {
    const fn short(&self) -> Shape {
        Shape { nodes: 3, storms: 1, storm: Duration::from_secs(32), calm: Duration::from_secs(7), bears: self.bears }
    }

    const fn long(&self) -> Shape {
        let (storm, calm) = (Duration::from_secs(18), Duration::from_secs(11));
        Shape { nodes: 4, storms: 3, storm, calm, bears: self.bears }
    }

    fn run(&self, seed: u64, shape: &Shape) -> Outcome {
        let plan = draw(seed, shape);
        let campaign =
            Campaign { name: self.name, nodes: shape.nodes, seed, plan, locks: shape.bears.locks, patience: SYNCS };
        campaign.run(Folder::new(self.name), (self.start)(shape.nodes).as_mut())
    }
}

/// What the short trials of the stores replay: every kind of fault is in it.
const IN_CI: u64 = 2;

fn seed_or(default: impl FnOnce() -> u64) -> u64 {
    std::env::var(SEED).map_or_else(|_| default(), |seed| seed.parse().expect("a number in CRONWARD_CHAOS_SEED"))
}

/// Another one each time.
fn any_seed() -> u64 {
    seed_or(|| u64::from(std::process::id()) ^ chrono::Utc::now().timestamp().unsigned_abs())
}

fn figures(store: &str) -> PathBuf {
    assert!(names::EVERY.contains(&store), "make report asks for no figures of {store}");
    PathBuf::from(format!("{}/target/reliability/chaos-{store}.json", env!("CARGO_MANIFEST_DIR")))
}

fn on_redis(name: &'static str, seed: u64, shape: &Shape, plan: Vec<Injection>) -> Outcome {
    let (locks, patience) = (shape.bears.locks, Duration::ZERO);
    let campaign = Campaign { name, nodes: shape.nodes, seed, plan, locks, patience };
    campaign.run(Folder::new(name), &mut Redis::new(shape.nodes))
}

fn on_sqlite(seed: u64, shape: &Shape) -> Outcome {
    let folder = Folder::new("sqlite");
    let mut store = Sqlite::new(folder.path());
    let (nodes, plan, patience) = (shape.nodes, draw(seed, shape), Duration::ZERO);
    Campaign { name: "sqlite", nodes, seed, plan, locks: shape.bears.locks, patience }.run(folder, &mut store)
}

/// Runs that may be made once more, of all trials together: on a machine that stays busy they would take for ever.
static REPETITIONS: AtomicI32 = AtomicI32::new(6);

/// A run that found nothing on a machine that was too busy shows nothing: it is made once more, and again.
fn conclusive(run: impl Fn() -> Outcome) -> Outcome {
    let (mut outcome, mut before) = (run(), Vec::new());
    while before.len() < 2 && REPETITIONS.fetch_sub(1, Ordering::Relaxed) > 0 {
        let why = outcome.is_inconclusive().or_else(|| outcome.is_worth_another());
        let Some(why) = why.filter(|_| !outcome.found_something()) else { break };
        eprintln!("chaos: inconclusive, so once more: {why}");
        outcome.folder.is_not_needed();
        drop(outcome);
        before.push(why);
        outcome = run();
    }
    outcome.after_inconclusive_runs(&before)
}

/// Nothing is wrong, and what was planned was done; the folder may go.
fn is_clean(mut outcome: Outcome, shape: &Shape) {
    outcome.is_clean();
    let (of_server, all): (BTreeSet<_>, BTreeSet<_>) =
        (outcome.of_server.iter().collect(), shape.bears.server.iter().collect());
    assert_eq!(of_server, all, "every kind has struck the server");
    assert_eq!(outcome.never_held(), Vec::<String>::new(), "all held locks");
    outcome.folder.is_not_needed();
}

/// The whole: thousands of slots, hundreds of faults.
pub(crate) fn thousands_of_slots_on_redis_are_each_once_or_explained(_: &Place) {
    let seed = any_seed();
    let outcome = conclusive(|| on_redis("long", seed, &LONG, draw(seed, &LONG)));
    outcome.save(&std::env::var_os(JSON).map_or_else(|| figures(names::REDIS), PathBuf::from));
    assert!(outcome.faults >= 200, "{} faults", outcome.faults);
    assert!(outcome.judgement.report.slots >= 2_000, "{} slots", outcome.judgement.report.slots);
    is_clean(outcome, &LONG);
}

pub(crate) fn every_kind_of_fault_on_redis_leaves_each_slot_once_or_explained(_: &Place) {
    let _turn = Turn::take();
    let seed = seed_or(|| 1);
    let outcome = conclusive(|| on_redis("short", seed, &SHORT, draw(seed, &SHORT)));
    assert!(outcome.faults >= 20, "{} faults", outcome.faults);
    is_clean(outcome, &SHORT);
}

pub(crate) fn nodes_and_runs_that_die_on_one_file_leave_each_slot_once_or_explained(_: &Place) {
    let _turn = Turn::take();
    is_clean(conclusive(|| on_sqlite(seed_or(|| 1), &LOCAL)), &LOCAL);
}

/// The one of the other stores that is struck with every commit: its servers also change their leader. The rest is tried when it
/// is asked for, and at length.
const ALSO_IN_CI: &str = names::ETCD;

/// A trial of each other store, and whether it is made only when it is asked for. They are long, so they come first.
pub(crate) fn short_on_each_store() -> impl Iterator<Item = (String, bool, impl Fn(&Place) + Send + 'static)> {
    ALL.iter().map(|store| {
        let body = move |_: &Place| {
            let _turn = Turn::take();
            is_clean(conclusive(|| store.run(seed_or(|| IN_CI), &store.short())), &store.short());
        };
        (format!("chaos::each_slot_on_{}_is_once_or_explained", store.name), store.name != ALSO_IN_CI, body)
    })
}

/// The same at length, of which the figures are kept.
pub(crate) fn long_on_each_store() -> impl Iterator<Item = (String, impl Fn(&Place) + Send + 'static)> {
    ALL.iter().map(|store| {
        let body = move |_: &Place| {
            let seed = any_seed();
            let outcome = conclusive(|| store.run(seed, &store.long()));
            outcome.save(&figures(store.name));
            is_clean(outcome, &store.long());
        };
        (format!("chaos::at_length_each_slot_on_{}_is_once_or_explained", store.name), body)
    })
}

pub(crate) fn at_length_each_slot_on_sqlite_is_once_or_explained(_: &Place) {
    let seed = any_seed();
    let outcome = conclusive(|| on_sqlite(seed, &LONG_LOCAL));
    outcome.save(&figures(names::SQLITE));
    is_clean(outcome, &LONG_LOCAL);
}

/// The store's data is gone, again and again, and each time a node looks at its slots anew; nothing else happens. Besides,
/// the judge is put to the test: of evidence that was tampered with he has to complain.
pub(crate) fn a_wiped_store_costs_each_slot_one_repeat_at_most_and_the_judge_can_tell(_: &Place) {
    let _turn = Turn::take();
    let shape = Shape { storms: 1, nodes: 3, ..SHORT };
    let wipe_and_look = |number: u32| {
        let at = Duration::from_millis(4_300) * number;
        let wipe = Fault::Server(ServerFault::Flush);
        let wipe = Injection { at, lasts: Duration::ZERO, fault: wipe, node: 0, pick: 0, amid_work: false };
        // A node that has learnt that a slot is done asks no more; one that reads its file again does.
        let (at, node) = (at + Duration::from_millis(200), usize::try_from(number).unwrap() % shape.nodes);
        [wipe.clone(), Injection { at, fault: Fault::Node(NodeFault::Reload), node, ..wipe }]
    };
    let mut outcome = conclusive(|| on_redis("wipes", 0, &shape, (0..6).flat_map(wipe_and_look).collect()));
    outcome.is_clean();
    assert!(outcome.evidence.only_by_a_loss_of_data(&outcome.judgement.report) > 0, "nothing else explains a repeat");
    controls::each_wipe_costs_a_slot_one_repeat_at_most(&outcome);
    controls::evidence_that_was_tampered_with_is_seen_through(&outcome.evidence);
    lock_controls::evidence_that_was_tampered_with_is_seen_through(&outcome.evidence);
    controls::a_run_that_shows_nothing_is_told(&mut outcome);
    controls::who_never_held_its_locks_is_excused_by_a_slow_store_alone(&mut outcome);
    outcome.folder.is_not_needed();
}

pub(crate) fn a_seed_is_a_plan(_: &Place) {
    for seed in 0..200 {
        let plan = draw(seed, &SHORT);
        assert_eq!(plan, draw(seed, &SHORT));
        assert_ne!(plan, draw(seed + 1, &SHORT));
        assert!(plan.len() >= 20, "{seed}: {} faults", plan.len());
        let drawn: BTreeSet<Fault> = plan.iter().map(|injection| injection.fault).collect();
        let all: BTreeSet<Fault> = Fault::all(&redis::BEARS).into_iter().collect();
        assert_eq!(drawn, all, "{seed}");
        assert!(draw(seed, &LONG).len() >= 215, "{seed}: {}", draw(seed, &LONG).len());
    }
}

/// What `make report` asks for is what is tried at length, no more and no less.
pub(crate) fn each_store_that_is_named_has_a_trial_at_length(_: &Place) {
    let tried: BTreeSet<&str> = ALL.iter().map(|store| store.name).chain([names::REDIS, names::SQLITE]).collect();
    let all: BTreeSet<&str> = names::EVERY.into_iter().collect();
    assert!(tried.is_subset(&all), "{tried:?} of {all:?}");
    let whole = cfg!(all(
        feature = "redis-sentinel",
        feature = "redis-cluster",
        feature = "redis-redlock",
        feature = "postgres",
        feature = "mysql",
        feature = "etcd",
        feature = "zookeeper"
    ));
    assert!(tried == all || !whole, "{tried:?} of {all:?}");
}

/// What CI does to the other stores leaves out nothing that can be done to their servers.
pub(crate) fn every_plan_strikes_every_server_in_every_way(_: &Place) {
    for store in ALL {
        for (seed, shape) in (0..200).flat_map(|seed| [(seed, store.short()), (seed, store.long())]) {
            let drawn: BTreeSet<Fault> = draw(seed, &shape).iter().map(|injection| injection.fault).collect();
            let all: BTreeSet<Fault> = Fault::all(&store.bears).into_iter().collect();
            let left: Vec<&Fault> = all.difference(&drawn).filter(|fault| matches!(fault, Fault::Server(_))).collect();
            assert!(left.is_empty(), "{}: {seed}: {left:?}", store.name);
            let amid_work = draw(seed, &shape).iter().filter(|injection| injection.amid_work).count();
            let least = if store.bears.forgets { shape.storms } else { 0 };
            assert_eq!(amid_work, usize::try_from(least).unwrap(), "{}: {seed}", store.name);
        }
        let drawn: BTreeSet<Fault> = draw(IN_CI, &store.short()).iter().map(|injection| injection.fault).collect();
        assert_eq!(drawn, Fault::all(&store.bears).into_iter().collect(), "{}: what CI does", store.name);
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
