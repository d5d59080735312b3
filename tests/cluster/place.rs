//! The folder of one trial: its jobs.toml, the recorder, the nodes' logs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::daemon::{Daemon, Start};
use crate::recorder::{self, Run};
use crate::wait;

/// The folder of one trial.
pub(crate) struct Place {
    folder: TempDir,
}

/// How a command of `cronward` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = TempDir::with_prefix("cronward-cluster-").unwrap();
        std::fs::write(folder.path().join("record.sh"), recorder::SCRIPT).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes `jobs.toml`.
    pub(crate) fn jobs(&self, text: &str) {
        self.write("jobs.toml", text);
    }

    /// Writes a file in one step: a daemon that reads it sees the old one or the new one.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let fresh = self.file(&format!("{name}.new"));
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(fresh, self.file(name)).unwrap();
    }

    /// A node with `jobs.toml`, to be started.
    pub(crate) fn node<'a>(&'a self, name: &'a str, store: &'a str) -> Start<'a> {
        Start::new(self, name, store)
    }

    /// Nodes with `jobs.toml`, started, and in touch with the store.
    pub(crate) fn nodes<const N: usize>(&self, names: [&str; N], store: &str) -> [Daemon; N] {
        let daemons = names.map(|name| self.node(name, store).start());
        daemons.iter().for_each(Daemon::is_in_touch);
        daemons
    }

    /// All runs so far.
    pub(crate) fn runs(&self) -> Vec<Run> {
        recorder::read(self.path())
    }

    /// The runs of one job so far.
    pub(crate) fn runs_of(&self, job: &str) -> Vec<Run> {
        self.runs().into_iter().filter(|run| run.job == job).collect()
    }

    /// Waits until so many runs have started, and answers the last of them.
    pub(crate) fn run_number(&self, number: usize) -> Run {
        wait::until(&format!("run number {number}"), || self.runs().get(number - 1).cloned())
    }

    /// Waits until that run has ended by itself, and answers it.
    pub(crate) fn end_of_run(&self, number: usize) -> Run {
        let look = || self.runs().get(number - 1).filter(|run| run.end_ms.is_some()).cloned();
        wait::until(&format!("the end of run number {number}"), look)
    }

    /// Runs a command of `cronward` to its end.
    pub(crate) fn cronward(&self, args: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(args).current_dir(self.path()).env_clear().env("PATH", path).stdin(Stdio::null());
        let output = command.output().unwrap();
        Ended {
            code: output.status.code().expect("it exits by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// `cronward … --json` with this place's jobs, read.
    pub(crate) fn json(&self, args: &[&str], store: &str) -> serde_json::Value {
        let mut words = args.to_vec();
        words.extend(["--json", "--config", "jobs.toml", "--store", store]);
        // On a machine this busy an answer can come too late: a person would ask again, too.
        let mut ended = self.cronward(&words);
        for _ in 0..3 {
            if ended.code == 75 {
                ended = self.cronward(&words);
            }
        }
        assert_eq!(ended.code, 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Everything that helps to see why a trial failed.
    pub(crate) fn report(&self) -> String {
        let mut report = format!("--- recorder\n{}", recorder::table(&self.runs()));
        let mut logs: Vec<_> = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        for log in logs {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let _ = write!(report, "--- {}\n{text}", log.file_name().unwrap().to_string_lossy());
        }
        report
    }
}
