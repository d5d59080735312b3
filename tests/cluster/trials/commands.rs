//! Commands that do not behave.

use std::time::Duration;

use crate::daemon::dies_within;
use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait};

pub(super) fn a_command_that_ignores_term_is_killed_with_its_group_and_counts_as_timed_out(place: &Place) {
    let server = RedisServer::start();
    let when = jobs::one_slot(wait::SOON);
    // It leaves the numbers of both its processes, the second in a session of its own.
    let script = "trap '' TERM; setsid sh -c 'trap \\\"\\\" TERM; echo $$ >>pids; sleep 60' & \
                  echo $$ >>pids; while :; do sleep 60; done";
    let limits = "timeout = \"1s\"\nkill_after = \"500ms\"\nmax_attempts = 1";
    place.jobs(&jobs::file(&format!("[jobs.deaf]\n{when}\ncommand = \"{script}\"\n{limits}\n")));
    let [node] = place.nodes(["a"], &server.url());
    let pids: Vec<u32> = wait::until("both processes", || {
        let text = std::fs::read_to_string(place.file("pids")).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    });
    node.says("run timed out");
    assert_eq!(node.says("run ended")["outcome"], "timeout");
    for pid in pids {
        dies_within(Duration::from_secs(5), pid);
    }
    node.says("attempts exhausted");
    let told = place.json(&["show", "deaf"], &server.url());
    assert_eq!((&told["state"], &told["runs"][0]["outcome"]), (&"failed".into(), &"timeout".into()), "{told:#}");
    assert_eq!(told["runs"][0]["signal"], 9, "TERM did not end it: {told:#}");
}

pub(super) fn a_command_that_floods_its_output_is_done_and_its_last_bytes_are_kept(place: &Place) {
    const FLOOD: u64 = 20_000_000;
    let server = RedisServer::start();
    let when = jobs::one_slot(wait::SOON);
    let script = format!("head -c {FLOOD} /dev/zero | tr '\\\\0' x; echo; echo the last line");
    let job = format!("[jobs.loud]\n{when}\ncommand = \"{script}\"\noutput_limit = \"1KiB\"\n");
    place.jobs(&jobs::file(&job));
    let _nodes = place.nodes(["a"], &server.url());
    wait::until_true("the slot is done", || stored::is_done(&server, "loud"));
    let told = place.json(&["show", "loud"], &server.url());
    let run = &told["runs"][0];
    let tail = run["output_tail"].as_str().unwrap();
    assert!(tail.len() <= 1024 && tail.ends_with("x\nthe last line\n"), "{run:#}");
    let dropped = run["output_dropped_bytes"].as_u64().unwrap();
    assert_eq!(dropped + u64::try_from(tail.len()).unwrap(), FLOOD + "\nthe last line\n".len() as u64);
}
