//! `cronward lock` and `cronward locks` on a server: one that is away, one whose password changes, one that is nobody else's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::process::Killed;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::wait;

#[test]
fn a_store_that_never_answered_is_no_busy_lock() {
    let place = Place::new();
    for flags in [&[][..], &["-E", "0"]] {
        let words = ["lock", "a", "--store", "redis://127.0.0.1:1", "--wait", "500ms"];
        let told = place.run(&[&words[..], flags, &["--", "/bin/echo", "never"]].concat());
        assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (75, "", 1), "{told:?}");
        assert!(told.stderr.contains("redis://127.0.0.1:1: acquire: "), "{told:?}");
    }
}

#[test]
fn a_store_that_no_other_process_shares_guards_nothing_and_is_refused() {
    let place = Place::with_jobs("[store]\nurl = \"memory:\"\n");
    let told = "store memory is this process's own and guards against no other: name a store that others share";
    for verb in [&["lock", "x"][..], &["exec", "--job", "push"]] {
        for (store, code) in [(&["--store", "memory:"][..], 64), (&["--config", "jobs.toml"], 78)] {
            let refused: Ended = place.run(&[verb, store, &["--", "/bin/echo", "never"]].concat());
            assert_eq!((refused.code, &*refused.stdout), (code, ""), "{refused:?}");
            assert_eq!(refused.stderr, format!("error: {told}\n"));
        }
    }
}

/// An empty list would say that nobody holds a lock.
#[test]
fn the_locks_of_a_store_that_no_other_process_shares_are_not_listed_or_taken_away() {
    let place = Place::with_jobs("[store]\nurl = \"memory:\"\n");
    let told = "store memory is this process's own and shows nothing of another: name a store that others share";
    for verb in [&["locks"][..], &["locks", "x", "--json"], &["locks", "--watch"], &["unlock", "--lock", "x", "--yes"]]
    {
        for (store, code) in [(&["--store", "memory:"][..], 64), (&["--config", "jobs.toml"], 78)] {
            let refused: Ended = place.run(&[verb, store].concat());
            assert_eq!((refused.code, &*refused.stdout), (code, ""), "{refused:?}");
            assert_eq!(refused.stderr, format!("error: {told}\n"));
        }
    }
}

/// A server with a user whose password is changed, and a place whose `url_file` has it.
struct Rotated {
    server: RedisServer,
    place: Place,
}

impl Rotated {
    fn start() -> Self {
        let server = RedisServer::start();
        server.command(&["ACL", "SETUSER", "app", "on", ">old", "~*", "&*", "+@all"]);
        let place = Place::with_jobs("[store]\nurl_file = \"url\"\n");
        let rotated = Self { server, place };
        rotated.write("old");
        rotated
    }

    fn write(&self, password: &str) {
        let url = format!("redis://app:{password}@127.0.0.1:{}\n", self.server.port());
        self.place.write("url.new", &url);
        std::fs::rename(self.place.path().join("url.new"), self.place.path().join("url")).unwrap();
    }

    /// The file first, so that nobody is refused who would find the old one there.
    fn change_password(&self) {
        self.write("new");
        self.server.command(&["ACL", "SETUSER", "app", "resetpass", ">new"]);
        self.server.command(&["CLIENT", "KILL", "USER", "app"]);
    }

    fn command(&self, args: &[&str]) -> Command {
        self.place.command(&[args, &["--config", "jobs.toml"]].concat())
    }

    /// The queue of the lock `x`, past the user.
    fn queue(&self) -> Vec<Value> {
        let told = self.place.run(&["locks", "x", "--json", "--store", &self.server.url()]);
        serde_json::from_str::<Value>(&told.stdout).unwrap()["queue"].as_array().unwrap().clone()
    }

    /// The first of it.
    fn entry(&self) -> Option<Value> {
        self.queue().first().cloned()
    }
}

fn ended(mut child: Child) -> Ended {
    wait::until("its end", || child.try_wait().unwrap());
    child.wait_with_output().unwrap().into()
}

