//! A lock that is lost while the command goes on: who is told of it, when, and by which name. And what operators see of an `exec` that
//! waits for locks.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cronward::job::NodeName;
use cronward::resource::{AcquireRequest, Demand, Demands};
use cronward::slot::Token;
use cronward::{StoreOptions, open_locks};
use rustix::process::Signal;

use crate::process::Killed;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::wait;

const STORE: &str = "sqlite:store.db";

/// A command that goes on until this file is there.
fn until(file: &str) -> String {
    format!("echo up; while ! test -e {file}; do sleep 0.02; done")
}

/// A program that is left running, and what it says on stderr, line by line.
struct Talking {
    child: Killed,
    told: mpsc::Receiver<String>,
}

impl Talking {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = lines_of(child.stderr.take().unwrap());
        Self { child: Killed(child), told }
    }

    /// Once its command runs.
    fn up(command: Command) -> Self {
        let mut talking = Self::start(command);
        let mut line = [0; 3];
        talking.child.0.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"up\n");
        talking
    }

    fn next(&self) -> String {
        wait::until("a word on stderr", || self.told.try_recv().ok())
    }

    fn ended(&mut self) -> (Option<i32>, Vec<String>) {
        let status = wait::until("its end", || self.child.0.try_wait().unwrap());
        (status.code(), self.told.iter().collect())
    }
}

fn lines_of(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    told
}

fn under(place: &Place, words: &[&str], script: &str) -> Command {
    place.command(&[words, &["--store", STORE, "--", "/bin/sh", "-c", script]].concat())
}

/// The next one in the queue of x, which the holder's loss lets in.
fn follower(place: &Place) -> Talking {
    let follower = Talking::start(under(place, &["lock", "x", "--node", "other"], &until("leave")));
    wait::until_true("somebody waits", || queue(place, "x").len() == 2);
    follower
}

/// The lock's queue, the holder first.
fn queue(place: &Place, lock: &str) -> Vec<serde_json::Value> {
    let listed = place.run(&["locks", lock, "--json", "--store", STORE]);
    serde_json::from_str::<serde_json::Value>(&listed.stdout).unwrap()["queue"].as_array().unwrap().clone()
}

/// Takes the lock from its holder. The holder stands still until the follower holds the lock: its next renewal comes after the
/// follower's grant on every machine, and its lease outlasts the pause.
fn take_away(place: &Place, holder: &Talking) {
    holder.child.signal(Signal::STOP);
    let held = queue(place, "x");
    let token = held[0]["token"].as_str().unwrap();
    let told = place.run(&["unlock", "--lock", "x", "--token", token, "--yes", "--store", STORE]);
    assert_eq!(told.code, 0, "{told:?}");
    wait::until_true("the follower holds the lock", || {
        queue(place, "x").first().is_some_and(|first| first["node"] == "other" && !first["fence"].is_null())
    });
    holder.child.signal(Signal::CONT);
}

#[test]
fn with_continue_a_loss_is_told_while_the_command_goes_on_and_who_left_since_is_named() {
    let place = Place::new();
    let words = ["lock", "x", "--ttl", "30s", "--on-lost", "continue"];
    let mut holder = Talking::up(under(&place, &words, &until("end")));
    let mut next = follower(&place);
    take_away(&place, &holder);
    let told = holder.next();
    let wanted =
        "cronward: x: the lock was lost; it is held by other (sh); the command goes on, and another holder may overlap";
    assert_eq!(told, wanted);
    place.write("leave", "");
    assert_eq!(next.ended().0, Some(0));
    assert!(queue(&place, "x").is_empty(), "the queue is empty as the command ends");
    place.write("end", "");
    let (code, told) = holder.ended();
    assert_eq!(code, Some(0));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("; since then it was held by other (sh); another holder may have overlapped"),
        "{told:?}"
    );
}

