//! `cronward trigger J@S --past`: the one way in which a slot that is over runs, on the embedded store and on Redis.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::guarding::zone;
use crate::program::Place;
use crate::redis_server::RedisServer;

/// One slot a day.
const JOBS: &str = r#"
[store]
url = "URL"
op_timeout = "10s"

[jobs.push]
schedule = "0 0 * * *"
slot = "day"
timezone = "ZONE"
max_attempts = 2
retry_delay = "1ms"
lease_ttl = "5s"
command = ["/bin/sh", "-c", """COMMAND"""]
"#;

/// Fails until there is a file `mended`, and hangs for as long as there is one `slow`.
const COMMAND: &str = "
echo $CRONWARD_TRIGGER $CRONWARD_ATTEMPT $CRONWARD_SLOT
while test -e slow; do sleep 0.05; done
test -e mended";

fn on_each_store(check: fn(&Place)) {
    on_each_store_with(COMMAND, check);
}

/// A place with the job `push`, two attempts a day of this shell script; with each kind of store.
pub(crate) fn on_each_store_with(script: &str, check: fn(&Place)) {
    let jobs = JOBS.replace("ZONE", &zone()).replace("COMMAND", script);
    check(&Place::with_jobs(&jobs.replace("URL", "sqlite:store.db")));
    let server = RedisServer::start();
    check(&Place::with_jobs(&jobs.replace("URL", &server.url())));
}

fn shown(place: &Place, slot: &str) -> Value {
    let shown = place.run(&["show", slot, "--json"]);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
}

#[test]
fn a_slot_that_is_over_runs_only_when_the_past_is_asked_for() {
    on_each_store(|place| {
        let refused = place.run(&["trigger", "push@-1", "--yes"]);
        assert_eq!((refused.code, &*refused.stdout), (69, ""));
        assert!(refused.stderr.contains("the slot has ended: add --past"), "{}", refused.stderr);

        let failed = place.run(&["trigger", "push@-1", "--past", "--yes"]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stdout.starts_with("manual 1 20"), "{failed:?}");
        std::fs::write(place.path().join("mended"), "").unwrap();
        let done = place.run(&["trigger", "push@-1", "--past", "--yes"]);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stderr.starts_with("cronward: cannot be undone; ") && done.stderr.contains("--past"), "{done:?}");
        assert!(done.stdout.starts_with("manual 2 20"), "{done:?}");

        let again = place.run(&["trigger", "push@-1", "--past", "--yes"]);
        assert_eq!((again.code, &*again.stdout), (69, ""));
        assert!(
            again.stderr.contains("has completed the slot: to run it again, first `cronward reset push@"),
            "{}",
            again.stderr
        );
        let slot = shown(place, "push@-1");
        assert_eq!((&slot["state"], &slot["attempts"]), (&"done".into(), &2.into()), "{slot}");
        assert_eq!(shown(place, "push")["attempts"], 0, "today's slot is as it was");
    });
}

#[test]
fn attempts_of_the_past_are_used_up_until_they_are_forgiven() {
    on_each_store(|place| {
        for _ in 0..2 {
            assert_eq!(place.run(&["trigger", "push@-1", "--past", "--yes"]).code, 1);
        }
        let spent = place.run(&["trigger", "push@-1", "--past", "--yes"]);
        assert_eq!((spent.code, &*spent.stdout), (69, ""));
        assert!(
            spent.stderr.contains("the attempts are exhausted: to allow more, `cronward reset push@"),
            "{}",
            spent.stderr
        );
        assert_eq!(place.run(&["reset", "push@-1", "--yes"]).code, 0);
        assert!(place.run(&["trigger", "push@-1", "--past", "--yes"]).stdout.starts_with("manual 3 "));
    });
}

#[test]
fn a_past_slot_that_fails_again_after_a_reset_has_its_verdict_again() {
    on_each_store(|place| {
        assert_eq!(place.run(&["trigger", "push@-1", "--past", "--yes"]).code, 1);
        assert_eq!(shown(place, "push@-1")["verdict"], Value::Null, "who closes it tells of it");
        for _ in 0..2 {
            assert_eq!(place.run(&["reset", "push@-1", "--yes"]).code, 0);
            assert_eq!(shown(place, "push@-1")["verdict"], Value::Null);
            assert_eq!(place.run(&["trigger", "push@-1", "--past", "--yes"]).code, 1);
            let slot = shown(place, "push@-1");
            assert_eq!((&slot["state"], &slot["verdict"]["verdict"]), (&"failed".into(), &"failed".into()), "{slot}");
        }
        std::fs::write(place.path().join("mended"), "").unwrap();
        assert_eq!(place.run(&["trigger", "push@-1", "--past", "--yes"]).code, 0);
        assert_eq!(shown(place, "push@-1")["state"], "done", "success replaces it");
        // What is not over has no verdict yet.
        std::fs::remove_file(place.path().join("mended")).unwrap();
        assert_eq!(place.run(&["trigger", "push", "--past", "--yes"]).code, 1);
        assert_eq!(shown(place, "push")["verdict"], Value::Null);
    });
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a lease is kept by a real process, in its own time")]
fn a_run_of_the_past_keeps_its_lease_and_neither_it_nor_today_starts_beside_the_other() {
    on_each_store(|place| {
        for file in ["mended", "slow"] {
            std::fs::write(place.path().join(file), "").unwrap();
        }
        let mut command = place.command(&["trigger", "push@-1", "--past", "--yes"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("manual 1 "), "{line}");
        // Two leases long: it is renewed, though its slot is over.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(11) {
            let held = place.run(&["trigger", "push@-1", "--past", "--yes"]);
            assert_eq!((held.code, &*held.stdout), (75, ""), "{held:?}");
            assert!(held.stderr.contains("holds the lease"), "{}", held.stderr);
        }
        let today = place.run(&["trigger", "push", "--yes"]);
        assert_eq!((today.code, &*today.stdout), (75, ""), "{today:?}");
        assert!(today.stderr.contains("another slot of the job runs"), "{}", today.stderr);
        std::fs::remove_file(place.path().join("slow")).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr).lines().count(), 1, "nothing but the undo: {ended:?}");
        assert_eq!(shown(place, "push@-1")["attempts"], 1);
    });
}

#[test]
fn a_run_of_today_keeps_the_past_from_starting() {
    on_each_store(|place| {
        for file in ["mended", "slow"] {
            std::fs::write(place.path().join(file), "").unwrap();
        }
        let mut command = place.command(&["trigger", "push", "--yes"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let past = place.run(&["trigger", "push@-1", "--past", "--yes"]);
        assert_eq!((past.code, &*past.stdout), (75, ""), "{past:?}");
        assert!(past.stderr.contains("another slot of the job runs"), "{}", past.stderr);
        std::fs::remove_file(place.path().join("slow")).unwrap();
        assert!(child.wait().unwrap().success());
    });
}
