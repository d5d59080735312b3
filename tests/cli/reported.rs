//! `exec --report FILE`: there is a report or none, and never half of one; nothing else is left in its folder.

use std::process::Command;

use crate::guarding::{STORE, exec_at, report, words_at, zone};
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;

/// What is in the folder, by name.
fn files(place: &Place) -> Vec<String> {
    let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_report_that_cannot_be_written_is_known_before_anything_is_started() {
    let told = exec_at(STORE, &Place::new(), &["--report", "/no/such/folder/r.json"], &["/bin/echo", "never"]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.contains("--report /no/such/folder/r.json") && told.stderr.contains("nothing was started"));
}

#[test]
fn a_store_that_cannot_be_opened_is_reported_and_leaves_no_draft() {
    let unusable: [(&str, &[&str], i32); 3] =
        [("nonsense://x", &[], 64), (STORE, &["--key", "push-lock"], 64), ("sqlite:/dev/null/store.db", &[], 69)];
    for (url, flags, code) in unusable {
        let place = Place::new();
        let told = exec_at(url, &place, &[&["--report", "report.json"], flags].concat(), &["/bin/echo", "never"]);
        assert_eq!((told.code, &*told.stdout), (code, ""), "{told:?}");
        assert_eq!(told.stderr.lines().count(), 1, "{}", told.stderr);
        assert_eq!(files(&place), ["report.json"], "{url}");
        let report = report(&place);
        assert_eq!((&report["result"], &report["exit_code"]), (&"store_refuses".into(), &code.into()), "{report}");
        assert!(told.stderr.contains(report["messages"][0].as_str().unwrap()), "{report}");
    }
}

#[test]
fn a_report_on_a_full_device_does_not_change_how_the_command_ended() {
    let place = Place::new();
    let told = exec_at(STORE, &place, &["--report", "/dev/full"], &["/bin/sh", "-c", "echo ran; exit 3"]);
    assert_eq!((told.code, &*told.stdout), (3, "ran\n"), "{}", told.stderr);
    assert!(told.stderr.contains("--report /dev/full: No space left on device"), "{}", told.stderr);
}

#[test]
fn a_report_for_which_there_is_no_room_leaves_the_one_before_and_no_draft() {
    let (server, place, zone) = (RedisServer::start(), Place::new(), zone());
    std::fs::write(place.path().join("report.json"), "the one before\n").unwrap();
    let url = server.url();
    let words = words_at(&url, &zone, &["--report", "report.json"], &["/bin/sh", "-c", "echo ran; exit 3"]);
    // No file may grow: what a full disk answers to the write, at any size of disk and without the rights to mount one.
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_cronward")]);
    let told: Ended = command.args(words).current_dir(place.path()).env_clear().output().unwrap().into();
    assert_eq!((told.code, &*told.stdout), (3, "ran\n"), "{}", told.stderr);
    assert!(told.stderr.contains("--report report.json: File too large"), "{}", told.stderr);
    assert_eq!(files(&place), ["report.json"]);
    assert_eq!(std::fs::read_to_string(place.path().join("report.json")).unwrap(), "the one before\n");
}

#[test]
fn a_link_that_lies_where_the_report_is_drafted_or_put_is_not_followed() {
    let (server, place, zone) = (RedisServer::start(), Place::new(), zone());
    std::fs::write(place.path().join("victim"), "precious\n").unwrap();
    let url = server.url();
    let words = words_at(&url, &zone, &["--report", "report.json"], &["/bin/sh", "-c", "exit 3"]);
    // The number of the process is known to whoever starts it, and guessed by whoever can write to its folder.
    let plant =
        "for name in report.json report.json.$$.new report.json.$$-0.new; do ln -s victim $name; done; exec \"$@\"";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", plant, "sh", env!("CARGO_BIN_EXE_cronward")]);
    let told: Ended = command.args(words).current_dir(place.path()).env_clear().output().unwrap().into();
    assert_eq!(told.code, 3, "{}", told.stderr);
    assert_eq!(std::fs::read_to_string(place.path().join("victim")).unwrap(), "precious\n");
    assert!(std::fs::symlink_metadata(place.path().join("report.json")).unwrap().is_file());
    assert_eq!(report(&place)["exit_code"], 3);
}
