//! What the command answers to files: a cluster that is well, one that is broken, and what is no journal.

use crate::program::Place;

/// One slot, done by one run.
const WELL: &str = include_str!("well.jsonl");
/// The same slot, and another node that did it too, at the same time; neither says a word about it.
const BROKEN: &str = include_str!("broken.jsonl");

#[test]
fn a_slot_done_once_is_told_with_exit_code_0() {
    let place = Place::new();
    place.write("a.jsonl", WELL);
    let ended = place.run(&["verify", "a.jsonl"]);
    assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
    assert!(ended.stdout.ends_with("0 unexplained in 1 slot; 0 violations\n"), "{}", ended.stdout);
}

#[test]
fn two_runs_in_silence_are_told_with_their_lines_and_exit_code_1() {
    let place = Place::new();
    place.write("a.jsonl", WELL);
    place.write("b.jsonl", BROKEN);
    let ended = place.run(&["verify", "a.jsonl", "b.jsonl"]);
    assert_eq!((ended.code, &*ended.stderr), (1, ""), "{ended:?}");
    for part in [
        "unexplained: push@2026-11-21T14Z: overlap: attempt 1 on a and attempt 2 on b ran at the same time for 2.000s\n",
        "  b.jsonl:4: {",
        "1 unexplained in 1 slot; 0 violations\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    place.write("faults", "{\"at\":\"2026-11-21T14:00:01Z\",\"kind\":\"stop\",\"target\":\"a\"}\n");
    let ended = place.run(&["verify", "a.jsonl", "b.jsonl", "--faults", "faults"]);
    assert_eq!(ended.code, 0, "a fault explains it: {ended:?}");
}

#[test]
fn a_file_that_is_missing_or_no_journal_is_named_with_its_line_and_exit_code_64() {
    let place = Place::new();
    place.write("a.jsonl", WELL);
    place.write("x", &format!("{WELL}nonsense\n{}\n", WELL.lines().last().unwrap()));
    for (args, said) in [
        (&["verify", "gone"][..], "error: cannot read gone: No such file"),
        (&["verify", "a.jsonl", "x"], "error: x:7: not a line of a journal"),
        (&["verify", "a.jsonl", "--recorder", "a.jsonl"], "error: a.jsonl:1: not a line of a recorder's file"),
        (&["verify", "a.jsonl", "--faults", "a.jsonl"], "error: a.jsonl:1: not a line of a faults file"),
        (&["verify"], "error: "),
    ] {
        let ended = place.run(args);
        assert_eq!((ended.code, &*ended.stdout), (64, ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.starts_with(said), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_journal_that_cannot_be_opened_keeps_the_daemon_from_starting_and_is_named() {
    let place = Place::with_jobs("[jobs.a]\nschedule = \"@daily\"\ncommand = [\"true\"]\n");
    let ended = place.run(&["run", "--store", "sqlite:s", "--journal", "gone/j"]);
    assert_eq!(ended.code, 78, "{ended:?}");
    assert!(ended.stderr.contains("journal gone/j: No such file"), "{ended:?}");
}
