//! A folder with daemons in it, each with a journal, on one SQLite file.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::Killed;
use crate::program::{Ended, Place};

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

pub(crate) struct Cluster(Place);

impl Cluster {
    pub(crate) fn with_jobs(jobs: &str) -> Self {
        let place = Place::with_jobs(jobs);
        place.write("record.sh", SCRIPT);
        Self(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// The whole lines of a file, read as JSON.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn cronward(&self, args: &[&str]) -> Ended {
        self.0.run(args)
    }

    /// A daemon whose journal is `<node>.jsonl`, once it has reached the store.
    pub(crate) fn node(&self, node: &str) -> Killed {
        let journal = format!("{node}.jsonl");
        let store = "sqlite:cronward.sqlite";
        let mut command =
            self.0.command(&["run", "--store", store, "--node", node, "--journal", &journal, "--no-http"]);
        let log = std::fs::File::create(self.path().join(format!("{node}.log"))).unwrap();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let daemon = Killed(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
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
