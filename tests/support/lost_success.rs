//! Nodes of their own processes whose master dies with writes that nobody else has: what a living node knows it tells again,
//! and what only a dead one knew is done once more, and explained.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chrono::{DateTime, DurationRound, TimeDelta, Timelike, Utc};
use cronward::slot::{Slot, SlotKey, Verdict};
use cronward::store::Store;

use super::open;
use crate::redis_group::{PATIENCE, follows, until};
use crate::redis_server::RedisServer;
use crate::words::now;

/// A master and the replica that takes over from it, with whatever makes it do so.
pub trait Failover {
    /// Of the store.
    fn url(&self) -> String;

    /// Who keeps the job `once` now.
    fn master(&self) -> &RedisServer;

    /// Who keeps it afterwards.
    fn replica(&self) -> &RedisServer;

    /// The replica gets nothing more.
    fn cut_replication(&self);

    /// The master dies; waits until its replica has taken over.
    fn fail_over(&mut self);

    /// The log of a slot of the job `once`.
    fn log_of(&self, slot: &str) -> String;
}

struct Node(Child);

impl Node {
    fn start(dir: &Path, name: &str, url: &str) -> Self {
        Self::start_with(dir, name, url, "schedule = \"* * * * * *\"\nslot = \"day\"", "")
    }

    /// With another schedule; `said` is what the command writes after the node's name.
    fn start_with(dir: &Path, name: &str, url: &str, schedule: &str, said: &str) -> Self {
        let file = dir.join(format!("{name}.toml"));
        let (ran, journal) = (dir.join("ran"), journal(dir, name));
        let text = format!(
            "[node]\nname = \"{name}\"\njournal = {journal:?}\n[store]\nurl = \"{url}\"\n[jobs.once]\n{schedule}\n\
             command = [\"/bin/sh\", \"-c\", \"echo {name}{said} >> {}\"]\n",
            ran.display()
        );
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(dir.join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.arg("run").arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().unwrap())
    }
}

