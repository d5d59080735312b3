//! A limit on the size of files (`ulimit -f`), which a write meets with a signal.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use crate::program::Place;

/// What becomes of `cronward exec` with this command, started by a shell after `limit`.
fn run(place: &Place, limit: &str, command: &[&str]) -> Output {
    let script = format!("{limit} exec \"$0\" \"$@\"");
    let exec = ["exec", "--store", "sqlite:store.db", "--job", "a", "--"];
    let words = [&["-c", &script, env!("CARGO_BIN_EXE_cronward")][..], &exec, command].concat();
    Command::new("/bin/sh").args(words).current_dir(place.path()).output().unwrap()
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_silent_end() {
    let place = Place::new();
    let ended = run(&place, "ulimit -f 0;", &["/bin/true"]);
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.signal(), None, "{told}");
    assert_ne!(ended.status.code(), Some(0), "{told}");
    assert!(told.contains("store.db"), "{told}");
}

#[test]
fn a_command_meets_the_signal_as_without_cronward() {
    let place = Place::new();
    let ended = run(&place, "", &["/bin/sh", "-c", "ulimit -f 0; echo text > file"]);
    assert_eq!(ended.status.code(), Some(128 + 25), "{ended:?}");
}
