//! `cronward demo`, played for real: three processes, one of them killed, and nothing left of it in the end.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{lives, signal};
use crate::program::{Ended, Place};
use crate::{terminal, wait};

/// The demo promises to end within a minute.
const A_MINUTE: Duration = Duration::from_secs(60);

/// A folder in memory where there is one: how fast the disk is, is not the question.
fn fast_place() -> Place {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { Place::within(memory) } else { Place::new() }
}

fn demo(place: &Place) -> Command {
    let mut command = place.command(&["demo"]);
    command.env("TMPDIR", place.path());
    command
}

/// Plays it. A machine that has no time for it says so, and gets another chance; any other end counts.
fn played(play: impl Fn() -> Ended) -> Ended {
    let too_busy = |ended: &Ended| ended.code == 70 && format!("{}{}", ended.stdout, ended.stderr).contains("too busy");
    (0..2).map(|_| play()).find(|ended| !too_busy(ended)).unwrap_or_else(&play)
}

/// The processes that the first line names.
fn pids(text: &str) -> Vec<u32> {
    let named = text.split("(process ").skip(1);
    named.map(|rest| rest.split(')').next().unwrap().parse().unwrap()).collect()
}

fn nothing_is_left(place: &Path, pids: &[u32]) {
    assert_eq!(pids.len(), 3);
    assert_eq!(pids.iter().filter(|pid| lives(**pid)).count(), 0, "processes");
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 0, "files");
}

/// A demo that runs, and its lines.
fn running(place: &Place) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = demo(place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long it takes by the machine's clock is a promise")]
fn a_node_is_killed_another_takes_over_and_the_checker_finds_nothing_wrong() {
    let place = fast_place();
    let ended = played(|| {
        let start = Instant::now();
        let ended = demo(&place).output().unwrap().into();
        assert!(start.elapsed() < A_MINUTE, "{:?}: {ended:?}", start.elapsed());
        ended
    });
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{}", ended.stdout);
    let said = |words: &str| {
        ended
            .stdout
            .lines()
            .position(|line| line.contains(words))
            .unwrap_or_else(|| panic!("{words}: {}", ended.stdout))
    };
    let opening: Vec<&str> = ended.stdout.lines().take(3).collect();
    let [a, b, c] = pids(&ended.stdout)[..] else { panic!("{opening:?}") };
    assert_eq!(
        opening.join("\n"),
        format!(
            "three nodes share one store and three jobs: a (process {a}), b (process {b}), c (process {c})\n\
             push succeeds, flaky fails first, and the node that runs export will be killed\n"
        )
    );
    assert!(said("fails with exit 1") < said("tries again, attempt 2"));
    assert!(said("killed (-9)") < said("takes over from "));
    assert!(ended.stdout.contains("CLASS "), "the checker's table: {}", ended.stdout);
    let verdict = ended.stdout.lines().last().unwrap();
    assert!(verdict.starts_with("verdict: ") && verdict.ends_with("none lost"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\u{1b}'), "plain away from a terminal");
    nothing_is_left(place.path(), &pids(&ended.stdout));
}

#[test]
fn on_a_terminal_the_leases_are_drawn_in_their_place() {
    let place = fast_place();
    let ended = played(|| terminal::run(&demo(&place), &[("TMPDIR", place.path().to_str().unwrap())]));
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    assert!(ended.stdout.contains("\u{1b}[6F"), "six lines are drawn again: {:?}", ended.stdout);
    assert!(ended.stdout.contains("HOLDER") && ended.stdout.contains("gone"), "{}", ended.stdout);
    assert!(ended.stdout.contains("verdict: "), "{}", ended.stdout);
    assert!(ended.stdout.rfind("\u{1b}[?7l") < ended.stdout.rfind("\u{1b}[?7h"), "the terminal wraps again");
    nothing_is_left(place.path(), &pids(&ended.stdout));
}

#[test]
fn whoever_interrupts_it_finds_nothing_left() {
    let place = fast_place();
    let (child, mut lines) = running(&place);
    let pids = pids(&lines.next().unwrap().unwrap());
    assert!(lines.any(|line| line.unwrap().contains("holds the lease")), "a node runs something");
    signal(child.id(), Signal::INT);
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!((ended.code, &*ended.stderr), (130, ""));
    nothing_is_left(place.path(), &pids);
}

#[test]
fn its_nodes_do_not_outlive_it() {
    let place = fast_place();
    let (mut child, mut lines) = running(&place);
    let pids = pids(&lines.next().unwrap().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    wait::until_true("the end of its nodes", || !pids.iter().any(|pid| lives(*pid)));
}

#[test]
fn with_web_each_node_serves_a_dashboard_until_somebody_has_seen_enough() {
    let place = fast_place();
    let mut command = demo(&place);
    let mut child = command.arg("--web").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids = pids(&lines.next().unwrap().unwrap());
    let mut told = Vec::new();
    let goes_on = lines.by_ref().map(Result::unwrap).any(|line| {
        told.push(line.clone());
        line.contains("press Ctrl-C")
    });
    if goes_on {
        let addresses = told.iter().filter_map(|line| line.strip_prefix("dashboard of node ")?.split_once(": "));
        let shown: Vec<bool> = addresses.map(|(_, address)| page(address).contains("<title>")).collect();
        assert_eq!(shown.len(), 3, "{told:?}");
        assert!(
            shown[0] && told.iter().any(|line| line.starts_with("dashboard of node a (never killed): ")),
            "{told:?}"
        );
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 2, "all but the one that was killed: {told:?}");
        signal(child.id(), Signal::INT);
    }
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let ended: Ended = child.wait_with_output().unwrap().into();
    let too_busy = ended.code == 70 && ended.stderr.contains("too busy");
    assert_eq!(goes_on, !too_busy, "{told:?} {}", ended.stderr);
    assert!(too_busy || rest.iter().any(|line| line.starts_with("verdict: ")), "{rest:?}");
    nothing_is_left(place.path(), &pids);
}

/// What a node serves there; nothing where nobody listens any more.
fn page(address: &str) -> String {
    use std::io::{Read, Write};
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let Ok(mut stream) = std::net::TcpStream::connect(host) else { return String::new() };
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
