//! A guard that stood still (SIGSTOP) while its command ended, and another one that ran the slot meanwhile: what is said of the end,
//! and of an overlap, is what is known.

use rustix::process::Signal;
use serde_json::Value;

use crate::guarding::{exec_at, running_at};
use crate::process::{lives, pid_in, signal};
use crate::program::Place;
use crate::redis_server::RedisServer;
use crate::wait;

/// It records its own end: one attempt, one file.
const COMMAND: &str =
    "echo $PPID >keeper; echo $$ >command; until test -e go; do sleep 0.05; done; date +%s%3N >end-$CRONWARD_ATTEMPT";

/// What is said of the slot, and the instant that the first command itself recorded.
#[derive(Debug)]
struct Told {
    slot: Value,
    why: Value,
    /// What the guard that stood still said when it went on.
    guard: String,
    /// What `show` and `logs` say to people.
    shown: String,
    logs: String,
    end_ms: i64,
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
}

/// The guard stands still, alone or with the keeper of its command, from before the command ends until another guard has run the slot.
fn stood_still(with_keeper: bool) -> Told {
    // A guard that is stopped in the middle of a step on SQLite would lock everybody out.
    let (server, place) = (RedisServer::start(), Place::new());
    let url = server.url();
    let (guard, _out) = running_at(&url, &place, &["--node", "a", "--lease-ttl", "3s"], COMMAND);
    wait::until_true("the command", || pid_in(place.path(), "command").is_some());
    let number = |name| pid_in(place.path(), name).unwrap();
    let (keeper, command) = (number("keeper"), number("command"));
    let stopped: Vec<u32> = [Some(guard.id()), with_keeper.then_some(keeper)].into_iter().flatten().collect();
    stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
    wait::until_true("all stand still", || stopped.iter().all(|pid| is_stopped(*pid)));
    place.write("go", "");
    wait::until_true("the end of the command", || !lives(command));
    let other = exec_at(&url, &place, &["--node", "b", "--lease-ttl", "3s", "--wait", "45s"], &["/bin/true"]);
    assert_eq!(other.code, 0, "{other:?}");
    stopped.iter().rev().for_each(|pid| signal(*pid, Signal::CONT));
    let ended = guard.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let read = |verb: &str| -> Value {
        let told = place.run(&[verb, "push", "--store", &url, "--json"]);
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
    };
    let end_ms = std::fs::read_to_string(place.path().join("end-1")).unwrap().trim().parse().unwrap();
    let shown = place.run(&["show", "push", "--store", &url]).stdout;
    let logs = place.run(&["logs", "push", "--attempt", "1", "--store", &url]).stderr;
    Told { slot: read("show"), why: read("why"), guard: String::from_utf8(ended.stderr).unwrap(), shown, logs, end_ms }
}

fn millis(instant: &Value) -> Option<i64> {
    let instant: chrono::DateTime<chrono::Utc> = instant.as_str()?.parse().unwrap();
    Some(instant.timestamp_millis())
}

impl Told {
    /// An overlap is claimed where the recorded end allows one, and nowhere else; and none is sure, for there was none.
    fn claims_no_overlap_that_the_record_excludes(&self) {
        let decisions = self.why["decisions"].as_array().unwrap();
        let claim = decisions.iter().find(|told| told["what"] == "claimed" && told["attempt"] == 2).unwrap();
        // Ends are by the clocks of nodes, and claims by that of the store: they may be a second apart.
        let is_possible = millis(&self.slot["runs"][0]["ended"]).map(|ended| ended + 1_000) > millis(&claim["at"]);
        let sentence = self.why["sentence"].as_str().unwrap();
        assert_eq!(sentence.contains("may have overlapped"), is_possible, "{self:#?}");
        assert_eq!(self.guard.contains("another run may have overlapped"), is_possible, "{self:#?}");
        let texts: Vec<&str> = decisions.iter().filter_map(|told| told["text"].as_str()).collect();
        let says = |words: &str| texts.iter().any(|text| text.contains(words));
        assert_eq!(says("may have run concurrently"), is_possible, "{self:#?}");
        assert!(!says("ran concurrently") && !sentence.contains("the runs overlapped"), "{self:#?}");
    }
}

#[test]
fn a_keeper_that_stood_still_tells_between_which_instants_its_command_ended() {
    let told = stood_still(true);
    let run = &told.slot["runs"][0];
    let bounds = millis(&run["ended_after"]).zip(millis(&run["ended"]));
    let (after, by) = bounds.unwrap_or_else(|| panic!("no bounds: {told:#?}"));
    // The command reads a clock that is cut to milliseconds.
    assert!(after <= told.end_ms + 1 && told.end_ms <= by + 1, "{told:#?}");
    assert!(run["duration_s"].is_null() && run["cpu_s"].is_number(), "{told:#?}");
    let sentence = told.why["sentence"].as_str().unwrap();
    assert!(sentence.contains("; attempt 1 ended between ") && sentence.contains(": node a stood still"), "{told:#?}");
    let instant = |field: &str| run[field].as_str().unwrap();
    let between = format!("between {} and {}: node a stood still\n", instant("ended_after"), instant("ended"));
    assert!(told.shown.contains(&format!("ended     {between}")), "{told:#?}");
    assert!(told.logs.contains(&format!(" ended {between}")), "{told:#?}");
    told.claims_no_overlap_that_the_record_excludes();
}

#[test]
fn the_end_that_a_keeper_saw_while_its_guard_stood_still_excludes_an_overlap() {
    let told = stood_still(false);
    let run = &told.slot["runs"][0];
    // A machine that stood still itself may have held up the keeper as well.
    let ended = millis(&run["ended"]).unwrap();
    assert!(told.end_ms <= ended + 1, "{told:#?}");
    told.claims_no_overlap_that_the_record_excludes();
}
