//! Commands as they are really started: by the built binary as the shim, in real processes.
mod death;
mod ends;
mod environment;
mod group;
mod lease;
mod output;
mod passing;
mod stuck;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cronward::exec::{Environment, Launcher, Output, Renewals, Running};
use cronward::job::{CommandSpec, KillMode, NodeName, Program};
use cronward::slot::{Exit, ExitStatus, Fence, RunContext, Slot, Trigger};
use rustix::process::Signal;

use crate::process::{self, Killed, lives, signal};
use crate::wait;

/// Longer than anything here takes on a busy machine; only a failure lasts that long.
const LIMIT: Duration = Duration::from_secs(30);

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn shim() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cronward"))
}

fn inheriting(variables: &[(&str, &str)]) -> Launcher {
    let environment = Environment::inherited(variables.iter().map(|(name, value)| (name.into(), value.into())));
    Launcher::new(shim(), Output::Capture).with_environment(environment)
}

fn launcher() -> Launcher {
    inheriting(&[("PATH", PATH)])
}

fn run() -> RunContext {
    RunContext {
        slot: Slot::parse("push", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
        scheduled_at: "2026-11-21T14:05:00Z".parse().unwrap(),
        attempt: 2,
        max_attempts: 3,
        fence: Fence(1_795_269_600_002),
        fence_revision: None,
        run_id: "r-1".to_owned(),
        node: NodeName::new("a").unwrap(),
        trigger: Trigger::Schedule,
        deadline: None,
        token: None,
        lease_held: true,
        locks: None,
    }
}

/// For a command that may outlast its lease.
fn no_lease() -> Renewals {
    tokio::sync::watch::channel(None).1
}

fn shell(line: &str) -> CommandSpec {
    CommandSpec::new(Program::Shell(line.to_owned()))
}

fn direct(words: &[&str]) -> CommandSpec {
    CommandSpec::new(Program::Direct(words.iter().map(|word| (*word).to_owned()).collect()))
}

/// A shell line in a directory of its own, where it can leave process numbers.
fn shell_in(dir: &tempfile::TempDir, line: &str) -> CommandSpec {
    CommandSpec { cwd: Some(dir.path().to_owned()), ..shell(line) }
}

async fn launch(command: &CommandSpec) -> Running {
    launcher().launch(command, &run(), no_lease()).await
}

async fn end(running: &mut Running) -> Exit {
    tokio::time::timeout(LIMIT, running.wait()).await.expect("the command does not end")
}

async fn exit_of(command: &CommandSpec) -> Exit {
    end(&mut launch(command).await).await
}

async fn output_of(command: &CommandSpec) -> String {
    let exit = exit_of(command).await;
    assert_eq!(exit.status, ExitStatus::Code(0), "{exit:?}");
    exit.output.text
}

async fn refusal_of(command: &CommandSpec) -> (i32, String) {
    match exit_of(command).await.status {
        ExitStatus::NotStarted { code, message } => (code, message),
        status => panic!("it was started: {status:?}"),
    }
}

/// Waits for the process number that a command leaves in a file.
fn pid_in(dir: &Path, name: &str) -> u32 {
    wait::until(name, || process::pid_in(dir, name))
}

fn dies(pid: u32) {
    wait::until_true("the end of a process", || !lives(pid));
}

fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Whether a process works in the directory.
fn works_in(dir: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok()).any(|cwd| cwd == dir)
}

/// This binary as a process of its own, for a part that one of its tests has; the test's name is that within `exec`.
fn itself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("exec::{test}"), "--ignored", "--nocapture"]);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes an executable, or not so executable, file.
fn script(dir: &tempfile::TempDir, name: &str, text: &str, mode: u32) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}
