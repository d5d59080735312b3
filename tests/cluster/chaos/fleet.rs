//! The nodes of a chaos run: real daemons, each with a journal, started again when they end, as a service manager does.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::chaos::folder::Folder;
use crate::chaos::workload;
use crate::daemon::{Daemon, faketime_library};

/// A daemon that ends by itself, for a store that refuses it, say, is started again after this.
const START_AGAIN_AFTER: Duration = Duration::from_millis(300);

pub(super) struct Fleet {
    members: Vec<Member>,
    generation: u32,
    keeps_locks: bool,
}

struct Member {
    name: String,
    url: String,
    daemon: Option<Daemon>,
    /// It is started again when it has ended.
    is_wanted: bool,
    /// How far its clock is off when it starts.
    clock: Option<String>,
    starts: u32,
    last_start: Instant,
}

impl Fleet {
    /// Starts a node for each url; their jobs hold locks where the store keeps some.
    pub(super) fn start(folder: &Folder, urls: Vec<String>, keeps_locks: bool) -> Self {
        let mut members = Vec::new();
        for (number, url) in urls.into_iter().enumerate() {
            let name = format!("n{}", number + 1);
            std::fs::write(folder.file(&format!("{name}.toml")), workload::file(0, keeps_locks)).unwrap();
            let last_start = Instant::now();
            let mut member = Member { name, url, daemon: None, is_wanted: true, clock: None, starts: 0, last_start };
            member.start(folder.path());
            // One after the other: each looks at every job at once when it starts, and a busy server drowns in all of them.
            member.daemon.as_ref().unwrap().is_in_touch();
            members.push(member);
        }
        Self { members, generation: 0, keeps_locks }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    pub(super) fn name(&self, node: usize) -> &str {
        &self.members[node].name
    }

    /// Starts again what has ended and is wanted.
    pub(super) fn tend(&mut self, folder: &Folder) {
        for member in &mut self.members {
            let runs = member.daemon.as_mut().is_some_and(Daemon::is_running);
            if !runs && member.is_wanted && member.last_start.elapsed() > START_AGAIN_AFTER {
                member.start(folder.path());
            }
        }
    }

    pub(super) fn kill(&mut self, node: usize) {
        let member = &mut self.members[node];
        member.is_wanted = false;
        member.daemon.iter_mut().for_each(Daemon::kill);
    }

    pub(super) fn freeze(&mut self, node: usize) {
        self.members[node].tell(Daemon::freeze);
    }

    pub(super) fn thaw(&mut self, node: usize) {
        self.members[node].tell(Daemon::thaw);
    }

    /// Asks it to leave.
    pub(super) fn drain(&mut self, node: usize) {
        self.members[node].is_wanted = false;
        self.members[node].tell(Daemon::terminate);
    }

    /// It is started (again) as soon as it has ended.
    pub(super) fn want(&mut self, node: usize) {
        self.members[node].is_wanted = true;
    }

    /// Asks it to leave, and starts it with a clock that is so far off.
    pub(super) fn set_clock(&mut self, node: usize, offset: Option<String>) {
        self.drain(node);
        self.members[node].clock = offset;
        self.want(node);
    }

    /// Changes its file and tells it so.
    pub(super) fn reload(&mut self, folder: &Folder, node: usize) {
        self.generation += 1;
        let name = format!("{}.toml", self.members[node].name);
        let fresh = folder.file(&format!("{name}.new"));
        std::fs::write(&fresh, workload::file(self.generation, self.keeps_locks)).unwrap();
        std::fs::rename(fresh, folder.file(&name)).unwrap();
        self.members[node].tell(Daemon::hang_up);
    }

    /// All nodes that run read a changed file again, and look at every slot anew. Their names.
    pub(super) fn look_anew(&mut self, folder: &Folder) -> Vec<String> {
        let runs = |member: &mut Member| member.daemon.as_mut().is_some_and(Daemon::is_running);
        let up: Vec<usize> = (0..self.members.len()).filter(|node| runs(&mut self.members[*node])).collect();
        up.iter().for_each(|node| self.reload(folder, *node));
        up.into_iter().map(|node| self.members[node].name.clone()).collect()
    }

    /// All nodes leave.
    pub(super) fn leave(&mut self) {
        (0..self.members.len()).for_each(|node| self.drain(node));
        for member in &mut self.members {
            if let Some(daemon) = &mut member.daemon {
                daemon.exits();
            }
        }
    }
}

impl Member {
    /// Signals its daemon, which may have ended by itself.
    fn tell(&mut self, signal: impl Fn(&Daemon)) {
        if let Some(daemon) = &mut self.daemon
            && daemon.is_running()
        {
            signal(daemon);
        }
    }

    fn start(&mut self, folder: &Path) {
        self.starts += 1;
        self.last_start = Instant::now();
        // A test that is killed leaves no node behind: the node's parent is the thread of the trial.
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            env!("CARGO_BIN_EXE_cronward"),
            "run",
            "--no-http",
            "--log-format",
            "json",
        ]);
        command.args(["--config", &format!("{}.toml", self.name), "--store", &self.url, "--node", &self.name]);
        command.args(["--journal", &format!("{}.jsonl", self.name)]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CRONWARD_LOG", "info,sqlx=warn,redis=warn");
        if let Some(offset) = &self.clock {
            command.env("LD_PRELOAD", faketime_library()).env("FAKETIME", offset);
            // Leases are judged by CLOCK_BOOTTIME, which goes on as it is.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        let log = folder.join("logs").join(format!("{}-{:03}.log", self.name, self.starts));
        self.daemon = Some(Daemon::spawn(command, &self.name, log));
    }
}
