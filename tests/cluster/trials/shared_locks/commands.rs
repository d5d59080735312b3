//! `cronward lock` as a command line: its exit codes, a lock within a lock, what the command leaves behind, and signals.

use crate::daemon;
use crate::locker::Locker;
use crate::place::{Ended, Place};
use crate::shared_store::SharedStore;

use super::{LONG, lives};

const CRONWARD: &str = env!("CARGO_BIN_EXE_cronward");

pub(super) fn a_command_under_a_lock_ends_nests_and_is_signalled_as_documented(place: &Place, store: &SharedStore) {
    let url = store.url();
    place.jobs("[store]\nop_timeout = \"10s\"\n");
    let lock = |words: &[&str], command: &[&str]| {
        place.cronward(&[&["lock"], words, &["--config", "jobs.toml", "--store", url, "--"], command].concat())
    };
    let sh = |words: &[&str], script: &str| lock(words, &["/bin/sh", "-c", script]);
    ends_with(&sh(&["x"], "exit 42"), 42, "");
    ends_with(&lock(&["x"], &["/no/such/program"]), 127, "");
    let nested =
        format!("{CRONWARD} lock x y --config jobs.toml --store '{url}' -- /bin/sh -c 'echo in $CRONWARD_LOCKS'");
    ends_with(&sh(&["x"], &nested), 0, "in x y\n");
    leaves_nothing(place, &sh(&["x"], "sleep 600 & echo $! > group; setsid sleep 600 & echo $! > session; exit 3"));
    let mut holder = Locker::of(place, url, &LONG).with_child().holds("holder");
    let never = ["/bin/echo", "never"];
    ends_with(&lock(&["x", "--try"], &never), 1, "");
    ends_with(&lock(&["x", "--wait", "100ms", "-E", "9"], &never), 9, "");
    holder.terminate();
    assert_eq!(holder.exits().code(), Some(143), "{}", holder.text());
    assert!(!lives(place, "holder"));
    ends_with(&lock(&["x", "--try"], &["/bin/echo", "free"]), 0, "free\n");
}

fn ends_with(ended: &Ended, code: i32, stdout: &str) {
    assert_eq!((ended.code, &*ended.stdout), (code, stdout), "{ended:?}");
}

/// Not in the command's group and not in a session of its own.
fn leaves_nothing(place: &Place, ended: &Ended) {
    ends_with(ended, 3, "");
    for name in ["group", "session"] {
        let pid = std::fs::read_to_string(place.file(name)).unwrap().trim().parse().unwrap();
        assert!(!daemon::lives(pid), "{name}");
    }
}