#[test]
fn who_holds_renews_and_releases_with_the_new_password() {
    let rotated = Rotated::start();
    let mut command = rotated.place.command(&["lock", "x", "--ttl", "6s", "--config", "jobs.toml", "--"]);
    command.args(["/bin/sh", "-c", "while ! test -e end; do /bin/sleep 0.02; done"]);
    let holder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait::until_true("it holds", || rotated.entry().is_some());
    let token = rotated.entry().unwrap()["token"].clone();
    rotated.change_password();
    let is_old = |entry: &Value| entry["age_s"].as_f64().unwrap() > 8.0;
    wait::until_true("a renewal after the change", || rotated.entry().is_none_or(|entry| is_old(&entry)));
    assert_eq!(rotated.entry().map(|entry| entry["token"].clone()), Some(token), "it is held on");
    rotated.place.write("end", "");
    let told = ended(holder);
    assert_eq!((told.code, &*told.stderr), (0, ""));
    assert_eq!(rotated.entry(), None, "it is released");
}

#[test]
fn a_watch_goes_on_with_the_new_password() {
    let rotated = Rotated::start();
    let take =
        || assert_eq!(rotated.place.run(&["lock", "x", "--store", &rotated.server.url(), "--", "/bin/true"]).code, 0);
    take();
    let mut command = rotated.command(&["locks", "x", "--watch", "--json", "--interval", "50ms"]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _watch = Killed(watch);
    assert!(lines.next().unwrap().contains("\"queue\":[]"));
    rotated.change_password();
    let held =
        rotated.place.command(&["lock", "x", "--store", &rotated.server.url(), "--", "/bin/sleep", "60"]).spawn();
    let _held = Killed(held.unwrap());
    let told = lines.next().expect("the watch goes on");
    assert!(told.contains("\"holds\":true"), "{told}");
}

#[test]
fn who_waits_listens_with_the_new_password() {
    let rotated = Rotated::start();
    let hold = "while ! test -e end; do /bin/sleep 0.02; done";
    let mut first =
        rotated.place.command(&["lock", "x", "--store", &rotated.server.url(), "--", "/bin/sh", "-c", hold]);
    let _first = Killed(first.spawn().unwrap());
    wait::until_true("it holds", || rotated.entry().is_some());
    let mut second = rotated.place.command(&["lock", "x", "--ttl", "3s", "--config", "jobs.toml", "--", "/bin/true"]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait::until_true("it waits", || rotated.queue().len() == 2);
    rotated.change_password();
    let listeners = || rotated.server.text(&["CLIENT", "LIST", "TYPE", "pubsub"]).unwrap();
    wait::until_true("it listens again", || listeners().contains(" user=app "));
    rotated.place.write("end", "");
    let told = ended(second);
    assert_eq!((told.code, &*told.stderr), (0, ""));
}

#[test]
fn a_lock_whose_record_cannot_be_read_is_a_warning_and_the_others_are_listed() {
    let (server, place) = (RedisServer::start(), Place::new());
    let url = server.url();
    for lock in ["a", "b", "c"] {
        let held = place.run(&["lock", lock, "--store", &url, "--", "/bin/true"]);
        assert_eq!(held.code, 0, "{held:?}");
    }
    server.command(&["SET", "cronward:default:{default:locks}:b:queue", "no queue"]);
    let listed = place.run(&["locks", "--all", "--json", "--store", &url]);
    let locks: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"));
    let names: Vec<&str> = locks.as_array().unwrap().iter().map(|lock| lock["lock"].as_str().unwrap()).collect();
    assert_eq!((listed.code, names), (0, vec!["a", "c"]), "{listed:?}");
    assert!(listed.stderr.starts_with("warning: ") && listed.stderr.lines().count() == 1, "{listed:?}");
    let alone = place.run(&["locks", "b", "--store", &url]);
    assert!(alone.code != 0 && alone.stderr.starts_with("error: "), "{alone:?}");
}
