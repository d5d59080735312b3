//! Jobs that name locks, on each store that keeps them: somebody else holds the lock until the trial says so, and the nodes wait for it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cronward::slot::SlotKey;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::place::Place;
use crate::shared_store::SharedStore;
use crate::{jobs, recorder, wait};

/// Whoever holds the lock `db`, until told to go.
struct Stranger<'a> {
    place: &'a Place,
    command: Child,
}

impl<'a> Stranger<'a> {
    fn holding(place: &'a Place, store: &SharedStore) -> Self {
        let command = "touch held; until [ -e go ]; do sleep 0.05; done";
        let command = Command::new(env!("CARGO_BIN_EXE_cronward"))
            .args([
                "lock",
                "db",
                "--node",
                "stranger",
                "--config",
                "jobs.toml",
                "--store",
                store.url(),
                "--",
                "/bin/sh",
                "-c",
                command,
            ])
            .current_dir(place.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait::until_true("the stranger holds the lock", || place.file("held").exists());
        Self { place, command }
    }

    fn goes(mut self) {
        std::fs::write(self.place.file("go"), "").unwrap();
        let ended = wait::until("the stranger's end", || self.command.try_wait().unwrap());
        assert!(ended.success(), "{ended:?}");
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// A file with these jobs. No call of a command fails because the machine is slow.
fn file(jobs: &str) -> String {
    jobs::file(&format!("[store]\nop_timeout = \"10s\"\n{jobs}"))
}

/// A recorded job that names `db`, with one slot. Its lease outlasts every pause of a busy machine.
fn locking(name: &str, seconds: f64) -> String {
    format!("{}lease_ttl = \"60s\"\n", locking_briefly(name, seconds))
}

/// The same with the short lease of the trials, for a trial in which a lease has to expire.
fn locking_briefly(name: &str, seconds: f64) -> String {
    format!("{}locks = [\"db\"]\n", jobs::recorded(name, &jobs::one_slot(wait::SOON), seconds, 0))
}

/// How many of these lines there are is waited for.
fn says_again(node: &Daemon, message: &str, times: usize) {
    wait::until_true(&format!("{} says {message:?} {times} times", node.name), || node.said(message).len() >= times);
}

/// The node that waits for its locks first, and the other.
fn waiting_first(nodes: [Daemon; 2]) -> (Daemon, Daemon) {
    let [a, b] = nodes;
    let is_a = wait::until("one of them waits for the lock", || {
        let waits = [&a, &b].map(|node| !node.said("waiting for locks").is_empty());
        waits.contains(&true).then_some(waits[0])
    });
    if is_a { (a, b) } else { (b, a) }
}

/// Everybody who stands in the queue, by node.
fn queue(place: &Place, store: &SharedStore) -> Vec<String> {
    let lock = place.json(&["locks", "db"], store.url());
    let entries = lock["queue"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| entry["node"].as_str().unwrap().to_owned()).collect()
}

/// The one slot of a job, once it is done.
fn done(place: &Place, store: &SharedStore, job: &str) -> Value {
    wait::until(&format!("the slot of {job} is done"), || {
        let told = place.json(&["attempts", "--all", "--job", job], store.url());
        (told[0]["state"] == "done").then(|| told[0].clone())
    })
}

fn numbers(slot: &Value) -> [Option<u64>; 2] {
    ["attempts", "forgiven"].map(|field| slot[field].as_u64())
}

pub(super) fn two_jobs_that_name_one_lock_run_one_after_the_other(place: &Place, store: &SharedStore) {
    place.jobs(&file(&format!("{}{}", locking("one", 1.0), locking("two", 1.0))));
    let _nodes = place.nodes(["a", "b"], store.url());
    let slots = ["one", "two"].map(|job| done(place, store, job));
    assert_eq!(slots.each_ref().map(numbers), [[Some(1), Some(0)]; 2]);
    let runs = place.runs();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[0].end_ms.is_some_and(|end| end <= runs[1].start_ms), "{runs:?}");
    wait::until_true("the queue is empty", || queue(place, store).is_empty());
}

pub(super) fn a_slot_that_only_waited_is_missed_uses_no_attempt_and_says_why(place: &Place, store: &SharedStore) {
    let job = format!("{}locks = [\"db\"]\n", jobs::recorded("work", &jobs::every(4), 0.1, 0));
    place.jobs(&file(&job));
    let stranger = Stranger::holding(place, store);
    // A slot that is claimed just before its end is over before it has asked for its lock.
    wait::early_in_a_slot(4_000);
    let [node] = place.nodes(["a"], store.url());
    let ended = "the slot ended while it waited for db";
    let slot =
        node.says_with("not started: giving the attempt back", "why", ended)["slot"].as_str().unwrap().to_owned();
    let why = wait::until("the verdict is told, and why", || {
        let why = place.json(&["why", &format!("work@{slot}")], store.url());
        let noted = |word: &str| why["decisions"].as_array().unwrap().iter().any(|entry| entry["what"] == word);
        (noted("verdict") && noted("lock_waiting") && noted("lock_left")).then_some(why)
    });
    let told = place.json(&["show", &format!("work@{slot}")], store.url());
    assert_eq!((told["state"].as_str(), numbers(&told)), (Some("missed"), [Some(0), Some(1)]), "{told:#}\n{why:#}");
    assert_eq!(place.runs().len(), 0, "nothing ran without the lock");
    stranger.goes();
    place.end_of_run(1);
}

pub(super) fn whoever_drains_while_it_waits_leaves_the_slot_and_its_attempt_to_another(
    place: &Place,
    store: &SharedStore,
) {
    place.jobs(&file(&locking("work", 0.1)));
    let stranger = Stranger::holding(place, store);
    let (mut leaving, other) = waiting_first(place.nodes(["a", "b"], store.url()));
    leaving.terminate();
    assert_eq!(leaving.exits().code(), Some(0));
    other.says("waiting for locks");
    assert!(!queue(place, store).contains(&leaving.name), "it has left the queue");
    assert_eq!(place.runs().len(), 0);
    stranger.goes();
    let run = place.end_of_run(1);
    assert_eq!((run.attempt, &run.node), (2, &other.name));
    assert_eq!(numbers(&done(place, store, "work")), [Some(1), Some(1)]);
}

pub(super) fn a_pause_and_a_changed_job_end_the_wait_and_the_slot_comes_back(place: &Place, store: &SharedStore) {
    let job = locking("work", 0.1);
    place.jobs(&file(&job));
    let stranger = Stranger::holding(place, store);
    let [node] = place.nodes(["a"], store.url());
    node.says("waiting for locks");
    assert_eq!(place.cronward(&["pause", "work", "--yes", "--store", store.url()]).code, 0);
    node.says_with("not started: giving the attempt back", "why", "the job was paused while it waited for db");
    wait::until_true("it has left the queue", || queue(place, store) == ["stranger"]);
    assert_eq!(place.cronward(&["resume", "work", "--yes", "--store", store.url()]).code, 0);
    says_again(&node, "waiting for locks", 2);
    let changed = job.replace("\"0.1\"", "\"0.2\"");
    assert_ne!(changed, job);
    place.jobs(&file(&changed));
    node.hang_up();
    let why = "this node gave it up while it waited for db";
    node.says_with("not started: giving the attempt back", "why", why);
    says_again(&node, "waiting for locks", 3);
    assert_eq!(place.runs().len(), 0);
    stranger.goes();
    assert_eq!(place.end_of_run(1).attempt, 3);
    assert_eq!(numbers(&done(place, store, "work")), [Some(1), Some(2)]);
    wait::until_true("the queue is empty", || queue(place, store).is_empty());
}

pub(super) fn the_place_of_a_node_that_dies_while_it_waits_is_another_nodes_in_a_second_attempt(
    place: &Place,
    store: &SharedStore,
) {
    place.jobs(&file(&locking_briefly("work", 0.1)));
    let stranger = Stranger::holding(place, store);
    let (mut dying, other) = waiting_first(place.nodes(["a", "b"], store.url()));
    dying.kill();
    other.says("waiting for locks");
    wait::let_pass(Duration::from_millis(200));
    assert_eq!(place.runs().len(), 0, "the stranger holds the lock");
    stranger.goes();
    let run = place.end_of_run(1);
    assert_eq!((run.attempt, &run.node), (2, &other.name));
    assert_eq!(numbers(&done(place, store, "work")), [Some(2), Some(0)], "as after any crash");
}

pub(super) fn the_timeout_counts_from_the_start_of_the_command(place: &Place, store: &SharedStore) {
    let recorded = locking("work", 0.1);
    let job = recorded.replace("[\"/bin/sh\", \"record.sh\"", "[\"/bin/sh\", \"deadline.sh\"");
    assert_ne!(job, recorded);
    place.write("deadline.sh", "echo $CRONWARD_DEADLINE >deadline; exec /bin/sh record.sh \"$@\"\n");
    place.jobs(&file(&job));
    let stranger = Stranger::holding(place, store);
    let [node] = place.nodes(["a"], store.url());
    node.says("waiting for locks");
    let freed_ms = wait::now_ms();
    stranger.goes();
    let run = place.end_of_run(1);
    let told = std::fs::read_to_string(place.file("deadline")).unwrap();
    let deadline = chrono::DateTime::parse_from_rfc3339(told.trim()).unwrap().timestamp_millis();
    let timeout_ms = 300_000;
    assert!((freed_ms..=run.start_ms).contains(&(deadline - timeout_ms)), "{freed_ms} {deadline} {run:?}");
    assert_eq!(numbers(&done(place, store, "work")), [Some(1), Some(0)]);
}

pub(super) fn a_lock_is_free_while_its_job_waits_for_a_retry(place: &Place, store: &SharedStore) {
    let fails = jobs::recorded("work", &jobs::one_slot(wait::SOON), 0.1, 1);
    place.jobs(&file(&format!("{fails}locks = [\"db\"]\nretry_delay = \"10m\"\n")));
    let [node] = place.nodes(["a"], store.url());
    let slot = node.says("run ended")["slot"].as_str().unwrap().to_owned();
    // It never would, were the lock kept until the retry.
    let stranger = Stranger::holding(place, store);
    assert_eq!(queue(place, store), ["stranger"]);
    assert_eq!(numbers(&place.json(&["show", &format!("work@{slot}")], store.url())), [Some(1), Some(0)]);
    assert_eq!(place.cronward(&["reset", &format!("work@{slot}"), "--yes", "--store", store.url()]).code, 0);
    node.says("waiting for locks");
    assert_eq!(place.runs().len(), 1, "the next attempt asks anew");
    stranger.goes();
    place.end_of_run(2);
}

pub(super) fn a_slot_that_waits_for_the_one_before_it_asks_for_no_lock(place: &Place, store: &SharedStore) {
    let when = jobs::every(10);
    let command = "until [ -e go ]; do sleep 0.05; done; exec /bin/sh record.sh 0.1";
    place.jobs(&file(&format!("[jobs.work]\n{when}\ncommand = \"{command}\"\nlocks = [\"db\"]\n")));
    let [node] = place.nodes(["a"], store.url());
    let first = node.says("run started");
    let second_ms = recorder::start_ms(&first["slot"]) + 10_000;
    let second = SlotKey::of(chrono::DateTime::from_timestamp_millis(second_ms).unwrap()).unwrap();
    wait::until_true("the second slot found the first one running", || {
        let why = place.json(&["why", &format!("work@{second}")], store.url());
        why["decisions"].as_array().unwrap().iter().any(|entry| entry["what"] == "blocked")
    });
    assert_eq!(queue(place, store), ["a"], "of the first slot alone");
    std::fs::write(place.file("go"), "").unwrap();
    place.end_of_run(2);
    let runs = place.runs();
    assert!(runs[0].end_ms.is_some_and(|end| end <= runs[1].start_ms), "{runs:?}");
}
