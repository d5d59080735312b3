//! One real node: `cronward run` as a process of its own, and its log.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::Place;
use crate::wait;

/// A node that is to be started.
pub(crate) struct Start<'a> {
    place: &'a Place,
    name: &'a str,
    store: &'a str,
    config: &'a str,
    namespace: Option<&'a str>,
    variables: Vec<(&'static str, String)>,
    clock: Option<&'a str>,
}

impl<'a> Start<'a> {
    /// `store` is the url; of the file where it is empty.
    pub(crate) fn new(place: &'a Place, name: &'a str, store: &'a str) -> Self {
        Self { place, name, store, config: "jobs.toml", namespace: None, variables: Vec::new(), clock: None }
    }

    /// With another file of jobs.
    pub(crate) fn config(self, file: &'a str) -> Self {
        Self { config: file, ..self }
    }

    pub(crate) fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// With a wall clock that is off by so much (`+1h`, as libfaketime reads it). The monotonic clocks are right.
    pub(crate) fn clock(self, offset: &'a str) -> Self {
        Self { clock: Some(offset), ..self }
    }

    /// Starts it. It is not in touch with its store yet.
    pub(crate) fn start(self) -> Daemon {
        let log =
            (0..).map(|n| self.place.file(&format!("{}-{n}.log", self.name))).find(|path| !path.exists()).unwrap();
        self.start_with(File::create(&log).unwrap(), log)
    }

    /// The same, with another stderr than a file. What it logs cannot be asked for.
    pub(crate) fn start_into(self, stderr: impl Into<Stdio>) -> Daemon {
        self.start_with(stderr, PathBuf::new())
    }

    fn start_with(self, stderr: impl Into<Stdio>, log: PathBuf) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(["run", "--config", self.config, "--node", self.name]);
        command.args(["--store", self.store].iter().filter(|_| !self.store.is_empty()));
        command.args(["--log-format", "json", "--no-http"]);
        command.args(self.namespace.into_iter().flat_map(|namespace| ["--namespace", namespace]));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CRONWARD_LOG", "info,cronward=debug,sqlx=warn,redis=warn").envs(self.variables);
        if let Some(offset) = self.clock {
            command.env("LD_PRELOAD", faketime_library()).env("FAKETIME", offset);
            // Leases are judged by CLOCK_BOOTTIME, which goes on as it is.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.current_dir(self.place.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(stderr);
        Daemon::run(command, self.name, log)
    }
}

/// What `faketime` preloads. The program itself is not used: it stays beside the node as its parent, and a signal to the
/// one would not reach the other.
pub(crate) fn faketime_library() -> String {
    forget_the_dead();
    let output = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run faketime ({error}): apt-get install faketime"));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The library leaves a file and a semaphore behind where its process is killed, and fakes nothing for whoever gets that process id later.
fn forget_the_dead() {
    let Ok(kept) = std::fs::read_dir("/dev/shm") else { return };
    for entry in kept.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("faketime_shm_").or_else(|| name.strip_prefix("sem.faketime_sem_"));
        if pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            // Another test may have been first.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A running node; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) name: String,
    log: PathBuf,
}

impl Daemon {
    /// Starts a process whose stderr is its log.
    pub(crate) fn spawn(mut command: Command, name: &str, log: PathBuf) -> Self {
        command.stderr(File::create(&log).unwrap());
        Self::run(command, name, log)
    }

    fn run(mut command: Command, name: &str, log: PathBuf) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Self { child, name: name.to_owned(), log }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the node is there to be signalled");
    }

    /// Stops it where it is.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to leave.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks it to read its file again.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has exited.
    pub(crate) fn exits(&mut self) -> ExitStatus {
        wait::until(&format!("the exit of {}", self.name), || self.child.try_wait().unwrap())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its log so far, as text.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its log so far. A half-written last line is not read.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = self.text();
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        whole.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The lines whose message begins so.
    pub(crate) fn said(&self, message: &str) -> Vec<Value> {
        let begins = |line: &Value| line["message"].as_str().is_some_and(|text| text.starts_with(message));
        self.log().into_iter().filter(begins).collect()
    }

    /// Waits for a line whose message begins so, and answers the first.
    pub(crate) fn says(&self, message: &str) -> Value {
        wait::until(&format!("{} says {message:?}", self.name), || self.said(message).into_iter().next())
    }

    /// Waits for a line whose message begins so and whose field has this value.
    pub(crate) fn says_with(&self, message: &str, field: &str, value: &str) -> Value {
        let fits = |line: &Value| line[field].as_str().is_some_and(|text| text == value);
        let what = format!("{} says {message:?} with {field} = {value}", self.name);
        wait::until(&what, || self.said(message).into_iter().find(fits))
    }

    /// Waits until its store has answered.
    pub(crate) fn is_in_touch(&self) {
        self.says("store ");
        wait::until(&format!("{} reaches its store", self.name), || {
            (!self.said("store reached").is_empty() || !self.said("store is back").is_empty()).then_some(())
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

/// Waits until a process has ended.
pub(crate) fn dies_within(limit: Duration, pid: u32) {
    wait::within(limit, &format!("the end of process {pid}"), || (!lives(pid)).then_some(()));
}
