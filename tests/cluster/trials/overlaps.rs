//! A run that is longer than its slot, and the next slot of the job.

use crate::place::Place;
use crate::recorder::Run;
use crate::redis_server::RedisServer;
use crate::{jobs, wait};

const SLOT_MS: i64 = 4_000;

/// Two nodes and a job whose runs last longer than its slots; answers once so many runs have started.
fn runs(place: &Place, concurrency: &str, many: usize) -> Vec<Run> {
    let server = RedisServer::start();
    let job = jobs::recorded("slow", &jobs::every(4), 6.0, 0);
    place.jobs(&jobs::file(&format!("{job}concurrency = \"{concurrency}\"\n")));
    // Of a slot that is claimed just before its end the command may begin after that of the next slot, on another node.
    wait::early_in_a_slot(SLOT_MS);
    let nodes = place.nodes(["a", "b"], &server.url());
    place.run_number(many);
    drop(nodes);
    place.runs()
}

pub(super) fn forbid_lets_a_slot_wait_for_the_run_of_an_older_one(place: &Place) {
    let runs = runs(place, "forbid", 4);
    for pair in runs.windows(2) {
        assert!(pair[0].end_ms.is_some_and(|end| end <= pair[1].start_ms), "one after the other: {pair:?}");
        // Granted within its slot, as each store's suite shows; when its command then begins is the machine's matter.
        assert!(pair[1].slot_start_ms > pair[0].slot_start_ms, "in a later slot: {pair:?}");
    }
    assert!(runs.iter().all(|run| !run.overlap), "{runs:?}");
}

pub(super) fn allow_lets_runs_of_two_slots_go_side_by_side(place: &Place) {
    let runs = runs(place, "allow", 4);
    for pair in runs[1..].windows(2) {
        assert!(pair[1].overlap && pair[1].slot_start_ms - pair[0].slot_start_ms == SLOT_MS, "{pair:?}");
    }
}

pub(super) fn replace_ends_the_older_run(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::recorded("slow", &jobs::every(4), 6.0, 0);
    place.jobs(&jobs::file(&format!("{job}concurrency = \"replace\"\n")));
    // A command that is replaced before it has recorded its start is in no record.
    wait::early_in_a_slot(SLOT_MS);
    let nodes = place.nodes(["a", "b"], &server.url());
    place.run_number(4);
    let runs = place.runs();
    for pair in runs[1..].windows(2) {
        assert_eq!((pair[0].end_ms, pair[1].overlap), (None, false), "the older is killed first: {pair:?}");
        assert_eq!(pair[1].slot_start_ms - pair[0].slot_start_ms, SLOT_MS, "{pair:?}");
    }
    let killed = |run: &&Run| {
        let mut ends = nodes.iter().flat_map(|node| node.said("run ended"));
        ends.any(|end| end["slot"] == run.slot && end["outcome"] == "killed")
    };
    wait::until_true("the older runs are told as killed", || runs[..3].iter().filter(killed).count() == 3);
}
