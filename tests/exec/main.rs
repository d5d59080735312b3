//! Commands as they are really started: by the built binary as the shim, in real processes.
#![cfg(feature = "daemon")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects"
)]

mod death;
mod ends;
mod environment;
mod group;
mod lease;
mod output;
mod passing;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cronward::exec::{Environment, Launcher, Output, Renewals, Running};
use cronward::job::{CommandSpec, KillMode, NodeName, Program};
use cronward::slot::{Exit, ExitStatus, Fence, RunContext, Slot, Trigger};

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

/// Polls until something is there.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the process number that a command leaves in a file, written whole.
fn pid_in(dir: &Path, name: &str) -> u32 {
    eventually(name, || std::fs::read_to_string(dir.join(name)).ok()?.strip_suffix('\n')?.parse().ok())
}

/// A process that is there and has not ended.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

fn dies(pid: u32) {
    eventually("the end of a process", || (!lives(pid)).then_some(()));
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
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
