//! A node of its own process whose master dies with writes that nobody else has.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use cronward::slot::{Slot, Verdict};
use cronward::store::Store;

use crate::redis_group::{SentinelGroup, until};
use crate::words::now;
use crate::{follows, open};

struct Node(Child);

impl Node {
    fn start(dir: &Path, name: &str, url: &str) -> Self {
        let file = dir.join(format!("{name}.toml"));
        let ran = dir.join("ran");
        let text = format!(
            "[node]\nname = \"{name}\"\n[store]\nurl = \"{url}\"\n[jobs.once]\nschedule = \"0 0 * * *\"\nperiod = \"day\"\n\
             command = [\"/bin/sh\", \"-c\", \"echo {name} >> {}\"]\n",
            ran.display()
        );
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(dir.join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.arg("run").arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_has_done_stays_done_where_a_failover_has_lost_it() {
    let dir = tempfile::tempdir().unwrap();
    let ran = || std::fs::read_to_string(dir.path().join("ran")).unwrap_or_default();
    let log = |name: &str| std::fs::read_to_string(dir.path().join(format!("{name}.log"))).unwrap_or_default();
    let mut group = SentinelGroup::start();
    group.cut_replication();
    let first = Node::start(dir.path(), "a", &group.url());
    let today = format!("{}T00Z", now().format("%Y-%m-%d"));
    let verdict = format!("cronward:default:{{once@{today}}}:log");
    until("the slot is done", || group.master.text(&["HGET", &verdict, "verdict"]).is_some());
    assert!(!follows(&group.replica), "the replica knows of it already");
    group.master.kill();
    group.wait_for_failover();
    until("the node has told it again", || group.replica.text(&["HGET", &verdict, "verdict"]).is_some());
    assert!(log("a").contains("done recorded again"), "{}", log("a"));

    let second = Node::start(dir.path(), "b", &group.url());
    until("the second node has looked", || group.replica.text(&["HGET", "cronward:default:nodes", "b"]).is_some());
    let store = open(&group.url()).await;
    let slot = Slot::parse("once", &today, &format!("{}T00Z", (now() + chrono::TimeDelta::days(1)).format("%Y-%m-%d")));
    let (_, records) = store.inspect(&[slot.unwrap()]).await.unwrap();
    assert_eq!(records[0].verdict.as_ref().map(|record| record.verdict), Some(Verdict::Done));
    assert_eq!(ran(), "a\n", "done once");
    drop((first, second));
}
