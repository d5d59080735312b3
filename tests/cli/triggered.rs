//! `cronward trigger` as an operator's verb: it asks, is audited, tells how far it can be taken back, and reports; on the
//! embedded store and on Redis.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::guarding::zone;
use crate::past::on_each_store_with;
use crate::process::Killed;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::wait;

fn on_each_store(check: fn(&Place)) {
    on_each_store_with("echo out $CRONWARD_ATTEMPT; echo err >&2; exit 3", check);
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn audit(place: &Place) -> Vec<Value> {
    json(&place.run(&["show", "push", "--json"]).stdout)["audit"].as_array().unwrap().clone()
}

fn trigger(place: &Place, flags: &[&str]) -> Ended {
    place.run(&[&["trigger", "push"], flags].concat())
}

#[test]
fn without_yes_and_somebody_to_ask_nothing_is_run() {
    on_each_store(|place| {
        let refused = trigger(place, &[]);
        assert_eq!((refused.code, &*refused.stdout), (64, ""), "{refused:?}");
        assert!(refused.stderr.ends_with("needs confirmation: add --yes\n"), "{}", refused.stderr);
        assert_eq!(json(&place.run(&["show", "push", "--json"]).stdout)["attempts"], 0);
    });
}

#[test]
fn who_asked_is_recorded_with_each_attempt_and_never_for_a_refusal() {
    on_each_store(|place| {
        let ran = trigger(place, &["--yes", "--reason", "the customer \"asks\""]);
        assert_eq!((ran.code, &*ran.stdout), (3, "out 1\n"), "{ran:?}");
        assert!(ran.stderr.starts_with("err\ncronward: cannot be undone; to run the slot again: cronward reset push@"));
        let known = audit(place);
        assert_eq!((known.len(), &known[0]["verb"]), (1, &"trigger".into()), "{known:?}");
        assert_eq!(known[0]["why"], "the customer \"asks\"");
        for field in ["who", "host"] {
            assert!(known[0][field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {known:?}");
        }
        let shown = place.run(&["show", "push"]).stdout;
        assert!(shown.contains("\noperators\n  ") && shown.contains("trigger by "), "{shown}");
        assert_eq!(trigger(place, &["--yes"]).code, 3);
        let spent = trigger(place, &["--yes", "--report", "report.json"]);
        assert_eq!((spent.code, &*spent.stdout), (69, ""), "{spent:?}");
        assert_eq!(audit(place).len(), 2, "a refusal records nobody");
        let report = json(&std::fs::read_to_string(place.path().join("report.json")).unwrap());
        assert_eq!((&report["result"], &report["undo"]), (&"exhausted".into(), &Value::Null), "{report}");
    });
}

#[test]
fn with_a_wait_the_second_attempt_is_the_guards_own_idea() {
    on_each_store(|place| {
        let ran = trigger(place, &["--yes", "--wait", "60s"]);
        assert_eq!((ran.code, &*ran.stdout), (3, "out 1\nout 2\n"), "{ran:?}");
        assert_eq!(audit(place).len(), 1);
    });
}

#[test]
fn json_is_all_that_is_on_stdout_when_it_is_asked_for() {
    on_each_store(|place| {
        let ran = trigger(place, &["--yes", "--json", "--report", "report.json"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        let account = json(&ran.stdout);
        assert_eq!((&account["result"], &account["runs"][0]["exit_code"]), (&"failure".into(), &3.into()), "{account}");
        assert!(account["undo"].as_str().unwrap().contains("cronward reset push@"), "{account}");
        assert!(ran.stderr.starts_with("out 1\nerr\n"), "{}", ran.stderr);
        assert_eq!(json(&std::fs::read_to_string(place.path().join("report.json")).unwrap()), account);
    });
}

#[test]
fn whoever_interrupts_the_wait_for_a_slot_is_told_nothing_and_gets_the_signals_code() {
    let server = RedisServer::start();
    let place = Place::with_jobs(&format!(
        "[store]\nurl = \"{}\"\nop_timeout = \"30s\"\n[jobs.push]\nschedule = \"0 0 * * *\"\nslot = \"day\"\n\
         timezone = \"{}\"\nlease_ttl = \"10m\"\ncommand = [\"/bin/sh\", \"-c\", \"echo up; exec sleep 60\"]\n",
        server.url(),
        zone()
    ));
    let start = |flags: &[&str]| {
        let mut command = place.command(&[&["trigger", "push", "--yes"], flags].concat());
        Killed(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let mut first = start(&["--node", "first"]);
    let mut line = String::new();
    BufReader::new(first.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let subscribed = || match server.command(&["PUBSUB", "CHANNELS"]) {
        redis::Value::Array(channels) => !channels.is_empty(),
        answer => panic!("{answer:?}"),
    };
    // The lease outlives its holder.
    first.kill();
    wait::until_true("the end of the first's connections", || !subscribed());
    let mut second = start(&["--node", "second", "--wait", "60s", "--report", "report.json"]);
    // Who waits for a slot subscribes once it has heard that somebody holds it.
    wait::until_true("the second's wait", subscribed);
    second.signal(Signal::INT);
    let mut told = String::new();
    second.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((second.0.wait().unwrap().code(), &*told), (Some(130), ""));
    let report = json(&std::fs::read_to_string(place.path().join("report.json")).unwrap());
    assert_eq!((&report["result"], &report["runs"]), (&"interrupted".into(), &json("[]")), "{report}");
}
