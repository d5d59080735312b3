//! `cronward why` over what real nodes and crontabs noted, and over jobs that only a crontab knows.

use std::process::Stdio;

use serde_json::Value;

use crate::filled::Filled;
use crate::guarding::{STORE, running, zone};
use crate::process::Killed;
use crate::program::{Ended, Place};
use crate::wait;

fn json(place: &Place, words: &[&str]) -> Value {
    let told = place.run(&[words, &["--json", "--store", STORE]].concat());
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
}

/// The texts of one kind of decision, with whose they are.
fn decided(why: &Value, what: &str) -> Vec<String> {
    let of_kind = why["decisions"].as_array().unwrap().iter().filter(|it| it["what"] == what);
    of_kind.map(|it| format!("{}: {}", it["node"].as_str().unwrap(), it["text"].as_str().unwrap())).collect()
}

/// A daemon with a file of its own: its label, and how many attempts the job has.
fn daemon(place: &Place, name: &str, label: &str, attempts: u32) -> Killed {
    let text = format!(
        "[node]\nname = \"{name}\"\nlabels = {{ zone = \"{label}\" }}\n[store]\nurl = \"{STORE}\"\nop_timeout = \"30s\"\n\
         [jobs.push]\nschedule = \"* * * * * *\"\nslot = \"day\"\ntimezone = \"{}\"\ncommand = \"true\"\n\
         max_attempts = {attempts}\nonly_on = {{ zone = \"eu\" }}\n",
        zone()
    );
    std::fs::write(place.path().join(format!("{name}.toml")), text).unwrap();
    let mut command = place.command(&["run", "--config", &format!("{name}.toml")]);
    Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn why_tells_of_nodes_that_were_not_selected_and_of_those_with_another_file() {
    let place = Place::new();
    // Made before the daemon gets to it: whoever looks makes none.
    assert_eq!(place.run(&["migrate", "--store", STORE]).code, 0);
    let a = daemon(&place, "a", "eu", 3);
    wait::until("a's run", || {
        let jobs = json(&place, &["jobs"]);
        (jobs[0]["current"]["state"] == "done").then_some(())
    });
    let b = daemon(&place, "b", "us", 4);
    wait::until("b's heartbeat", || (json(&place, &["nodes"]).as_array().unwrap().len() == 2).then_some(()));
    a.leave();
    b.leave();
    let exec = |node: &str, flags: &[&str]| {
        let base = ["exec", "--config", "a.toml", "--job", "push", "--node", node];
        let told = place.run(&[&base[..], flags, &["--", "sh", "-c", "true"]].concat());
        assert_eq!((told.code, &*told.stderr), (0, ""), "{told:?}");
    };
    exec("as-the-file", &[]);
    exec("with-a-flag", &["--max-attempts", "9"]);

    let why = json(&place, &["why", "push"]);
    assert_eq!(decided(&why, "not_selected"), ["b: not selected: only_on requires zone=eu"], "{why:#}");
    let differs = ["b", "with-a-flag"].map(|node| format!("{node}: has a different definition of the job than a"));
    assert_eq!(decided(&why, "config_differs"), differs, "{why:#}");
}

#[test]
fn a_job_is_known_while_its_first_command_runs_and_after_its_guard_was_killed() {
    let place = Place::new();
    // The lease outlives its holder until it is unlocked.
    let (mut guard, _out) = running(&place, &["--lease-ttl", "10m"], "exec sleep 60");
    let ask = |verb: &str| place.run(&[verb, "push", "--store", STORE]);
    wait::until("the job", || (ask("show").code == 0).then_some(()));
    let why = ask("why");
    assert!(why.stdout.contains("\nthe slot is running: node "), "{why:?}");
    guard.kill().unwrap();
    guard.wait().unwrap();
    assert_eq!(place.run(&["unlock", "push", "--store", STORE, "--yes"]).code, 0);
    let why = ask("why");
    assert!(why.stdout.contains("when its crontab starts it again\nfix: "), "{why:?}");
    let reset = place.run(&["reset", "push", "--store", STORE, "--yes"]);
    assert!(
        reset.stdout.contains("1 attempt no longer counts; the slot runs when its crontab starts it again"),
        "{reset:?}"
    );
}

fn exec(place: &Place, store: &str, job: &str, flags: &[&str]) -> Ended {
    place.run(&[&["exec", "--store", store, "--job", job], flags, &["--", "true"]].concat())
}

#[test]
fn what_a_crontab_says_of_its_job_is_known_as_it_says_it_now() {
    // In some zones the day begins with this very hour, and would be done with it.
    let (place, zone) = (Place::new(), zone());
    let known = |job: &str| {
        let jobs = json(&place, &["jobs"]);
        let told = jobs.as_array().unwrap().iter().find(|told| told["job"] == job).cloned().unwrap_or_default();
        let fields = ["origin", "period", "timezone"].map(|field| told[field].as_str().unwrap_or_default().to_owned());
        (fields, told["current"]["start"].as_str().unwrap_or_default().to_owned())
    };
    // The registry is told beside the work, and only so long: where the machine let that pass, it is tried with another job.
    let told_of_all = (0..20).map(|number| format!("push-{number}")).any(|job| {
        exec(&place, STORE, &job, &[]);
        if known(&job).0 != ["crontab", "hour", "UTC"] {
            return false;
        }
        exec(&place, STORE, &job, &["--slot", "day", "--timezone", &zone]);
        let (fields, start) = known(&job);
        if fields != ["crontab", "day", &zone] {
            return false;
        }
        // Of one slot that is named by its key, the others' length is not told.
        exec(&place, STORE, &job, &["--slot", &format!("{}T15Z", start.split_at(10).0)]);
        assert_eq!(known(&job).0, ["crontab", "day", &zone]);
        true
    });
    assert!(told_of_all, "{:#}", json(&place, &["jobs"]));
}

#[test]
fn what_a_daemons_file_says_of_a_job_is_not_replaced_by_a_crontab() {
    let filled = Filled::new();
    let jobs = || filled.run(&["jobs", "--json"]).stdout;
    let before: Value = serde_json::from_str(&jobs()).unwrap();
    assert_eq!(exec(filled.place(), &filled.file(), "quiet", &["--slot", "day", "--max-attempts", "9"]).code, 0);
    let after: Value = serde_json::from_str(&jobs()).unwrap();
    let fields = |jobs: &Value| ["origin", "period", "enabled"].map(|field| jobs[3][field].clone());
    assert_eq!((&after[3]["job"], fields(&after)), (&Value::from("quiet"), fields(&before)));
}

/// Runs what was told to be pasted.
fn pasted(place: &Place, line: &str) -> Ended {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    place.run(&[&words[..], &["--yes"]].concat())
}

#[test]
fn the_command_that_mends_a_slot_reaches_the_store_and_the_namespace_that_were_asked() {
    let place = Place::new();
    let here = ["--store", STORE, "--namespace", "other"];
    let exec = |command: &str| {
        let base = ["exec", "--job", "push", "--slot", "day", "--max-attempts", "1"];
        place.run(&[&base[..], &here, &["--", "/bin/sh", "-c", command]].concat())
    };
    assert_eq!(exec("exit 3").code, 3);
    let why = place.run(&[&["why", "push", "--json"], &here[..]].concat());
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    let mended = pasted(&place, why["fix"].as_str().unwrap());
    assert!(mended.stdout.contains("1 attempt no longer counts"), "{mended:?}");
    assert_eq!(exec("echo again").stdout, "again\n", "the crontab's line runs it then");
}
