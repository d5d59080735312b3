//! The programs beside the jobs: `cronward lock` processes on the same store, each started again when it has ended.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::json;

use super::fault::OutsiderFault;
use super::folder::Folder;
use super::workload;
use crate::daemon::Daemon;

/// From its end to its next start.
const PAUSE: Duration = Duration::from_millis(700);

pub(super) struct Outsiders {
    members: Vec<Member>,
    /// What came of each process.
    ends: File,
}

struct Member {
    outsider: &'static workload::Outsider,
    url: String,
    /// Fresh for each process.
    number: u32,
    process: Option<Daemon>,
    ended: Instant,
}

/// One process to be struck.
pub(super) struct Struck {
    /// What the faults file calls it.
    pub(super) target: String,
    pub(super) process: Pid,
}

impl Outsiders {
    /// One for each url that is given, as far as there are any.
    pub(super) fn new(folder: &Folder, urls: Vec<String>) -> Self {
        let member = |(outsider, url)| Member { outsider, url, number: 0, process: None, ended: Instant::now() };
        let ends = OpenOptions::new().create(true).append(true).open(folder.file("outsiders.jsonl")).unwrap();
        Self { members: workload::OUTSIDERS.iter().zip(urls).map(member).collect(), ends }
    }

    /// Starts again what has ended.
    pub(super) fn tend(&mut self, folder: &Folder) {
        for member in &mut self.members {
            if member.process.as_mut().is_some_and(|process| !process.is_running()) {
                member.note_end(&mut self.ends);
            }
            if member.process.is_none() && member.ended.elapsed() > PAUSE {
                member.start(folder);
            }
        }
    }

    /// Whom a fault strikes; nobody when it is not there.
    pub(super) fn struck(&mut self, fault: OutsiderFault, pick: u64) -> Option<Struck> {
        let count = self.members.len();
        let member = self.members.get_mut(usize::try_from(pick).ok()?.checked_rem(count)?)?;
        let (name, number) = (member.outsider.name, member.number);
        let process = member.process.as_mut()?;
        let process = process.is_running().then(|| process.pid())?;
        Some(match fault {
            OutsiderFault::Kill | OutsiderFault::Stop => Struck { target: format!("{name}@{number}"), process },
            OutsiderFault::KillKeeper | OutsiderFault::StopKeeper => {
                Struck { target: keeper_of(&format!("{name}@{number}")), process: child_of(process)? }
            }
        })
    }

    /// All are asked to end, and have ended.
    pub(super) fn leave(&mut self) {
        for process in self.members.iter_mut().filter_map(|member| member.process.as_mut()) {
            if process.is_running() {
                process.terminate();
            }
        }
        for member in &mut self.members {
            member.process.iter_mut().for_each(|process| {
                process.exits();
            });
            member.note_end(&mut self.ends);
        }
    }
}

/// What the faults file calls the process that keeps the command of another.
pub(super) fn keeper_of(target: &str) -> String {
    format!("{target}/keeper")
}

fn child_of(process: Pid) -> Option<Pid> {
    let process = process.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    Pid::from_raw(children.split(' ').next()?.parse().ok()?)
}

impl Member {
    fn start(&mut self, folder: &Folder) {
        self.number += 1;
        let (workload::Outsider { name, words, nap }, number) = (self.outsider, self.number.to_string());
        // A test that is killed leaves nobody behind, as for the nodes.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_cronward"), "lock"]).args(*words);
        command.args(["--config", "outside.toml", "--node", name, "--store", &self.url]);
        command.args(["--", "/bin/bash", "./work.sh", nap, "as", name, &number]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let log = folder.path().join("logs").join(format!("{name}-{:03}.log", self.number));
        self.process = Some(Daemon::spawn(command, name, log));
    }

    fn note_end(&mut self, ends: &mut File) {
        let Some(mut process) = self.process.take() else { return };
        let code = process.exits().code();
        let line =
            json!({ "who": format!("{}@{}", self.outsider.name, self.number), "code": code, "said": process.text() });
        writeln!(ends, "{line}").unwrap();
        self.ended = Instant::now();
    }
}
