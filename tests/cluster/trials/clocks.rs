//! Nodes whose clock is wrong. The store's clock judges.

use crate::place::Place;
use crate::recorder::{self, Run};
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait};

const SLOT_MS: i64 = 4_000;

pub(super) fn a_node_an_hour_ahead_runs_nothing_early_and_does_its_share_in_the_right_slots(place: &Place) {
    wrong_clock(place, "+1h");
}

pub(super) fn a_node_an_hour_behind_runs_nothing_late_and_does_its_share_in_the_right_slots(place: &Place) {
    wrong_clock(place, "-1h");
}

fn wrong_clock(place: &Place, offset: &str) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&job()));
    // A slot that is claimed just before its end has its command a little after it: nodes come early in a slot.
    wait::early_in_a_slot(SLOT_MS);
    let wrong = place.node("wrong", &server.url()).clock(offset).start();
    wrong.is_in_touch();
    wrong.says("this node's clock and the store's differ");
    wait::early_in_a_slot(SLOT_MS);
    let right = place.nodes(["a", "b"], &server.url());
    let together = place.runs().len() + 4;
    let last = place.end_of_run(together);
    wait::until_true("its mark", || stored::is_slot_done(&server, "work", &last.slot));
    drop(right);
    // Alone it goes on, slot by slot.
    let alone = together + 3;
    place.end_of_run(alone);
    let runs = place.runs();
    each_in_its_slot(&runs);
    assert!(runs[together + 1..].iter().all(|run| run.node == "wrong"), "{runs:?}");
    // The slot in which the first node started may have ended before its clock was put right.
    let cut_short = runs[0].slot_start_ms - SLOT_MS;
    let missed = place.json(&["attempts", "--state", "missed,failed", "--since", "2h"], &server.url());
    let told = wrong.said("slot closed").into_iter().filter(|line| line["verdict"] != "done");
    let missed = missed.as_array().unwrap().iter().cloned().chain(told);
    let missed: Vec<_> = missed.filter(|slot| recorder::start_ms(&slot["slot"]) != cut_short).collect();
    assert!(missed.is_empty(), "a slot of an hour ago, or of the hour to come: {missed:#?}");
}

/// The command sees the right time: the recorder judges by it.
fn job() -> String {
    format!("{}env = {{ LD_PRELOAD = \"\" }}\n", jobs::recorded("work", &jobs::every(4), 0.1, 0))
}

/// Each run starts and ends within its slot, and no slot has two.
fn each_in_its_slot(runs: &[Run]) {
    for run in runs {
        assert!(run.start_ms >= run.slot_start_ms && run.start_ms < run.slot_start_ms + SLOT_MS, "{run:?}");
        assert!(run.attempt == 1 && !run.overlap, "{run:?}");
    }
    assert!(runs.windows(2).all(|pair| pair[0].slot_start_ms + SLOT_MS == pair[1].slot_start_ms), "{runs:?}");
}
