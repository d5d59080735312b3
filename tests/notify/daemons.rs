//! Real daemons, whose jobs fail: one digest of a flood, and the kill of whoever sends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cronward::config::{Environment, parse};
use cronward::store::{JobEntry, StoreOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::receiver::Receiver;
use crate::support::redis_server::RedisServer;
use crate::until;

/// A daemon; killed when dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// As a node says that it has nothing to tell a sink.
fn none_pending(sink: &str) -> String {
    format!("cronward_notifications_oldest_pending_seconds{{namespace=\"default\",sink=\"{sink}\"}} 0\n")
}

/// Where a node serves its figures, once its log says so.
fn address(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains("listens for HTTP"))?;
    let told: Value = serde_json::from_str(line).ok()?;
    Some(told["fields"]["address"].as_str().or(told["address"].as_str())?.to_owned())
}

/// What it serves; nothing where it does not answer.
fn figures(address: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        let _ = write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// Daemons over one Redis, each with a file of its own.
pub(crate) struct Cluster {
    pub(crate) redis: RedisServer,
    folder: TempDir,
    daemons: BTreeMap<String, Daemon>,
}

impl Cluster {
    pub(crate) fn empty() -> Self {
        Self { redis: RedisServer::start(), folder: tempfile::tempdir().unwrap(), daemons: BTreeMap::new() }
    }

    fn start(file: &str) -> Self {
        let mut cluster = Self::empty();
        cluster.make_known(file);
        NODES.iter().for_each(|name| cluster.join(name, file));
        cluster
    }

    /// Registers the jobs of a file as known since yesterday: a job that is new owes nothing from before.
    pub(crate) fn make_known(&self, file: &str) {
        let now = chrono::Utc::now();
        let (config, _) = parse("jobs.toml", file.to_owned(), &Environment::new(now)).unwrap();
        let since = now - chrono::TimeDelta::days(1);
        let entries: Vec<JobEntry> = config.jobs.values().map(|spec| JobEntry::of(spec, since)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = cronward::store::open(&self.redis.url(), StoreOptions::default()).await.unwrap();
            store.register(&entries).await.unwrap();
        });
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.toml"))
    }

    pub(crate) fn join(&mut self, name: &str, file: &str) {
        std::fs::write(self.file(name), file).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(["run", "--log-format", "json", "--listen", "127.0.0.1:0", "--node", name]);
        command.args(["--store", &self.redis.url()]).arg("--config").arg(self.file(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.stderr(File::create(self.folder.path().join(format!("{name}.log"))).unwrap());
        self.daemons.insert(name.to_owned(), Daemon(command.spawn().unwrap()));
    }

    /// At once, as `kill -9`.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.daemons.remove(name).unwrap());
    }

    /// Those that live.
    pub(crate) fn names(&self) -> Vec<String> {
        self.daemons.keys().cloned().collect()
    }

    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    fn logs(&self) -> String {
        NODES.map(|name| self.log(name)).concat()
    }

    /// All nodes hear what the store tells, so that each learns at once of whatever another one does.
    fn hears(&self) -> Option<()> {
        let listeners = self.redis.text(&["CLIENT", "LIST", "TYPE", "pubsub"]).unwrap_or_default();
        let reached = NODES.iter().all(|name| self.log(name).contains("store reached"));
        (reached && listeners.lines().count() >= NODES.len()).then_some(())
    }

    /// Gives all nodes another file.
    fn reload(&self, file: &str) {
        for (name, daemon) in &self.daemons {
            std::fs::write(self.file(name), file).unwrap();
            let pid = daemon.0.id().to_string();
            assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        }
    }

    /// No node has anything left that it may tell these sinks, by its own figures.
    pub(crate) fn has_told_all(&self, sinks: &[&str]) -> Option<()> {
        let none_is_pending = |name: &String| {
            let figures = address(&self.log(name)).map(|address| figures(&address)).unwrap_or_default();
            sinks.iter().all(|sink| figures.contains(&none_pending(sink)))
        };
        self.daemons.keys().all(none_is_pending).then_some(())
    }
}

/// One that fires once a year, an hour ago for the last time: the slot of a known job is run as soon as a daemon is up, and none follows.
pub(crate) fn job(name: &str, sinks: &[&str]) -> String {
    let schedule = (chrono::Utc::now() - chrono::TimeDelta::hours(1)).format("0 %M %H %d %m *");
    format!(
        "[jobs.{name}]\nschedule = \"{schedule}\"\nslot = \"tick\"\ncommand = \"echo no space left; false\"\n\
         max_attempts = 1\nnotify = {sinks:?}\n"
    )
}

fn sink(url: &str) -> String {
    format!("[notify.hook]\ntype = \"webhook\"\nurl = \"{url}\"\nspread = \"24s\"\n")
}

#[test]
fn twelve_slots_that_fail_at_once_are_one_message() {
    let receiver = Receiver::start();
    let cluster = Cluster::start(&sink(&receiver.url));
    until("all nodes hear", || cluster.hears());
    let jobs: String = (0..12).map(|number| job(&format!("j{number}"), &["hook"])).collect();
    let file = sink(&receiver.url) + &jobs;
    cluster.make_known(&file);
    cluster.reload(&file);
    until("the message", || (!receiver.got().is_empty()).then_some(()));
    let body: Value = receiver.got()[0].clone();
    assert_eq!((body["type"].as_str(), receiver.events().len()), (Some("digest"), 12), "{body}\n{}", cluster.logs());
    until("nobody has anything left to tell", || cluster.has_told_all(&["hook"]));
    assert_eq!(receiver.got().len(), 1, "{}", cluster.logs());
}

#[test]
fn when_the_daemon_that_sends_is_killed_another_sends_within_a_minute() {
    let receiver = Receiver::start();
    receiver.hang(true);
    let mut cluster = Cluster::start(&(sink(&receiver.url) + &job("a", &["hook"])));
    let first = until("the first message", || receiver.got().first().cloned());
    let sender = first["data"]["node"].as_str().unwrap();
    cluster.kill(sender);
    receiver.hang(false);
    let second = until("the message of another", || receiver.got().get(1).cloned());
    assert_eq!(second["id"], first["id"]);
    assert_ne!(second["data"]["node"], first["data"]["node"], "{}", cluster.logs());
    assert_eq!(second["data"]["output"], "no space left\n");
    assert_eq!(second["data"]["state"]["state"], "failed");
}
