//! A daemon as process 1, as it is in a container: what a killed keeper leaves is reaped, and each run ends as it should. A name space of
//! processes of its own makes it that; no container is needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::process::{Killed, signal};
use crate::program::Place;
use crate::wait;

/// A command that leaves a process behind in a session of its own, where the end of its keeper does not reach it. Its lease outlasts
/// what a busy machine makes a renewal wait: a run whose lease has lapsed is told as crashed by the next slot's.
const JOBS: &str = r#"
[store]
op_timeout = "10s"

[jobs.leaves]
schedule = "* * * * * *"
slot = "day"
lease_ttl = "1m"
max_attempts = 9
retry_delay = "100ms"
concurrency = "forbid"
command = "setsid sleep 7 & sleep 600 & sleep 600"
"#;

/// A process, as the machine lists it.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    state: char,
    parent: u32,
}

fn processes() -> BTreeMap<u32, Process> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = numbers.filter_map(|pid| Some((pid, of(pid)?)));
    found.collect()
}

fn of(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Process { name: start.split_once(" (")?.1.to_owned(), state, parent: fields.next()?.parse().ok()? })
}

fn children(of: u32) -> BTreeMap<u32, Process> {
    processes().into_iter().filter(|(_, process)| process.parent == of).collect()
}

/// The daemon's own number outside of its name space.
fn daemon_below(unshare: u32) -> u32 {
    wait::until("the daemon", || children(unshare).into_keys().next())
}

fn keeper_with_command(daemon: u32) -> Option<u32> {
    let keepers = children(daemon).into_iter().filter(|(_, process)| process.name == "cronward-shim");
    // Its shell, and what that has left: only then there is something to inherit.
    keepers.map(|(pid, _)| pid).find(|pid| processes().values().filter(|other| other.parent == *pid).count() >= 1)
}

fn start_as_first(place: &Place) -> Killed {
    let log = File::create(place.path().join("log")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--"]);
    command.args([env!("CARGO_BIN_EXE_cronward"), "run", "--store", "sqlite:store.db", "--journal", "journal.jsonl"]);
    command.current_dir(place.path()).env_clear().env("PATH", "/usr/bin:/bin");
    Killed(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
}

#[test]
fn process_1_reaps_what_killed_keepers_leave_and_loses_no_run() {
    let place = Place::with_jobs(JOBS);
    let started = start_as_first(&place);
    let daemon = daemon_below(started.0.id());
    for _ in 0..3 {
        let keeper = wait::until("a keeper with a command", || keeper_with_command(daemon));
        signal(keeper, Signal::KILL);
        wait::until_true("the keeper is gone", || !processes().contains_key(&keeper));
    }
    // Those that were killed with their keeper, and those that lived on for seconds.
    wait::until_true("what the keepers left has ended and is reaped", || {
        let others = children(daemon).into_values().filter(|process| process.name != "cronward-shim");
        others.filter(|process| process.name == "sleep" || process.state == 'Z').count() == 0
            && journal(&place).matches("\"killed\"").count() >= 3
    });
    assert!(!journal(&place).contains("\"crashed\""), "{}", journal(&place));
}

fn journal(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("journal.jsonl")).unwrap_or_default()
}
