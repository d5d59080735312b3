//! `exec` and `trigger` whose store goes away during the run: how long they wait to record its end, and how they leave.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::Signal;

use crate::guarding::{report, running_at, words_at, zone};
use crate::past::on_each_store_with;
use crate::process::signal;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::wait;

/// Ends with this code once there is a file `end`.
const SCRIPT: &str = "while ! test -e end; do sleep 0.02; done; exit 3";

/// How it ended. The test fails when it does not, and leaves nothing behind.
fn ended(mut child: Child) -> Ended {
    let mut looks = 45_000 / 20;
    let status = wait::until("cronward ends", || {
        looks -= 1;
        if looks == 0 {
            child.kill().unwrap();
        }
        child.try_wait().unwrap()
    });
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = status.code().unwrap_or_else(|| panic!("it died of signal {:?}: {stderr}", status.signal()));
    Ended { code, stdout: String::new(), stderr }
}

/// Lets the command end, and waits until cronward knows that it has.
fn end(place: &Place, child: &Child) {
    std::fs::write(place.path().join("end"), "").unwrap();
    let threads = format!("/proc/{}/task", child.id());
    wait::until_true("the command has ended", || {
        let threads = std::fs::read_dir(&threads).unwrap().map(|thread| thread.unwrap().path().join("children"));
        threads.map(|file| std::fs::read_to_string(file).unwrap_or_default()).all(|children| children.is_empty())
    });
}

/// One line, with what is not recorded and what comes of it.
fn is_told(ended: &Ended) {
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for words in ["attempt 1 ended with exit code 3", "not recorded", "once the lease expires", "run the slot again"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

/// A guarded command on this server, with a report, that runs.
fn started(place: &Place, server: &RedisServer, flags: &[&str]) -> (Child, BufReader<ChildStdout>) {
    running_at(&server.url(), place, &[&["--report", "report.json"], flags].concat(), SCRIPT)
}

#[test]
fn a_signal_ends_the_waiting_for_a_store_that_stands_still() {
    for number in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (place, server) = (Place::new(), RedisServer::start());
        let (child, _out) = started(&place, &server, &["--lease-ttl", "600s"]);
        server.pause();
        end(&place, &child);
        signal(child.id(), number);
        let ended = ended(child);
        assert_eq!(ended.code, 3, "the command's own code, after {number:?}: {}", ended.stderr);
        is_told(&ended);
        let report = report(&place);
        let run = &report["runs"][0];
        assert_eq!((&run["outcome"], &run["recorded"]), (&"failure".into(), &false.into()), "{report}");
        assert_eq!(report["messages"].as_array().unwrap().len(), 1, "{report}");
    }
}

#[test]
fn the_waiting_for_a_store_that_is_gone_is_bounded_by_a_lease() {
    let (place, mut server) = (Place::new(), RedisServer::start());
    let (child, _out) = started(&place, &server, &["--lease-ttl", "2s"]);
    server.kill();
    end(&place, &child);
    let ended = ended(child);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    // The lease may have been in doubt before the command ended.
    assert!(ended.stderr.contains("but the outcome was not recorded: redis://127.0.0.1:"), "{}", ended.stderr);
    assert_eq!(report(&place)["runs"][0]["recorded"], false);
}

#[test]
fn a_store_that_comes_back_in_time_is_told() {
    let (place, server) = (Place::new(), RedisServer::start());
    let (child, _out) = started(&place, &server, &["--lease-ttl", "600s"]);
    server.pause();
    end(&place, &child);
    server.unpause();
    let ended = ended(child);
    assert_eq!((ended.code, &*ended.stderr), (3, ""));
    assert_eq!(report(&place)["runs"][0]["recorded"], true);
}

#[test]
fn each_signal_of_several_is_passed_on_while_the_command_runs() {
    let (place, zone) = (Place::new(), zone());
    let script =
        "trap 'echo term' TERM; trap 'echo int' INT; echo up; while ! test -e end; do sleep 0.02; done; exit 3";
    let mut command = place.command(&words_at("sqlite:store.db", &zone, &[], &["/bin/sh", "-c", script]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("up"));
    for (number, word) in [(Signal::TERM, "term"), (Signal::INT, "int")].repeat(40) {
        signal(child.id(), number);
        assert_eq!(lines.next().as_deref(), Some(word));
    }
    end(&place, &child);
    let ended = ended(child);
    // A shell that runs a script tells of the `sleep` that each signal ended.
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

#[test]
fn a_trigger_waits_no_longer_either() {
    on_each_store_with("echo up; while ! test -e end; do sleep 0.02; done; exit 3", |place| {
        let config = std::fs::read_to_string(place.path().join("jobs.toml")).unwrap();
        let Some(port) = config.split("redis://127.0.0.1:").nth(1).and_then(|rest| rest.split('"').next()) else {
            return;
        };
        let mut command = place.command(&["trigger", "push", "--yes"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let stopped = std::process::Command::new("redis-cli").args(["-p", port, "CLIENT", "PAUSE", "600000"]).status();
        assert!(stopped.unwrap().success());
        end(place, &child);
        let ended = ended(child);
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stderr.contains("not recorded"), "{}", ended.stderr);
    });
}
