//! A command line that cannot be used ends with 64, says why on stderr, and does nothing.

use std::os::unix::ffi::OsStrExt as _;

use crate::program::cronward;

const VERBS: [&str; 11] =
    ["run", "demo", "check", "next", "jobs", "attempts", "show", "logs", "verify", "migrate", "import"];

#[test]
fn help_opens_with_an_example_and_goes_to_stdout() {
    for verb in VERBS {
        for flag in ["--help", "-h"] {
            let told = cronward(&[verb, flag]);
            assert_eq!(told.code, 0, "{verb} {flag}");
            assert!(told.stdout.starts_with(&format!("Example: cronward {verb}")), "{verb}: {}", told.stdout);
            assert_eq!(told.stderr, "", "{verb}");
        }
    }
}

#[test]
fn the_version_goes_to_stdout() {
    let told = cronward(&["--version"]);
    assert_eq!((told.code, &*told.stdout), (0, concat!("cronward ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn a_wrong_flag_is_answered_with_the_nearest_one() {
    let told = cronward(&["attempts", "--sicne", "3d"]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.contains("'--since'"), "{}", told.stderr);
}

#[test]
fn a_wrong_command_is_answered_with_the_nearest_one() {
    let told = cronward(&["job"]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.contains("'jobs'"), "{}", told.stderr);
}

#[test]
fn no_command_at_all_shows_the_help_and_is_a_usage_error() {
    let told = cronward(&[]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.contains("Commands:"), "{}", told.stderr);
}

#[test]
fn values_that_cannot_be_used_are_usage_errors_with_an_example() {
    for (args, hint) in [
        (&["show", "Billing"][..], "a-z"),
        (&["show", "billing@14"], "2026-11-21T14Z"),
        (&["show", "billing@-0"], "@-1"),
        (&["show"], "JOB[@SLOT]"),
        (&["logs", "billing", "--attempt", "0"], "write a whole number from 1 to "),
        (&["attempts", "--since", "24"], "has no unit"),
        (&["attempts", "--since", "0s"], "24h"),
        (&["check", "--format", "yaml"], "pretty, json"),
        (&["attempts", "--state", "faild"], "'failed'"),
        (&["attempts", "--state", "done", "--all"], "cannot be used with"),
        (&["next", "--from", "tomorrow"], "2026-11-21T14:00:00Z"),
        (&["next", "--count", "0"], "write a whole number from 1 to "),
        (&["jobs", "--namespace", "Prod"], "a-z"),
        (&["jobs", "--store", "mysqk://h"], "known are"),
        (&["jobs", "--interval", "5s"], "--watch"),
        (&["exec", "--job", "j", "--lease-ttl", "499ms", "--", "true"], "500ms to 1d"),
        (&["exec", "--job", "j", "--lease-ttl", "86401s", "--", "true"], "500ms to 1d"),
    ] {
        let told = cronward(args);
        assert_eq!((told.code, &*told.stdout), (64, ""), "{args:?}: {}", told.stderr);
        assert!(told.stderr.starts_with("error: ") && told.stderr.contains(hint), "{args:?}: {}", told.stderr);
        assert_eq!(told.stderr.lines().count(), 1, "{args:?}: {}", told.stderr);
    }
}

#[test]
fn an_argument_that_is_not_utf_8_is_a_usage_error_wherever_it_stands() {
    let strange = std::ffi::OsStr::from_bytes(b"\xff");
    for before in [&[][..], &["lock"], &["exec", "--job"]] {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_cronward")).args(before).arg(strange).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), told.lines().count()), (Some(64), 1), "{before:?}: {told}");
    }
}

#[test]
fn a_duration_with_a_sign_is_told_to_have_none() {
    for verb in ["pause", "attempts"] {
        let flag = if verb == "pause" { "--until" } else { "--since" };
        let told = cronward(&[verb, "--store", "sqlite:none.db", flag, "-1h"]);
        let expected = format!(
            "error: unexpected argument '-1': a duration has no sign (2h), and an earlier slot follows its job (JOB@-1); see \
             `cronward {verb} --help`\n"
        );
        assert_eq!((told.code, told.stderr), (64, expected));
    }
}
