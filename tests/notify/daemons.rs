//! Real daemons, whose jobs fail: one digest of a flood, and the kill of whoever sends.

use std::fs::File;
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

struct Cluster {
    _redis: RedisServer,
    folder: TempDir,
    daemons: Vec<Option<Daemon>>,
}

impl Cluster {
    fn start(file: &str) -> Self {
        let (redis, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("jobs.toml"), file).unwrap();
        let start = |name: &&str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
            command.args(["run", "--log-format", "json", "--no-http", "--node", name, "--store", &redis.url()]);
            command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            command.stderr(File::create(folder.path().join(format!("{name}.log"))).unwrap());
            Some(Daemon(command.spawn().unwrap()))
        };
        let daemons = ["n1", "n2", "n3"].iter().map(start).collect();
        Self { _redis: redis, folder, daemons }
    }

    fn logs(&self) -> String {
        let read =
            |name: &str| std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
        ["n1", "n2", "n3"].map(read).concat()
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
    format!("[notify.hook]\ntype = \"webhook\"\nurl = \"{url}\"\nspread = \"12s\"\n")
}

#[test]
fn twelve_slots_that_fail_at_once_are_one_message() {
    let receiver = Receiver::start();
    let jobs: String = (0..12).map(|number| job(&format!("j{number}"))).collect();
    let cluster = Cluster::start(&(sink(&receiver.url) + &jobs));
    until("the message", || (!receiver.got().is_empty()).then_some(()));
    let body: Value = receiver.got()[0].clone();
    assert_eq!((body["type"].as_str(), receiver.events().len()), (Some("digest"), 12), "{body}\n{}", cluster.logs());
    std::thread::sleep(std::time::Duration::from_secs(15));
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
