//! The demo's cluster: a folder of its own with the store, and nodes that are processes of this very program. When it is
//! dropped, every process is gone, and the folder with it.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cli::demo::script::{EXPORTS, NODES, SPARED};
use crate::cli::failure::Failure;

/// A free port of this machine alone.
const ANY_PORT: &str = "127.0.0.1:0";
/// What the log says once it is known which.
const LISTENS: &str = "listens for HTTP";

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A folder and the nodes in it.
#[derive(Debug)]
pub(super) struct Cluster {
    folder: PathBuf,
    keep: bool,
    /// Whether each node serves the dashboard.
    web: bool,
    /// In the order of [`NODES`].
    pub(super) nodes: Vec<Node>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) journal: PathBuf,
    log: PathBuf,
    child: Child,
    /// It is to be gone: killed, or asked to leave.
    pub(super) ended: bool,
}

impl Cluster {
    /// Makes the folder, for its owner alone; `mark` is a word that no other folder has. It is removed in the end unless it
    /// is to be kept.
    pub(super) fn prepare(mark: &str, keep: bool, web: bool) -> Result<Self, Failure> {
        let name = format!("cronward-demo-{mark}");
        let make = |place: &Path| {
            let folder = place.join(&name);
            DirBuilder::new().mode(0o700).create(&folder).map(|()| folder)
        };
        // Nothing of it has to last: a slow disk is nothing to wait for, unless a folder is named.
        let in_memory = std::env::var_os("TMPDIR").is_none().then(|| make(Path::new(MEMORY)).ok()).flatten();
        let place = std::env::temp_dir();
        let folder = in_memory.map_or_else(|| make(&place), Ok);
        let refused = |error| machine(&format!("{}: {error}; name another folder with TMPDIR", place.display()));
        Ok(Self { folder: folder.map_err(refused)?, keep, web, nodes: Vec::new() })
    }

    /// Where everything is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The store's file.
    pub(super) fn store(&self) -> String {
        self.folder.join("store.db").display().to_string()
    }

    /// Starts the nodes with this file of jobs.
    pub(super) fn start(&mut self, jobs: &str) -> Result<(), Failure> {
        let refused = |error: io::Error| machine(&format!("cannot start a node: {error}"));
        std::fs::write(self.folder.join("jobs.toml"), jobs).map_err(refused)?;
        let program = std::env::current_exe().map_err(refused)?;
        for name in NODES {
            let node = Node::start(&program, name, &self.folder, self.web).map_err(refused)?;
            self.nodes.push(node);
        }
        Ok(())
    }

    /// kill -9.
    pub(super) fn kill(&mut self, name: &str) -> Result<(), Failure> {
        let Some(node) = self.nodes.iter_mut().find(|node| node.name == name) else { return Ok(()) };
        node.ended = true;
        node.end().map_err(|error| machine(&format!("cannot kill node {name}: {error}")))
    }

    /// Asks all that still run to leave.
    pub(super) fn dismiss(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.ended) {
            node.ended = true;
            let pid = i32::try_from(node.child.id()).unwrap_or(i32::MAX);
            // It may have ended by itself: then that is what was asked for.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Whether every node has ended.
    pub(super) fn is_gone(&mut self) -> bool {
        self.nodes.iter_mut().all(Node::has_ended)
    }

    /// Whether the nodes serve the dashboard.
    pub(super) const fn serves(&self) -> bool {
        self.web
    }

    /// Where each node that runs serves the dashboard; none until all of them do.
    pub(super) fn addresses(&self) -> Option<Vec<(&'static str, String)>> {
        let running = self.nodes.iter().filter(|node| !node.ended);
        running.map(|node| Some((node.name, node.address()?))).collect()
    }

    /// Why a node ended that was not to: the last word of its log.
    pub(super) fn lost(&mut self) -> Option<String> {
        let node = self.nodes.iter_mut().find_map(|node| (!node.ended && node.has_ended()).then_some(node))?;
        let log = std::fs::read_to_string(&node.log).unwrap_or_default();
        let last = log.lines().last().unwrap_or("and its log is empty");
        Some(format!("node {} ended by itself: {last}", node.name))
    }
}

impl Node {
    fn start(program: &Path, name: &'static str, folder: &Path, web: bool) -> io::Result<Self> {
        let [journal, log] = ["jsonl", "log"].map(|kind| folder.join(format!("{name}.{kind}")));
        let mut command = Command::new(program);
        command.args(["run", "--log-format", "pretty", "--node", name]);
        command.args(if web { &["--listen", ANY_PORT][..] } else { &["--no-http"] });
        command.arg("--config").arg(folder.join("jobs.toml")).arg("--journal").arg(&journal);
        // Whatever becomes of the demo, its nodes do not outlive it.
        command.args(["--parent", &std::process::id().to_string()]);
        command.env(EXPORTS, if web && name == SPARED { "no" } else { "yes" });
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        // A Ctrl-C is the demo's to answer, not theirs.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { name, journal, log, child: command.spawn()?, ended: false })
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it serves the dashboard, by its log.
    fn address(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        let line = log.lines().find(|line| line.contains(LISTENS))?;
        let (_, port) = line.split_once("127.0.0.1:")?;
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("http://127.0.0.1:{port}/"))
    }

    fn has_ended(&mut self) -> bool {
        // One that cannot be asked about is no longer ours.
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    /// Kills it and takes its end, so that no process is left. What it runs goes with it: its keepers see to that.
    fn end(&mut self) -> io::Result<()> {
        if !self.has_ended() {
            self.child.kill()?;
            self.child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.end();
        }
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn machine(what: &str) -> Failure {
    Failure::Internal(what.to_owned())
}
