//! A folder with daemons in it, each with a journal, on one SQLite file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes so long, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The command of the jobs: `record.sh SECONDS` tells the recorder when it starts and when it ends.
const SCRIPT: &str = r#"#!/bin/sh
record() {
    printf '{"event":"%s","job":"%s","slot":"%s","attempt":%s,"fence":%s,"node":"%s","pid":%s,"at_ms":%s}\n' \
        "$1" "$CRONWARD_JOB" "$CRONWARD_SLOT" "$CRONWARD_ATTEMPT" "$CRONWARD_FENCE" "$CRONWARD_NODE" $$ "$(date +%s%3N)" >>runs
}
record start
sleep "$1"
record end
"#;

pub(crate) struct Place(TempDir);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn with_jobs(jobs: &str) -> Self {
        let place = Self::new();
        place.write("jobs.toml", jobs);
        place.write("record.sh", SCRIPT);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// The whole lines of a file, read as JSON.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn cronward(&self, args: &[&str]) -> Ended {
        let output = self.command(args).output().unwrap();
        Ended {
            code: output.status.code().expect("it exits by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A daemon whose journal is `<node>.jsonl`, once it has reached the store.
    pub(crate) fn node(&self, node: &str) -> Daemon {
        let journal = format!("{node}.jsonl");
        let store = "sqlite:cronward.sqlite";
        let mut command = self.command(&["run", "--store", store, "--node", node, "--journal", &journal, "--no-http"]);
        let log = std::fs::File::create(self.path().join(format!("{node}.log"))).unwrap();
        let daemon = Daemon(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        self.until("the store is reached", || self.tells(&journal, "store_reached") > 0);
        daemon
    }

    /// How many lines of a journal have this event.
    pub(crate) fn tells(&self, journal: &str, event: &str) -> usize {
        self.lines(journal).iter().filter(|line| line["event"] == event).count()
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, look: impl Fn() -> bool) {
        let begun = Instant::now();
        while !look() {
            let logs = || [self.read("a.log"), self.read("b.log")].join("\n");
            assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}\n{}", logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Asks it to leave and waits until it has.
    pub(crate) fn leave(mut self) {
        self.signal(Signal::TERM);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}
