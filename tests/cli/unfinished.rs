//! The end of a slot that another machine had and did not finish: the machine that waited says so, and its exit code is no success.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::guarding::report;
use crate::program::{Ended, Place};

/// One attempt in each slot: nobody takes over.
const JOBS: &str = r#"
[store]
url = "sqlite:store.db"
op_timeout = "10s"

[jobs.push]
schedule = "*/30 * * * * *"
slot = "tick"
max_attempts = 1
lease_ttl = "8s"
command = "true"
"#;

/// Node a claims the current slot and dies; node b waits for it. None where the slot or the lease ended before b was there.
fn crash_and_wait(place: &Place) -> Option<(String, Ended)> {
    let script = ["--", "/bin/sh", "-c", "echo $CRONWARD_SLOT; exec sleep 600"];
    let mut holder = place.command(&[&["exec", "--job", "push", "--node", "a"], &script[..]].concat());
    let mut holder = holder.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut slot = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut slot).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    let slot = slot.trim().to_owned();
    let line =
        ["exec", "--job", "push", "--node", "b", "--slot", &slot, "--skip-exit-code", "7", "--report", "report.json"];
    let waited = place.run(&[&line[..], &["--", "/bin/echo", "never"]].concat());
    let has_waited = report(place)["result"] != "exhausted";
    (has_waited && !waited.stderr.contains("was not run: the slot ended")).then_some((slot, waited))
}

#[test]
fn a_machine_that_waited_for_one_that_crashed_does_not_end_with_success() {
    let place = Place::with_jobs(JOBS);
    let (slot, waited) = std::iter::repeat_with(|| crash_and_wait(&place)).flatten().next().unwrap();
    assert_eq!((waited.code, &*waited.stdout, waited.stderr.lines().count()), (69, "", 1), "{waited:?}");
    assert!(waited.stderr.starts_with(&format!("cronward: push@{slot} ")), "{waited:?}");
    assert!(waited.stderr.contains(": node a held it since 20"), "{waited:?}");
    assert!(
        waited.stderr.contains(" with attempt 1, which reported no result; 1 of 1 attempts used (failed)"),
        "{waited:?}"
    );
    let report = report(&place);
    assert_eq!((&report["result"], &report["exit_code"]), (&"failed".into(), &69.into()), "{report}");
}
