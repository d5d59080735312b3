//! Commands that read `jobs.toml`.

use std::io::Write;
use std::process::Stdio;

use crate::program::Place;

const JOBS: &str = r#"
[store]
url = "sqlite:cronward.sqlite"

[jobs.nightly]
schedule = "30 2 * * *"
timezone = "Europe/Berlin"
command = ["/bin/true"]

[jobs.hourly]
schedule = "0 * * * *"
command = ["/bin/true"]

[jobs.off]
schedule = "0 * * * *"
command = ["/bin/true"]
enabled = false
"#;

/// The words of each line but the second, which changes with the clock.
fn words(text: &str) -> Vec<String> {
    let kept = |line: &str| {
        let left = if line.contains(" in ") { 1..3 } else { 1..2 };
        let words = line.replace(" ago", "");
        let words = words.split_whitespace().enumerate().filter(|(index, _)| !left.contains(index));
        words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(kept).collect()
}

#[test]
fn next_lists_the_coming_ticks_of_the_file_without_a_store() {
    let place = Place::with_jobs(JOBS);
    let told = place.run(&["next", "--count", "3", "--from", "2026-03-28T23:30:00Z"]);
    assert_eq!((told.code, &*told.stderr), (0, ""));
    assert_eq!(
        words(&told.stdout),
        [
            "TIME JOB SLOT LOCAL TIME NOTE",
            "2026-03-29T00:00:00Z hourly 2026-03-29T00Z 2026-03-29T00:00:00Z",
            "2026-03-29T01:00:00Z hourly 2026-03-29T01Z 2026-03-29T01:00:00Z",
            "2026-03-29T01:00:00Z nightly 2026-03-29T01Z 2026-03-29T03:00:00+02:00 2026-03-29 02:30:00 does not exist (the \
             clock goes forward): fires at 03:00:00 instead",
        ]
    );
    assert!(!place.path().join("cronward.sqlite").exists(), "no store was opened");
}

#[test]
fn a_disabled_job_is_listed_only_when_it_is_named() {
    let place = Place::with_jobs(JOBS);
    let told = place.run(&["next", "off", "--count", "1"]);
    assert_eq!((told.code, &*told.stderr), (0, "off is disabled: no node plans these times\n"));
    assert_eq!(told.stdout.lines().count(), 2);
    assert!(!place.run(&["next"]).stdout.contains("off"));
}

#[cfg(feature = "sqlite")]
#[test]
fn jobs_of_the_file_are_listed_before_any_node_has_run_them() {
    let place = Place::with_jobs(JOBS);
    assert_eq!(place.run(&["migrate"]).code, 0);
    let told = place.run(&["jobs"]);
    let nobody = "no node is alive: no heartbeat in the last 7d; start one with: cronward run\n";
    assert_eq!((told.code, &*told.stderr), (0, nobody));
    let first: Vec<&str> = told.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first, ["JOB", "hourly", "nightly", "off"]);
    assert!(told.stdout.lines().any(|line| line.starts_with("off ") && line.contains(" disabled ")), "{}", told.stdout);
}

#[cfg(feature = "sqlite")]
#[test]
fn a_job_that_no_node_has_run_has_missed_nothing() {
    let place = Place::with_jobs(JOBS);
    assert_eq!(place.run(&["migrate"]).code, 0);
    let told = place.run(&["attempts", "--since", "7d"]);
    assert_eq!(
        (told.code, &*told.stdout, &*told.stderr),
        (0, "", "nothing unfinished in the last 7d (--all also lists completed slots)\n")
    );
}

#[test]
fn a_file_with_errors_is_a_configuration_error_that_shows_them_on_stderr() {
    let place = Place::with_jobs("[jobs.a]\nschedule = \"0 * * * *\"\ncomand = \"true\"\n");
    for verb in ["jobs", "attempts", "next", "run"] {
        let told = place.run(&[verb]);
        assert_eq!((told.code, &*told.stdout), (78, ""), "{verb}: {}", told.stderr);
        assert!(told.stderr.contains("jobs.toml:3") && told.stderr.contains("command"), "{verb}: {}", told.stderr);
        assert!(
            told.stderr.lines().last().unwrap().starts_with("error: jobs.toml: 1 error"),
            "{verb}: {}",
            told.stderr
        );
    }
}

#[test]
fn check_tells_its_findings_on_stdout_and_by_its_exit_code() {
    let good = Place::with_jobs(JOBS).run(&["check"]);
    assert_eq!((good.code, &*good.stderr), (0, ""), "{}", good.stdout);
    let bad = Place::with_jobs("[jobs.a]\nschedule = \"61 * * * *\"\ncommand = \"true\"\n").run(&["check"]);
    assert_eq!((bad.code, &*bad.stderr), (78, ""));
    assert!(bad.stdout.contains("jobs.toml:2"), "{}", bad.stdout);
}

/// Runs it with the jobs on its stdin, which is a pipe.
fn fed(place: &Place, args: &[&str]) -> crate::program::Ended {
    let mut command = place.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who refuses it reads nothing.
    let _ = child.stdin.take().unwrap().write_all(JOBS.as_bytes());
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_file_that_is_read_once_may_be_a_pipe() {
    let place = Place::new();
    for path in ["/dev/stdin", "/proc/self/fd/0"] {
        for verb in [&["check"][..], &["next", "nightly", "--count", "1"]] {
            let told = fed(&place, &[verb, &["--config", path]].concat());
            assert_eq!((told.code, &*told.stderr), (0, ""), "{verb:?} {path}");
            assert!(told.stdout.contains("nightly"), "{}", told.stdout);
        }
    }
}

#[test]
fn a_node_reads_its_file_again_and_refuses_a_pipe() {
    let told = fed(&Place::new(), &["run", "--config", "/dev/stdin"]);
    assert_eq!((told.code, &*told.stdout), (78, ""));
    let why = "/dev/stdin: is not a regular file but a pipe: write the text into a file";
    assert_eq!(told.stderr, format!("error: {why}\n"));
}

#[test]
fn run_refuses_a_log_filter_that_cannot_be_read() {
    let place = Place::with_jobs(JOBS);
    let told: crate::program::Ended =
        place.command(&["run"]).env("CRONWARD_LOG", "cronward=loud").output().unwrap().into();
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.starts_with("error: CRONWARD_LOG=\"cronward=loud\" is not a log filter"), "{}", told.stderr);
}
