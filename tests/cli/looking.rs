//! Commands that only look at a store, and an operator's verbs: none makes one of a path that is mistyped.

use std::time::Duration;

use crate::link::Link;
use crate::program::Place;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;

/// Each with a job that no store knows.
const LOOKING: &[&[&str]] = &[
    &["jobs"],
    &["jobs", "--watch"],
    &["attempts"],
    &["show", "push"],
    &["why", "push"],
    &["logs", "push"],
    &["next", "push"],
    &["nodes"],
    &["reset", "push", "--yes"],
    &["unlock", "push", "--yes"],
    &["mark-done", "push", "--yes"],
    &["pause", "push", "--yes"],
    &["resume", "push", "--yes"],
    &["forget", "push", "--yes"],
    &["trigger", "push", "--yes"],
];

fn is_empty(place: &Place) -> bool {
    std::fs::read_dir(place.path()).unwrap().next().is_none()
}

#[test]
fn a_command_that_only_looks_makes_no_store_and_says_what_is_missing() {
    let place = Place::new();
    for (url, missing) in [("sqlite:typo.db", "no file "), ("sqlite:typo/a.db", "nor a directory ")] {
        for words in LOOKING {
            let told = place.run(&[words, &["--store", url][..]].concat());
            assert_eq!((told.code, &*told.stdout), (75, ""), "{words:?}: {told:?}");
            let typo = place.path().join("typo").display().to_string();
            assert!(told.stderr.contains(missing) && told.stderr.contains(&typo), "{words:?}: {}", told.stderr);
            assert!(told.stderr.contains("; name the one that"), "{words:?}: {}", told.stderr);
            assert_eq!(told.stderr.lines().count(), 1, "{words:?}: {}", told.stderr);
            assert!(is_empty(&place), "{words:?}");
        }
        let told = place.run(&["doctor", "--store", url]);
        assert!(told.code == 2 && told.stdout.contains("error  reachable"), "{told:?}");
        assert!(told.stdout.contains(missing), "{}", told.stdout);
        assert!(is_empty(&place));
    }
}

#[test]
fn what_is_guarded_makes_the_store_with_its_directories_and_then_it_is_looked_at() {
    let place = Place::new();
    let url = "sqlite:a/b/c.db";
    let ran = place.run(&["exec", "--store", url, "--job", "push", "--", "/bin/true"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert_eq!(place.run(&["nodes", "--store", url]).code, 0);
    let file = "[store]\nurl = \"sqlite:d/e.db\"\n[jobs.push]\nschedule = \"@hourly\"\ncommand = \"true\"\n";
    std::fs::write(place.path().join("jobs.toml"), file).unwrap();
    let ran = place.run(&["trigger", "push", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.path().join("d/e.db").exists());
    let made = place.run(&["migrate", "--store", "sqlite:f/g.db"]);
    assert!(made.code == 0 && made.stdout.contains("created the tables"), "{made:?}");
    assert_eq!(place.run(&["jobs", "--store", "sqlite:f/g.db"]).code, 0);
}

#[test]
fn a_store_that_answers_late_is_waited_for_by_a_person_longer_than_by_a_daemon() {
    let (place, server) = (Place::new(), RedisServer::start());
    let known = place.run(&["exec", "--store", &server.url(), "--job", "push", "--", "/bin/true"]);
    assert_eq!(known.code, 0, "{known:?}");
    // An answer takes 400 ms. A daemon has by default 250 ms for a connection.
    let link = Link::to(server.port());
    link.set(Mode::Delay(Duration::from_millis(200)));
    let words: &[&[&str]] = &[&["jobs"], &["nodes"], &["why", "push"], &["locks"], &["pause", "push", "--yes"]];
    for words in words {
        let told = place.run(&[words, &["--store", &link.url()][..]].concat());
        assert_eq!(told.code, 0, "{words:?}: {told:?}");
    }
}
