//! A job as its file declares it, and what it starts: the program, its environment, whose rights it has. Words only: nothing is
//! started here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;

use super::{JobName, Policy};
use crate::slot::Period;

/// A declared unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Its name, unique within the namespace.
    pub name: JobName,
    /// For people.
    pub description: Option<String>,
    /// Who is asked about it.
    pub owner: Option<String>,
    /// Where it is written what to do when it fails.
    pub runbook: Option<String>,
    /// For people.
    pub tags: Vec<String>,
    /// The cron expression as written; `schedule` compiles it.
    pub schedule: String,
    /// The zone in which the expression, hours and days are read.
    pub timezone: Tz,
    /// What one slot spans.
    pub period: Period,
    /// Limits and policies.
    pub policy: Policy,
    /// What is started.
    pub command: CommandSpec,
    /// False: planned by nobody.
    pub enabled: bool,
    /// Upper bound of the fixed delay after each tick.
    pub jitter: Duration,
    /// Only nodes that carry all of these labels claim it.
    pub only_on: BTreeMap<String, String>,
    /// Told when the last success is older than this.
    pub alert_after: Option<Duration>,
    /// Names of the channels to tell.
    pub notify: Vec<String>,
}

impl JobSpec {
    /// A job with the defaults of `jobs.toml`.
    pub fn new(name: JobName, schedule: impl Into<String>, program: Program) -> Self {
        Self {
            name,
            description: None,
            owner: None,
            runbook: None,
            tags: Vec::new(),
            schedule: schedule.into(),
            timezone: Tz::UTC,
            period: Period::Hour,
            policy: Policy::default(),
            command: CommandSpec::new(program),
            enabled: true,
            jitter: Duration::ZERO,
            only_on: BTreeMap::new(),
            alert_after: None,
            notify: Vec::new(),
        }
    }
}

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
