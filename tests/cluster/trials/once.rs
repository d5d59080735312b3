//! Nothing goes wrong, or nothing that matters: every slot once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::library_node;
use crate::place::Place;
use crate::recorder::Run;
use crate::redis_server::RedisServer;
use crate::{jobs, stall, wait};

/// A run starts this long after its tick at the latest, on a machine that is not overloaded.
const LATEST_START: Duration = Duration::from_secs(1);

const SLOTS: usize = 10;

pub(super) fn three_nodes_do_ten_slots_once_each_when_each_tick_is_a_slot(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("beat", &jobs::every(2), 0.1, 0)));
    let begun = Instant::now();
    let _nodes = place.nodes(["a", "b", "c"], &server.url());
    wait_for_slots(place);
    each_slot_was_done_once(&place.runs(), Duration::from_secs(2), begun);
    let told = place.json(&["attempts", "--all", "--job", "beat"], &server.url());
    let done = told.as_array().unwrap().iter().filter(|slot| slot["state"] == "done").count();
    assert!(done >= SLOTS, "{told:#}");
}

pub(super) fn three_nodes_do_ten_slots_once_each_when_slots_have_a_fixed_length(place: &Place) {
    let server = RedisServer::start();
    let begun = Instant::now();
    let nodes = ["a", "b", "c"].map(|name| library_node::start(place, name, &server.url()));
    nodes.iter().for_each(crate::daemon::Daemon::is_in_touch);
    wait_for_slots(place);
    let runs = place.runs_of(library_node::JOB);
    each_slot_was_done_once(&runs, library_node::SLOT, begun);
}

pub(super) fn scripts_that_the_server_forgets_all_the_time_harm_no_slot(place: &Place) {
    let server = RedisServer::start();
    // Nothing but a lost script may fail a call: the flood keeps the machine busy.
    // So long a lease is allowed only where it blocks no other slot.
    let patient = format!("{}\nlease_ttl = \"30s\"\nconcurrency = \"allow\"", jobs::every(2));
    place.jobs(&jobs::file(&format!("[store]\nop_timeout = \"10s\"\n{}", jobs::recorded("beat", &patient, 0.1, 0))));
    let begun = Instant::now();
    let nodes = place.nodes(["a", "b"], &server.url());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                server.command(&["SCRIPT", "FLUSH"]);
                wait::let_pass(Duration::from_millis(2));
            }
        });
        let waited = std::panic::catch_unwind(|| wait_for_slots(place));
        over.store(true, Ordering::Relaxed);
        waited.unwrap();
    });
    each_slot_was_done_once(&place.runs(), Duration::from_secs(2), begun);
    for node in &nodes {
        assert!(node.said("store failed").is_empty() && node.said("store cannot").is_empty(), "{}", node.name);
    }
}

/// Waits until ten whole slots are over; the first one may have begun before the nodes.
fn wait_for_slots(place: &Place) {
    place.end_of_run(SLOTS + 1);
}

/// One run per slot, no slot left out, each soon after its tick.
fn each_slot_was_done_once(runs: &[Run], length: Duration, begun: Instant) {
    let length = i64::try_from(length.as_millis()).unwrap();
    let latest = LATEST_START + stall::allowance(begun);
    for pair in runs.windows(2) {
        let [before, run] = pair else { unreachable!() };
        assert_eq!(run.slot_start_ms - before.slot_start_ms, length, "one slot after the other: {pair:?}");
        let late = run.start_ms - run.slot_start_ms;
        assert!(late >= 0, "started before its slot: {run:?}");
        assert!(late < i64::try_from(latest.as_millis()).unwrap(), "later than {latest:?} after its tick: {run:?}");
    }
    assert!(runs.iter().all(|run| run.attempt == 1 && !run.overlap), "{runs:?}");
}
