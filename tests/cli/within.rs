//! `cronward exec` within a run of the same slot: when it runs under the lease that is held, and which of its flags count.

use serde_json::Value;

use crate::guarding::{STORE, exec_at, report, running_at, words_at, zone};
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cronward");

/// A guarded command that guards the same slot again.
struct Pair<'a> {
    outer: (&'a str, &'a [&'a str]),
    inner: (&'a str, &'a [&'a str]),
}

impl Pair<'_> {
    fn run(&self, place: &Place, script: &str) -> Ended {
        let zone = zone();
        let nested = words_at(self.inner.0, &zone, self.inner.1, &["/bin/sh", "-c", script]);
        place.run(&words_at(self.outer.0, &zone, self.outer.1, &[&[PROGRAM][..], &nested].concat()))
    }
}

fn on_one_store<'a>(outer: &'a [&'a str], inner: &'a [&'a str]) -> Pair<'a> {
    Pair { outer: (STORE, outer), inner: (STORE, inner) }
}

#[test]
fn a_slot_within_itself_runs_under_the_lease_that_is_held() {
    let place = Place::new();
    let script = "echo $CRONWARD_HOLDS $CRONWARD_ATTEMPT $CRONWARD_LEASE_TOKEN; exit 5";
    let outer = on_one_store(&[], &["--report", "report.json", "--skip-exit-code", "9"]).run(&place, script);
    assert_eq!(outer.code, 5, "{outer:?}");
    assert!(outer.stdout.starts_with("2 1 ") && outer.stdout.trim().len() == 4 + 32, "{outer:?}");
    assert_eq!(report(&place)["result"], "nested");
    let listed = place.run(&["attempts", "--store", STORE, "--json", "--all"]);
    let slots: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(slots[0]["attempts"], 1, "the outermost alone claims and settles: {slots}");
}

#[test]
fn a_store_that_does_not_answer_starts_nothing_within_a_run_either() {
    let place = Place::new();
    let away = Pair { outer: (STORE, &[]), inner: ("redis://127.0.0.1:1", &["--report", "report.json"]) };
    let told = away.run(&place, "echo never");
    assert_eq!((told.code, &*told.stdout), (75, ""), "{told:?}");
    assert_eq!(told.stderr.lines().count(), 1, "{}", told.stderr);
    assert!(told.stderr.ends_with("the command was not started\n"), "{}", told.stderr);
    assert_eq!(report(&place)["result"], "store_unavailable");
}

#[test]
fn a_timeout_within_a_run_is_its_own() {
    let place = Place::new();
    let told = on_one_store(&[], &["--timeout", "300ms"]).run(&place, "exec sleep 60");
    assert_eq!(told.code, 124, "{told:?}");
    assert!(told.stderr.contains("was stopped after its timeout"), "{}", told.stderr);
}

#[test]
fn a_process_that_outlived_its_run_is_guarded_like_any_other() {
    let place = Place::new();
    let command = ["/bin/sh", "-c", "env | grep ^CRONWARD_"];
    let ran = exec_at(STORE, &place, &[], &command);
    assert_eq!(ran.code, 0, "{ran:?}");
    let zone = zone();
    let mut late = place.command(&words_at(STORE, &zone, &["--skip-exit-code", "9"], &command));
    late.envs(ran.stdout.lines().filter_map(|line| line.split_once('=')));
    let late: Ended = late.output().unwrap().into();
    assert_eq!((late.code, &*late.stdout, &*late.stderr), (9, "", ""), "the slot is done");
}

#[test]
fn a_key_that_the_outer_run_does_not_hold_is_refused_and_one_that_it_holds_is_not() {
    let (place, server) = (Place::new(), RedisServer::start());
    let url = server.url();
    let key = ["--key", "push-lock"];
    let refused = Pair { outer: (&url, &[]), inner: (&url, &key) }.run(&place, "echo never");
    assert_eq!((refused.code, &*refused.stdout), (64, ""), "{refused:?}");
    assert!(refused.stderr.contains("give --key to the outermost exec"), "{}", refused.stderr);
    let held = Pair { outer: (&url, &key), inner: (&url, &key) }.run(&place, "echo ran");
    assert_eq!((held.code, &*held.stdout, &*held.stderr), (0, "ran\n", ""));
}

#[test]
fn a_lease_of_another_slot_is_nobodys_door() {
    let place = Place::new();
    let (mut holder, _out) = running_at(STORE, &place, &[], "exec sleep 60");
    let zone = zone();
    let mut intruder = place.command(&words_at(STORE, &zone, &["--no-wait"], &["/bin/echo", "never"]));
    intruder.envs([("CRONWARD_JOB", "push"), ("CRONWARD_SLOT", "2026-11-21T00Z"), ("CRONWARD_ATTEMPT", "1")]);
    intruder.env("CRONWARD_LEASE_TOKEN", "0".repeat(32));
    let ended: Ended = intruder.output().unwrap().into();
    assert_eq!((ended.code, &*ended.stdout), (0, ""));
    holder.kill().unwrap();
    holder.wait().unwrap();
}
