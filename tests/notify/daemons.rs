//! Real daemons, whose jobs fail: one digest of a flood, and the kill of whoever sends.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

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

/// As a node says that it has nothing to tell.
const NONE_PENDING: &str = "cronward_notifications_oldest_pending_seconds{namespace=\"default\",sink=\"hook\"} 0\n";

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

struct Cluster {
    redis: RedisServer,
    folder: TempDir,
    daemons: Vec<Option<Daemon>>,
}

impl Cluster {
    fn start(file: &str) -> Self {
        let (redis, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("jobs.toml"), file).unwrap();
        let start = |name: &&str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
            command.args(["run", "--log-format", "json", "--listen", "127.0.0.1:0", "--node", name]);
            command.args(["--store", &redis.url()]);
            command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            command.stderr(File::create(folder.path().join(format!("{name}.log"))).unwrap());
            Some(Daemon(command.spawn().unwrap()))
        };
        let daemons = NODES.iter().map(start).collect();
        Self { redis, folder, daemons }
    }

    fn log(&self, name: &str) -> String {
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
        std::fs::write(self.folder.path().join("jobs.toml"), file).unwrap();
        for daemon in self.daemons.iter().flatten() {
            let pid = daemon.0.id().to_string();
            assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        }
    }

    /// No node has anything left that it may tell, by its own figures.
    fn has_told_all(&self) -> Option<()> {
        let none_is_pending = |name: &&str| {
            let figures = address(&self.log(name)).map(|address| figures(&address)).unwrap_or_default();
            figures.contains(NONE_PENDING)
        };
        NODES.iter().all(none_is_pending).then_some(())
    }
}

/// One that fires once a year, an hour ago for the last time: its slot is run as soon as a daemon is up, and none follows.
fn job(name: &str) -> String {
    let schedule = (chrono::Utc::now() - chrono::TimeDelta::hours(1)).format("0 %M %H %d %m *");
    format!(
        "[jobs.{name}]\nschedule = \"{schedule}\"\nslot = \"tick\"\ncommand = \"echo no space left; false\"\n\
         max_attempts = 1\nnotify = [\"hook\"]\n"
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
    let jobs: String = (0..12).map(|number| job(&format!("j{number}"))).collect();
    cluster.reload(&(sink(&receiver.url) + &jobs));
    until("the message", || (!receiver.got().is_empty()).then_some(()));
    let body: Value = receiver.got()[0].clone();
    assert_eq!((body["type"].as_str(), receiver.events().len()), (Some("digest"), 12), "{body}\n{}", cluster.logs());
    until("nobody has anything left to tell", || cluster.has_told_all());
    assert_eq!(receiver.got().len(), 1, "{}", cluster.logs());
}

#[test]
fn when_the_daemon_that_sends_is_killed_another_sends_within_a_minute() {
    let receiver = Receiver::start();
    receiver.hang(true);
    let mut cluster = Cluster::start(&(sink(&receiver.url) + &job("a")));
    let first = until("the first message", || receiver.got().first().cloned());
    let sender = first["data"]["node"].as_str().unwrap();
    let number: usize = sender.trim_start_matches('n').parse().unwrap();
    drop(cluster.daemons[number - 1].take());
    receiver.hang(false);
    let second = until("the message of another", || receiver.got().get(1).cloned());
    assert_eq!(second["id"], first["id"]);
    assert_ne!(second["data"]["node"], first["data"]["node"], "{}", cluster.logs());
    assert_eq!(second["data"]["output"], "no space left\n");
    assert_eq!(second["data"]["state"]["state"], "failed");
}