fn journal(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.jsonl"))
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A success that was lost is told again by the node that has done it.
pub async fn what_a_node_has_done_stays_done(mut group: impl Failover) {
    let dir = tempfile::tempdir().unwrap();
    let ran = || std::fs::read_to_string(dir.path().join("ran")).unwrap_or_default();
    let log = |name: &str| std::fs::read_to_string(dir.path().join(format!("{name}.log"))).unwrap_or_default();
    group.cut_replication();
    let first = Node::start(dir.path(), "a", &group.url());
    let today = format!("{}T00Z", now().format("%Y-%m-%d"));
    let key = group.log_of(&today);
    until("the slot is done", || group.master().text(&["HGET", &key, "verdict"]).is_some());
    let told = || std::fs::read_to_string(journal(dir.path(), "a")).unwrap_or_default();
    until("the node knows that it is", || told().contains("\"event\":\"settled\""));
    assert!(!follows(group.replica()), "the replica knows of it already");
    group.fail_over();
    until("the node has told it again", || group.replica().text(&["HGET", &key, "verdict"]).is_some());
    until("the node says so", || log("a").contains("done recorded again"));

    let store = open(&group.url()).await;
    let second = Node::start(dir.path(), "b", &group.url());
    eventually_lists(&store, "b").await;
    let slot = Slot::parse("once", &today, &format!("{}T00Z", (now() + TimeDelta::days(1)).format("%Y-%m-%d")));
    let (_, records) = store.inspect(&[slot.unwrap()]).await.unwrap();
    assert_eq!(records[0].verdict.as_ref().map(|record| record.verdict), Some(Verdict::Done));
    assert_eq!(ran(), "a\n", "done once");
    drop((first, second));
}

/// Waits until a node has looked: it says that it is there only after it has.
#[allow(clippy::disallowed_methods, reason = "real servers: there is no signal to wait for but their answers")]
async fn eventually_lists(store: &impl Store, name: &str) {
    let listed = async {
        while !store.nodes().await.is_ok_and(|(_, nodes)| nodes.iter().any(|node| node.report.name.as_str() == name)) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("the node is listed");
}

/// Two ticks a minute, the first of them some seconds ahead: its slot lasts for 40 s. Answers the schedule, too, and its start.
fn next_slot() -> (String, DateTime<Utc>) {
    let starts = now().duration_trunc(TimeDelta::seconds(1)).unwrap() + TimeDelta::seconds(15);
    let ends = starts + TimeDelta::seconds(40);
    (format!("schedule = \"{},{} * * * * *\"\nslot = \"tick\"", starts.second(), ends.second()), starts)
}

/// The offset that stands behind these words in what a master says of its replication; 0 where they are not there.
fn replicated(master: &RedisServer, words: &str) -> u64 {
    let info = master.text(&["INFO", "replication"]).unwrap_or_default();
    let digits = info.split_once(words).map_or("", |(_, rest)| rest);
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

/// Whether the registry has the job `once`.
fn lists_once(url: &str) -> bool {
    let listed =
        Command::new(env!("CARGO_BIN_EXE_cronward")).args(["jobs", "--json", "--store", url]).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).contains("\"once\"")
}

/// `cronward verify` of these journals: whether each slot was once or explained, and its report.
fn verified(dir: &Path, faults: &str) -> (bool, String) {
    let file = dir.join("faults.jsonl");
    std::fs::write(&file, faults).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
    command.arg("verify").args(["a", "b", "c"].map(|name| journal(dir, name))).arg("--faults").arg(&file);
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The only node that knew of a success dies together with the master that had not passed it on. Nobody can know of it any more:
/// it is repeated once, and nothing but the failover explains that.
pub fn what_only_the_dead_knew_is_done_once_more(mut group: impl Failover) {
    let dir = tempfile::tempdir().unwrap();
    let (schedule, starts) = next_slot();
    let key = SlotKey::of(starts).unwrap().to_string();
    let url = group.url();
    let start = |name: &str| Node::start_with(dir.path(), name, &url, &schedule, " $CRONWARD_SLOT");
    let ran = || {
        let text = std::fs::read_to_string(dir.path().join("ran")).unwrap_or_default();
        text.lines().filter(|line| line.ends_with(&key)).map(|line| line[..1].to_owned()).collect::<Vec<_>>()
    };
    let first = start("a");
    // A job that the store has forgotten is a new one, and owes nothing from before.
    until("the job is registered", || lists_once(&url));
    let written = replicated(group.master(), "master_repl_offset:");
    until("the replica has the registry", || replicated(group.master(), ",offset=") >= written);
    group.cut_replication();
    let told = |name: &str, event: &str| {
        let text = std::fs::read_to_string(journal(dir.path(), name)).unwrap_or_default();
        text.lines().filter(|line| line.contains(event) && line.contains(&format!("\"slot\":\"{key}\""))).count()
    };
    until("the slot is done", || told("a", "\"event\":\"settled\"") == 1);
    assert!(!follows(group.replica()), "the replica knows of it already");
    drop(first);
    let fault = |kind: &str, target: &str| {
        format!("{{\"at\":{:?},\"kind\":\"{kind}\",\"target\":\"{target}\"}}\n", now().to_rfc3339())
    };
    let (killed, failed_over) = (fault("kill", "a"), fault("failover", "store"));
    group.fail_over();
    let others = [start("b"), start("c")];
    until("another node has done it again", || {
        told("b", "\"event\":\"settled\"") + told("c", "\"event\":\"settled\"") > 0
    });
    let ends = starts + TimeDelta::seconds(40);
    until("the slot is over, and the next one is there", || {
        now() > ends && ["b", "c"].iter().all(|name| has_told_something(dir.path(), name, ends))
    });
    drop(others);

    let ran = ran();
    assert_eq!((ran.len(), ran[0].as_str()), (2, "a"), "once more, and not twice: {ran:?}");
    let (all_is_explained, report) = verified(dir.path(), &format!("{killed}{failed_over}"));
    assert!(all_is_explained, "{report}");
    let (all_is_explained, report) = verified(dir.path(), &killed);
    assert!(!all_is_explained && report.contains(&key), "the death of the node explains no repeat: {report}");
}

/// Whether a node has told anything after this.
fn has_told_something(dir: &Path, name: &str, after: DateTime<Utc>) -> bool {
    let text = std::fs::read_to_string(journal(dir, name)).unwrap_or_default();
    let last = text.lines().rev().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let at = last.and_then(|line| DateTime::parse_from_rfc3339(line["at"].as_str()?).ok());
    at.is_some_and(|at| at > after)
}
