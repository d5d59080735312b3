//! The listings against a real store.

use serde_json::Value;

use crate::filled::Filled;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;

/// The first words of each line: what comes after them changes with the clock.
fn words(text: &str, count: usize) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().take(count).collect()).collect()
}

fn json(ended: &Ended) -> Value {
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn jobs_shows_each_job_with_the_state_of_its_slot() {
    let store = Filled::new();
    let told = store.run(&["jobs"]);
    let key = &*store.key;
    let nobody = format!(
        "no node is alive: no heartbeat in the last 7d; start one with: cronward run --store {}\n",
        store.file()
    );
    assert_eq!((told.code, told.stderr), (0, nobody));
    assert_eq!(
        words(&told.stdout, 5),
        [
            ["JOB", "SLOT", "STATE", "ATTEMPTS", "HOLDER"],
            ["billing", key, "running", "2/3", "b"],
            ["mail", key, "failed", "3/3", "-"],
            ["push", key, "done", "1/3", "-"],
            ["quiet", key, "no", "node", "0/3"],
        ]
    );
}

#[test]
fn attempts_shows_the_counters_of_what_is_not_done() {
    let store = Filled::new();
    let told = store.run(&["attempts"]);
    let key = &*store.key;
    assert_eq!((told.code, &*told.stderr), (0, ""));
    assert_eq!(
        words(&told.stdout, 6),
        [
            ["JOB", "SLOT", "STATE", "ATTEMPTS", "LAST", "NODE"],
            ["billing", key, "running", "2/3", "running", "b"],
            ["mail", key, "failed", "3/3", "exit", "7"],
            ["quiet", key, "pending", "0/3", "-", "-"],
        ]
    );
}

#[test]
fn a_record_that_somebody_else_wrote_is_named_and_keeps_nobody_from_the_others() {
    let (server, place) = (RedisServer::start(), Place::new());
    let url = server.url();
    // A slot of a day: its key does not change while this runs, but at midnight.
    for job in ["billing", "mail", "push"] {
        let words = ["exec", "--store", &url, "--job", job, "--slot", "day", "--", "/bin/true"];
        let ended = place.run(&words);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let keys = server.command(&["KEYS", "cronward:default:{mail@*}:log"]);
    let redis::Value::Array(keys) = keys else { panic!("{keys:?}") };
    let [redis::Value::BulkString(key)] = &*keys else { panic!("{keys:?}") };
    let log = String::from_utf8(key.clone()).unwrap();
    server.command(&["DEL", &log]);
    server.command(&["SET", &log, "what somebody else keeps here"]);
    let slot = log.trim_end_matches(":log");
    for (listing, others) in [("jobs", 3), ("attempts", 2)] {
        let line: &[&str] =
            if listing == "jobs" { &["jobs", "--store", &url] } else { &["attempts", "--all", "--store", &url] };
        let told = place.run(line);
        let warning =
            format!("warning: {url}: inspect: {slot}: this key, or one that begins with it, is of another type\n");
        assert_eq!((told.code, &*told.stderr), (0, &*warning), "{listing}");
        let rows = words(&told.stdout, 3);
        assert_eq!(rows.len(), others + 1, "{listing}: {}", told.stdout);
        for job in ["billing", "push"] {
            assert!(rows.iter().any(|row| row[0] == job && row[2] == "done"), "{listing}: {}", told.stdout);
        }
    }
    let why = place.run(&["why", "mail", "--store", &url]);
    assert!(why.code != 0 && why.stderr.contains(slot), "{}", why.stderr);
    assert_eq!(place.run(&["why", "push", "--store", &url]).code, 0);
    // The decision log and the outputs stand beside the record: what can be read is shown without them.
    let record = slot.replace("mail", "push");
    for (verb, part) in [("why", "notes"), ("show", "outputs")] {
        let key = format!("{record}:{part}");
        server.command(&["DEL", &key]);
        server.command(&["SET", &key, "what somebody else keeps here"]);
        let told = place.run(&[verb, "push", "--store", &url]);
        assert_eq!(told.code, 0, "{}", told.stderr);
        assert!(told.stderr.starts_with("warning: ") && told.stderr.contains(&record), "{}", told.stderr);
        assert!(told.stdout.contains("done"), "{}", told.stdout);
    }
    let why: serde_json::Value =
        serde_json::from_str(&place.run(&["why", "push", "--json", "--store", &url]).stdout).unwrap();
    assert!(why["unreadable"].as_str().unwrap().contains(&record), "{why}");
}

#[test]
fn attempts_can_be_narrowed_and_widened() {
    let store = Filled::new();
    let jobs = |args: &[&str]| {
        let told = json(&store.run(&[&["attempts", "--json"], args].concat()));
        let names = told.as_array().unwrap().iter().map(|slot| slot["job"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(jobs(&["--all"]), ["billing", "mail", "push", "quiet"]);
    assert_eq!(jobs(&["--job", "mail"]), ["mail"]);
    assert_eq!(jobs(&["--job", "mail", "--job", "push"]), ["mail"]);
    assert_eq!(jobs(&["--state", "failed,done"]), ["mail", "push"]);
    assert_eq!(jobs(&["--state", "missed"]), [""; 0]);
}

#[test]
fn nothing_to_list_is_told_beside_an_empty_result() {
    let told = Filled::new().run(&["attempts", "--state", "missed"]);
    assert_eq!((told.code, &*told.stdout), (0, ""));
    assert_eq!(told.stderr, "no missed slots in the last 24h\n");
}

#[test]
fn the_json_of_attempts_is_an_array_of_slots_with_the_promised_fields() {
    let store = Filled::new();
    let slots = json(&store.run(&["attempts", "--json"]));
    let billing = &slots[0];
    assert_eq!((&billing["job"], &billing["slot"]), (&"billing".into(), &store.key.as_str().into()));
    assert_eq!(
        (&billing["state"], &billing["attempts"], &billing["max_attempts"]),
        (&"running".into(), &2.into(), &3.into())
    );
    for time in [&billing["start"], &billing["end"], &billing["runs"][0]["started"], &billing["runs"][0]["ended"]] {
        let text = time.as_str().unwrap();
        assert!(text.ends_with('Z') && text.parse::<chrono::DateTime<chrono::Utc>>().is_ok(), "{text}");
    }
    let lease = &billing["lease"];
    assert_eq!((&lease["node"], &lease["token"]), (&"b".into(), &"00000000000000000000000000000002".into()));
    let remaining = lease["remaining_s"].as_f64().unwrap();
    assert!(remaining > 0.0 && remaining <= 600.0, "{remaining}");
    let first = &billing["runs"][0];
    assert_eq!((&first["attempt"], &first["node"], &first["trigger"]), (&1.into(), &"a".into(), &"schedule".into()));
    assert_eq!((&first["outcome"], &first["exit_code"]), (&"failure".into(), &7.into()));
    assert_eq!((&first["duration_s"], &first["output_tail"]), (&0.4.into(), &"no route\n".into()));
    assert!(first["fence"].as_u64() < billing["runs"][1]["fence"].as_u64(), "a later attempt has the larger fence");
    assert_eq!(billing["runs"][1]["outcome"], Value::Null);
    assert_eq!(slots[1]["lease"], Value::Null);
}

#[test]
fn show_has_the_same_json_as_one_element_of_attempts_and_the_latest_of_its_job() {
    let store = Filled::new();
    let listed = json(&store.run(&["attempts", "--job", "mail", "--json"]));
    let mut shown = json(&store.run(&["show", "mail", "--json"]));
    let latest = shown["latest"].take();
    assert_eq!(shown, listed[0]);
    let jobs = json(&store.run(&["jobs", "--json"]));
    let of_job = jobs.as_array().unwrap().iter().find(|job| job["job"] == "mail").unwrap();
    assert_eq!(latest, of_job["latest"]);
    assert_eq!(latest["end"]["outcome"], "failure");
}

#[test]
fn the_json_of_jobs_describes_each_job() {
    let told = json(&Filled::new().run(&["jobs", "--json"]));
    let quiet = &told[3];
    assert_eq!(
        (&quiet["job"], &quiet["schedule"], &quiet["timezone"]),
        (&"quiet".into(), &"0 * * * *".into(), &"UTC".into())
    );
    assert_eq!((&quiet["enabled"], &quiet["paused"]), (&true.into(), &Value::Null));
    assert_eq!((&quiet["next_tick"], &quiet["no_start"]), (&Value::Null, &"no_live_node".into()));
    assert_eq!(quiet["current"]["state"], Value::from("pending"));
}

#[test]
fn next_works_from_the_registry_alone() {
    let told = json(&Filled::new().run(&["next", "push", "--count", "2", "--from", "2026-11-21T14:30:00Z", "--json"]));
    let ticks: Vec<&str> = told.as_array().unwrap().iter().map(|tick| tick["tick"].as_str().unwrap()).collect();
    assert_eq!(ticks, ["2026-11-21T15:00:00Z", "2026-11-21T16:00:00Z"]);
}

#[test]
fn a_namespace_sees_nothing_of_another() {
    let told = Filled::new().run(&["jobs", "--namespace", "other"]);
    assert_eq!((told.code, &*told.stdout), (0, ""));
    assert!(told.stderr.contains("no jobs"), "{}", told.stderr);
}
