//! The embedded store: a SQLite file that the daemons of one host share.

use crate::daemon::{Daemon, dies_within};
use crate::place::Place;
use crate::{jobs, stall, wait};
use std::time::{Duration, Instant};

pub(super) fn store(place: &Place) -> String {
    format!("sqlite://{}", place.file("cronward.db").display())
}

pub(super) fn two_daemons_on_one_file_do_every_slot_once(place: &Place) {
    place.jobs(&jobs::file(&jobs::recorded("beat", &jobs::every(2), 0.1, 0)));
    let _nodes = place.nodes(["a", "b"], &store(place));
    place.end_of_run(7);
    let runs = place.runs();
    assert!(runs.windows(2).all(|pair| pair[1].slot_start_ms - pair[0].slot_start_ms == 2_000), "{runs:?}");
    assert!(runs.iter().all(|run| run.attempt == 1 && !run.overlap), "{runs:?}");
}

pub(super) fn on_one_file_the_run_of_a_killed_daemon_is_taken_over(place: &Place) {
    place.jobs(&jobs::file(&jobs::long_then_short("work", &jobs::one_slot(wait::SOON), 60.0, 0.2)));
    let mut nodes: Vec<Daemon> = place.nodes(["a", "b"], &store(place)).into();
    let first = place.run_number(1);
    let begun = Instant::now();
    nodes.retain(|node| node.name != first.node);
    dies_within(Duration::from_secs(2) + stall::allowance(begun), first.pid);
    let second = place.end_of_run(2);
    assert_eq!((second.attempt, second.overlap), (2, false));
    // The lease, a second, and half a second between two looks at a file that wakes nobody.
    let limit = jobs::LEASE_TTL + Duration::from_secs(2);
    assert!(begun.elapsed() <= limit + stall::allowance(begun), "taken over after {:?}", begun.elapsed());
    wait::until_true("the slot is done", || {
        place.json(&["attempts", "--all", "--job", "work"], &store(place))[0]["state"] == "done"
    });
}
