//! Who stands still, and who goes on all the same: readers of the output, the guard, the keeper.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::guarding::{STORE, report, running, running_at, words_at, zone};
use crate::process::{lives, pid_in, signal};
use crate::program::Place;
use crate::redis_server::RedisServer;
use crate::wait;

fn is_done(place: &Place) -> bool {
    place.run(&["show", "push", "--store", STORE]).stdout.contains("success")
}

/// More than the pipe to the reader holds, and less than that and the command's own together: the command ends, and what it
/// wrote waits.
const MUCH: usize = 120_000;

#[test]
fn a_success_is_recorded_although_nobody_reads_the_output_yet() {
    let place = Place::new();
    let (zone, script) = (zone(), format!("yes 1234567 | head -c {MUCH}"));
    let words = words_at(STORE, &zone, &["--timeout", "20s", "--report", "report.json"], &["/bin/sh", "-c", &script]);
    let mut child = place.command(&words).env("PATH", "/usr/bin:/bin").stdout(Stdio::piped()).spawn().unwrap();
    wait::until_true("the success in the store", || is_done(&place));
    assert!(child.try_wait().unwrap().is_none(), "there is output left to pass on");
    let mut seen = String::new();
    child.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    assert_eq!((seen.len(), child.wait().unwrap().code()), (MUCH, Some(0)));
    assert_eq!(report(&place)["result"], "success");
}

#[test]
fn a_signal_ends_the_wait_for_a_reader_and_the_result_stays() {
    let place = Place::new();
    let (zone, script) = (zone(), format!("yes 1234567 | head -c {MUCH}; exit 3"));
    let words = words_at(STORE, &zone, &[], &["/bin/sh", "-c", &script]);
    let mut child = place.command(&words).env("PATH", "/usr/bin:/bin").stdout(Stdio::piped()).spawn().unwrap();
    wait::until_true("the end in the store", || {
        place.run(&["show", "push", "--store", STORE]).stdout.contains("exit 3")
    });
    signal(child.id(), Signal::TERM);
    wait::until_true("the end of the guard", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_command_that_ended_in_time_has_succeeded_although_its_guard_stood_still() {
    // Where the machine is too slow for one of these, the next is tried.
    let ended = [3, 12, 48].into_iter().find_map(|seconds| stood_still(Duration::from_secs(seconds)));
    match ended {
        Some(ended) => assert_eq!(ended, (Some(0), "success".into())),
        None => println!("inconclusive: the machine is too slow to end a command within 48 s"),
    }
}

/// The exit code and the result of a guard that stood still when the timeout came, while its command ended before. None where
/// that did not come in time.
fn stood_still(timeout: Duration) -> Option<(Option<i32>, Value)> {
    let place = Place::new();
    let begun = Instant::now();
    let flags = ["--timeout", &format!("{}s", timeout.as_secs()), "--report", "report.json"];
    let (child, _out) = running(&place, &flags, "echo $$ >command; until test -e go; do sleep 0.05; done");
    let up = Instant::now();
    wait::until_true("the command", || pid_in(place.path(), "command").is_some());
    signal(child.id(), Signal::STOP);
    std::fs::write(place.path().join("go"), "").unwrap();
    let command = pid_in(place.path(), "command").unwrap();
    wait::until_true("the end of the command", || !lives(command));
    let in_time = begun.elapsed() < timeout;
    if in_time {
        wait::let_pass(timeout.saturating_sub(up.elapsed()) + Duration::from_millis(200));
    }
    signal(child.id(), Signal::CONT);
    let code = child.wait_with_output().unwrap().status.code();
    in_time.then(|| (code, report(&place)["result"].clone()))
}

#[test]
fn with_kill_the_command_of_a_stopped_guard_is_dead_before_another_starts() {
    // A guard that is stopped in the middle of a step on SQLite would lock everybody out.
    let (server, place) = (RedisServer::start(), Place::new());
    let flags = ["--on-lost", "kill", "--lease-ttl", "6s", "--report", "report.json"];
    let (child, _out) = running_at(&server.url(), &place, &flags, "echo $$ >command; while :; do sleep 0.05; done");
    wait::until_true("the command", || pid_in(place.path(), "command").is_some());
    signal(child.id(), Signal::STOP);
    // Whoever runs next looks whether the first is there.
    let (zone, command) = (zone(), pid_in(place.path(), "command").unwrap().to_string());
    let script = format!("test -e /proc/{command} && exit 9; exit 0");
    let url = server.url();
    let words = words_at(&url, &zone, &["--wait", "45s"], &["/bin/sh", "-c", &script]);
    assert_eq!(place.run(&words).code, 0, "the first was alive when the second began");
    signal(child.id(), Signal::CONT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(76));
    assert_eq!(report(&place)["result"], "lost_lease");
}

#[test]
fn ctrl_z_does_not_suspend_a_guard_whose_lease_runs_on() {
    let place = Place::new();
    let (mut child, _out) = running(&place, &[], "until test -e go; do sleep 0.05; done");
    signal(child.id(), Signal::TSTP);
    let (tell, heard) = std::sync::mpsc::channel();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = stderr.read_line(&mut line);
        tell.send(line)
    });
    let told = heard.recv_timeout(wait::LIMIT).expect("it says why");
    assert!(told.starts_with("cronward: not suspended: "), "{told}");
    std::fs::write(place.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_daemon_that_a_command_leaves_lives_on_where_that_is_asked_for() {
    let place = Place::new();
    let script =
        "setsid sh -c 'echo $$ >daemon; exec sleep 60' >/dev/null 2>&1 & until test -s daemon; do sleep 0.05; done";
    let zone = zone();
    for (kill_mode, is_left) in [("process", true), ("group", false)] {
        let words = words_at(STORE, &zone, &["--kill-mode", kill_mode], &["/bin/sh", "-c", script]);
        let words: Vec<&str> = words.into_iter().map(|word| if word == "push" { kill_mode } else { word }).collect();
        let ended = place.command(&words).env("PATH", "/usr/bin:/bin").output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let daemon = pid_in(place.path(), "daemon").unwrap();
        assert_eq!(lives(daemon), is_left, "{kill_mode}");
        std::fs::remove_file(place.path().join("daemon")).unwrap();
        if is_left {
            signal(daemon, Signal::KILL);
        }
    }
}
