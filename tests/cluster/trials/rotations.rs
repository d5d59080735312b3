//! Passwords that are changed while a node runs: `url_file` is read again, and nothing is lost by it.

use std::process::{Command, Stdio};

use crate::daemon::Daemon;
use crate::place::Place;
use crate::redis_server::{RedisServer, documented_permissions};
use crate::trials::stored;
use crate::{jobs, wait};

/// What is logged when a password is taken, and when none is.
const TAKEN: &str = "the store's new password is in use";
const NOT_TAKEN: &str = "the store's url changed and is not taken";

/// A server whose user `cronward` has the password `secret`, and that url in a file.
fn guarded(place: &Place) -> RedisServer {
    let server = RedisServer::start();
    server.allow(&documented_permissions());
    write_url(place, &server, "secret");
    server
}

fn write_url(place: &Place, server: &RedisServer, password: &str) {
    place.write("url", &server.url().replace("//", &format!("//cronward:{password}@")));
}

/// A file of jobs whose store is named by the file beside it.
fn write_jobs(place: &Place, tables: &str) {
    write_jobs_of(place, &format!("url_file = \"{}\"", place.file("url").display()), tables);
}

/// A file of jobs whose store is named so. Leases outlast the time for which nothing is known.
fn write_jobs_of(place: &Place, store: &str, tables: &str) {
    let jobs = jobs::file(tables).replace("lease_ttl = \"2s\"", "lease_ttl = \"30s\"");
    place.jobs(&format!("[store]\n{store}\n{jobs}"));
}

/// The line of a file of jobs that has the url itself: nobody reads it again but who is told to.
fn literal(server: &RedisServer, password: &str) -> String {
    format!("url = \"{}\"", server.url().replace("//", &format!("//cronward:{password}@")))
}

fn node(place: &Place) -> Daemon {
    let node = place.node("a", "").start();
    node.is_in_touch();
    node
}

/// The user has the new password alone, and whoever came with the old one has to come again.
fn rotate(server: &RedisServer) {
    server.command(&["ACL", "SETUSER", "cronward", "resetpass", ">fresh"]);
    server.command(&["CLIENT", "KILL", "USER", "cronward"]);
}

fn shows_no_password(node: &Daemon) {
    let log = node.text();
    assert!(!log.contains("secret@") && !log.contains("fresh") && !log.contains("wrong@"), "{log}");
}

/// The one run went on through it all, under its first lease.
fn is_done_once(place: &Place, server: &RedisServer, node: &Daemon) {
    let run = place.end_of_run(1);
    wait::until_true("the slot is done", || stored::is_done(server, "long"));
    assert_eq!((run.attempt, place.runs_of("long").len()), (1, 1));
    for trouble in ["lease renewal overdue", "lease lost", "ran concurrently", "could not be recorded"] {
        assert_eq!(node.said(trouble), [""; 0], "{trouble}");
    }
}

pub(super) fn a_password_that_changed_is_read_again_once_it_is_refused_and_the_run_ends_as_done(place: &Place) {
    let server = guarded(place);
    write_jobs(place, &jobs::recorded("long", &jobs::one_slot(wait::SOON), 6.0, 0));
    let node = node(place);
    place.run_number(1);
    rotate(&server);
    // Whoever changes it at the server first leaves the nodes outside for a while.
    node.says("store cannot be used: trying again");
    assert_eq!(node.said(TAKEN), [""; 0]);
    write_url(place, &server, "fresh");
    node.says(TAKEN);
    node.says("store is back");
    is_done_once(place, &server, &node);
    // Wake-ups come again, too: the server has the node among those who listen.
    wait::until_true("the node listens", || {
        server.text(&["CLIENT", "LIST", "TYPE", "pubsub"]).unwrap_or_default().contains("user=cronward")
    });
    shows_no_password(&node);
}

pub(super) fn a_password_that_is_written_before_the_old_one_goes_is_taken_by_a_signal_and_nothing_is_refused(
    place: &Place,
) {
    let (server, long) = (guarded(place), jobs::recorded("long", &jobs::one_slot(wait::SOON), 6.0, 0));
    write_jobs_of(place, &literal(&server, "secret"), &long);
    let node = node(place);
    place.run_number(1);
    server.command(&["ACL", "SETUSER", "cronward", ">fresh"]);
    write_jobs_of(place, &literal(&server, "fresh"), &long);
    node.hang_up();
    node.says(TAKEN);
    node.says("reloaded");
    server.command(&["ACL", "SETUSER", "cronward", "<secret"]);
    server.command(&["CLIENT", "KILL", "USER", "cronward"]);
    is_done_once(place, &server, &node);
    assert!(!node.text().contains("wrong user or password"), "nothing was asked with the old one any more");
    shows_no_password(&node);
}

pub(super) fn a_url_of_another_store_or_a_wrong_password_leaves_the_old_one_in_use_and_says_so(place: &Place) {
    let (server, other) = (guarded(place), RedisServer::start());
    // So long a lease is allowed only where it blocks no other slot.
    let beat = format!("{}\nconcurrency = \"allow\"", jobs::every(2));
    write_jobs(place, &jobs::recorded("beat", &beat, 0.1, 0));
    let node = node(place);
    place.run_number(1);
    other.allow(&documented_permissions());
    let told = |level: &str, why: &str| {
        let refusals = node.said(NOT_TAKEN).into_iter().filter(|line| line["level"] == level);
        refusals.filter(|line| line["error"].as_str().unwrap().contains(why)).count()
    };
    for (elsewhere, level, why) in [(&other, "ERROR", "needs a restart"), (&server, "WARN", "wrong user or password")] {
        write_url(place, elsewhere, "wrong");
        // A heartbeat may have read it first, and tells the same once; whoever sends a signal is told each time.
        for times in 1..=3 {
            node.hang_up();
            wait::until_true(&format!("{why:?} is told {times} times"), || told(level, why) >= times);
        }
    }
    place.run_number(place.runs().len() + 2);
    assert_eq!((node.said(TAKEN), node.said("store cannot be used")), (vec![], vec![]));
    assert_eq!(other.number(&["DBSIZE"]), 0, "nothing was written elsewhere");
    shows_no_password(&node);
}

pub(super) fn an_exec_whose_password_changes_records_its_success_with_the_new_one(place: &Place) {
    let server = guarded(place);
    write_jobs(place, &jobs::recorded("long", &jobs::far_away(), 2.0, 0));
    let mut exec = Command::new(env!("CARGO_BIN_EXE_cronward"));
    exec.args(["exec", "--job", "long", "--", "/bin/sh", "record.sh", "2", "0"]);
    exec.current_dir(place.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let exec = exec.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    place.run_number(1);
    rotate(&server);
    write_url(place, &server, "fresh");
    let ended = exec.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*String::from_utf8_lossy(&ended.stderr)), (Some(0), ""));
    wait::until_true("the slot is done", || stored::is_done(&server, "long"));
}
