//! Runs `cronward` with nothing of this process's environment and in an empty folder.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder to run in.
pub(crate) struct Place {
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A place in this folder.
    #[allow(dead_code, reason = "for what must not wait for a disk")]
    pub(crate) fn within(folder: &Path) -> Self {
        Self { folder: tempfile::tempdir_in(folder).unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A place with this `jobs.toml`.
    #[allow(dead_code, reason = "for the commands that read a file")]
    pub(crate) fn with_jobs(text: &str) -> Self {
        let place = Self::new();
        place.write("jobs.toml", text);
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// The binary in this place, not started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().unwrap().into()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it exited by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs it in an empty folder.
pub(crate) fn cronward(args: &[&str]) -> Ended {
    Place::new().run(args)
}
