//! What a job starts: the program, its environment, whose rights it has. Words only: nothing is started here.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is started for each attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program, directly or by the shell.
    pub program: Program,
    /// Set for the command on top of the inherited environment; later wins. Values are not placeholders.
    pub env: BTreeMap<String, String>,
    /// `KEY=value` lines, read before each attempt.
    pub env_file: Option<PathBuf>,
    /// The working directory; the daemon's when none.
    pub cwd: Option<PathBuf>,
    /// The user to run as; needs a daemon that runs as root.
    pub user: Option<String>,
    /// The group to run as; the user's primary group when none.
    pub group: Option<String>,
    /// Exit codes that count as success.
    pub success_codes: Vec<i32>,
    /// Bytes of output kept, the last ones.
    pub output_limit: usize,
    /// What is stopped when the command has ended or is being stopped.
    pub kill_mode: KillMode,
}

/// How much of what a command started is stopped with it. The words are systemd's `KillMode=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KillMode {
    /// Everything, also what left the command's process group: nothing outlives its run.
    #[default]
    Group,
    /// The command and its process group while it runs, and nothing of it once it has ended: a daemon that it starts lives on,
    /// and nobody looks after that.
    Process,
}

/// How the command is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `command = ["/bin/x", "--hour", "{slot}"]`: no shell; placeholders are filled in.
    Direct(Vec<String>),
    /// `command = "x | y"`: `/bin/sh -c`, with the environment and no placeholders.
    Shell(String),
}

/// Bytes of output kept of an attempt when the job says nothing.
pub const DEFAULT_OUTPUT_LIMIT: usize = 64 * 1024;

impl CommandSpec {
    /// A command with the defaults of `jobs.toml`.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            env: BTreeMap::new(),
            env_file: None,
            cwd: None,
            user: None,
            group: None,
            success_codes: vec![0],
            output_limit: DEFAULT_OUTPUT_LIMIT,
            kill_mode: KillMode::Group,
        }
    }
}