#[test]
fn an_exec_that_loses_a_lock_says_so_at_once_and_does_not_speak_of_its_lease() {
    let place = Place::new();
    let words = ["exec", "--job", "push", "--lock", "x", "--lease-ttl", "30s", "--on-lost", "continue"];
    let mut holder = Talking::up(under(&place, &words, &until("end")));
    let mut next = follower(&place);
    take_away(&place, &holder);
    let told = holder.next();
    assert!(told.starts_with("cronward: push@"), "{told}");
    let wanted =
        "the locks of attempt 1 (x) were lost to sh on node other: the command goes on, and another holder may overlap";
    assert!(told.ends_with(wanted), "{told}");
    place.write("end", "");
    let (code, told) = holder.ended();
    assert_eq!(code, Some(0));
    let wanted = "the locks of attempt 1 were lost or their renewal was overdue; since then held by sh on node other; another holder may have overlapped";
    assert!(told.iter().any(|line| line.ends_with(wanted)) && !told.concat().contains("lease"), "{told:?}");
    place.write("leave", "");
    assert_eq!(next.ended().0, Some(0));
}

/// `why` of a job that only an `exec` names.
fn why(place: &Place, job: &str) -> Ended {
    place.run(&["why", job, "--store", STORE])
}

#[test]
fn an_exec_that_waits_for_a_lock_is_known_to_operators_with_what_it_waits_for() {
    let place = Place::new();
    let _holder = Talking::up(under(&place, &["lock", "x"], &until("end")));
    let mut waits = Talking::start(under(&place, &["exec", "--job", "push", "--lock", "x"], "echo never"));
    // The queue says so at once, and the decision log a moment later.
    wait::until("why it does not run", || {
        let told = why(&place, "push").stdout;
        let is_known =
            told.contains("the slot waits for x") && told.contains("waits for x: 1 ahead; held by sh on node");
        is_known.then_some(())
    });
    assert_eq!(place.run(&["pause", "push", "--yes", "--store", STORE]).code, 0);
    assert_eq!(place.run(&["unlock", "push", "--yes", "--store", STORE]).code, 0);
    waits.child.0.kill().unwrap();
}

#[test]
fn an_exec_that_gave_up_on_a_lock_is_known_afterwards() {
    let place = Place::new();
    let _holder = Talking::up(under(&place, &["lock", "x"], &until("end")));
    let script = ["--store", STORE, "--", "/bin/echo", "never"];
    let told = place.run(&[&["exec", "--job", "push", "--lock", "x", "--no-wait"], &script[..]].concat());
    assert_eq!((told.code, &*told.stdout), (0, ""), "{told:?}");
    let told = why(&place, "push");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.contains("was given back"), "{told:?}");
}

/// One that holds the lock, and as many behind it as may stand there.
fn fill(url: &str, lock: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open_locks(url, StoreOptions::default()).await.unwrap();
        let demands: Demands = lock.parse::<Demand>().unwrap().into();
        for number in 1..=1_024 {
            let (token, node) = (Token::from_bits(number), NodeName::new("a").unwrap());
            let request = AcquireRequest::new(token, node, token, Duration::from_secs(600), demands.clone());
            store.acquire(&request).await.unwrap();
        }
    });
}

#[test]
fn a_lock_whose_queue_is_full_is_busy_for_whoever_does_not_wait() {
    let (place, server) = (Place::new(), RedisServer::start());
    fill(&server.url(), "x");
    let lock = |flags: &[&str]| {
        place.run(&[&["lock", "x", "--store", &server.url()], flags, &["--", "/bin/echo", "never"]].concat())
    };
    let told = lock(&["--try", "-E", "0"]);
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "", ""), "{told:?}");
    let told = lock(&["--try"]);
    let wanted = "cronward: x: the queue is full; the command was not started\n";
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (1, "", wanted));
    assert_eq!(lock(&[]).code, 75, "whoever would wait may try again later");
}

#[test]
fn a_watch_tells_that_a_lock_is_free_whose_store_lost_its_data() {
    let (place, server) = (Place::new(), RedisServer::start());
    let hold = ["lock", "x", "--ttl", "1d", "--store", &server.url(), "--", "/bin/sleep", "60"];
    let _holder = Killed(place.command(&hold).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut watch = place.command(&["locks", "--watch", "--interval", "50ms", "--store", &server.url()]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _watch = Killed(watch);
    let held = lines.find(|line| line.starts_with("x ")).unwrap();
    assert!(held.contains("1/1"), "{held}");
    server.command(&["FLUSHALL"]);
    let free = lines.next().unwrap();
    assert!(free.starts_with("x ") && free.contains(" 0 "), "{free}");
}
