//! What is missing or away outside of the command line: files and stores.

use crate::program::{Place, cronward};
use crate::support::ports::free_port;

#[test]
fn without_a_file_and_without_a_store_it_says_what_to_give() {
    for verb in ["jobs", "attempts", "next", "run", "check"] {
        let told = cronward(&[verb]);
        assert_eq!((told.code, &*told.stdout), (78, ""), "{verb}");
        assert!(told.stderr.contains("./jobs.toml") && told.stderr.contains("--config"), "{verb}: {}", told.stderr);
        assert_eq!(told.stderr.lines().count(), 1, "{verb}: {}", told.stderr);
    }
}

#[test]
fn a_file_that_is_named_and_not_there_is_a_configuration_error() {
    for verb in ["jobs", "next", "run", "check"] {
        let told = cronward(&[verb, "--config", "/nowhere/jobs.toml"]);
        assert_eq!((told.code, &*told.stdout), (78, ""), "{verb}");
        assert!(told.stderr.contains("/nowhere/jobs.toml"), "{verb}: {}", told.stderr);
    }
}

#[test]
fn a_store_that_is_away_is_one_line_and_asks_to_try_again() {
    let url = format!("redis://:hunter2@127.0.0.1:{}/", free_port());
    let place = Place::new();
    for args in [&["jobs"][..], &["attempts"], &["show", "billing"], &["logs", "billing"], &["next"]] {
        let told = place.run(&[args, &["--store", &url]].concat());
        assert_eq!((told.code, &*told.stdout), (75, ""), "{args:?}: {}", told.stderr);
        let errors: Vec<&str> = told.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{args:?}: {}", told.stderr);
        assert!(errors[0].contains("127.0.0.1") && errors[0].contains("try again"), "{args:?}: {}", told.stderr);
        assert!(!told.stderr.contains("hunter2"), "{args:?}: {}", told.stderr);
        assert!(told.stderr.contains("url_file"), "{args:?}: {}", told.stderr);
    }
}
