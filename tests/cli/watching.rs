//! `cronward jobs --watch`: in place on a terminal, a line for each change elsewhere.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use crate::filled::Filled;
use crate::terminal;

fn watching(store: &Filled, flags: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = store.command(&[&["jobs", "--watch", "--interval", "100ms"], flags].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    lines.next().expect("it goes on").unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn away_from_a_terminal_each_change_is_a_line() {
    let store = Filled::new();
    let (child, mut lines) = watching(&store, &[]);
    let first: Vec<String> = (0..5).map(|_| next(&mut lines)).collect();
    assert!(first[0].starts_with("JOB ") && first[4].starts_with("quiet "), "{first:?}");
    assert_eq!(store.run(&["mark-done", "quiet", "--yes"]).code, 0);
    let changed = next(&mut lines);
    assert!(changed.starts_with("quiet ") && changed.contains(" done "), "{changed}");
    assert_eq!(changed.find(" done "), first[4].find(" no node "), "columns stay where they were");
    end(child);
}

#[test]
fn for_programs_each_change_is_a_line_of_json() {
    let store = Filled::new();
    let (child, mut lines) = watching(&store, &["--json"]);
    let read = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap();
    let first: Vec<_> = (0..4).map(|_| read(next(&mut lines))["job"].clone()).collect();
    assert_eq!(first, ["billing", "mail", "push", "quiet"]);
    assert_eq!(store.run(&["pause", "quiet", "--yes", "--reason", "later"]).code, 0);
    assert_eq!(read(next(&mut lines))["paused"]["why"], "later");
    end(child);
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let store = Filled::new();
    let (child, mut lines) = watching(&store, &[]);
    next(&mut lines);
    drop(lines);
    assert_eq!(store.run(&["mark-done", "quiet", "--yes"]).code, 0);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}

#[test]
fn on_a_terminal_it_is_drawn_in_its_place() {
    let store = Filled::new();
    let command = store.command(&["jobs", "--watch", "--interval", "100ms"]);
    // A head, an empty line, the names of the columns, and four jobs.
    let shown = terminal::until(&command, |shown| shown.matches("\u{1b}[7F").count() > 2);
    assert!(shown.contains("polled every 100ms; Ctrl-C ends"), "{shown}");
    assert!(shown.contains("\u{1b}[7F"), "{shown:?}");
    for frame in shown.split("\u{1b}[7F").skip(1).filter(|frame| frame.contains("\u{1b}[?7h")) {
        assert!(frame.contains("JOB") && frame.contains("quiet"), "each frame is whole: {frame:?}");
    }
}
