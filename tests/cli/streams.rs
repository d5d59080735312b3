//! What goes to which stream, and what happens when nobody reads it.

#[cfg(feature = "sqlite")]
use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use crate::program::Place;

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let place = Place::new();
    for args in [&["--help"][..], &["attempts", "--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = place.command(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*told), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn help_is_plain_away_from_a_terminal() {
    let told = Place::new().run(&["jobs", "--help"]);
    assert!(!told.stdout.contains('\u{1b}'), "{:?}", told.stdout);
}

#[cfg(feature = "sqlite")]
mod with_a_store {
    use super::*;
    use crate::filled::Filled;
    use crate::program::Ended;
    use crate::terminal;

    const LONG: [&str; 4] = ["next", "--count", "1000", "--json"];

    #[test]
    fn a_listing_whose_reader_goes_away_ends_quietly() {
        let store = Filled::new();
        let mut child = store.command(&LONG).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!((ended.code, &*ended.stderr), (0, ""));
    }

    #[test]
    fn a_result_that_cannot_be_written_is_a_failure() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended: Ended = Filled::new().command(&LONG).stdout(full).stderr(Stdio::piped()).output().unwrap().into();
        assert_eq!(ended.code, 70);
        assert!(ended.stderr.starts_with("error: cannot write the result: "), "{}", ended.stderr);
    }

    #[test]
    fn a_result_that_says_that_something_is_wrong_and_a_help_text_fail_like_any_other_where_they_cannot_be_written() {
        let place = Place::new();
        for words in [&["doctor", "--store", "memory:"][..], &["--version"], &["--help"], &["jobs", "--help"]] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let ended: Ended = place.command(words).stdout(full).stderr(Stdio::piped()).output().unwrap().into();
            assert_eq!(ended.code, 70, "{words:?}: {}", ended.stderr);
            assert!(ended.stderr.starts_with("error: cannot write the result: "), "{words:?}: {}", ended.stderr);
        }
    }

    fn on_a_terminal(store: &Filled, args: &[&str], env: &[(&str, &str)]) -> String {
        let ended = terminal::run(&store.command(args), env);
        assert_eq!(ended.code, 0, "{}", ended.stdout);
        ended.stdout
    }

    #[test]
    fn a_terminal_gets_colour_unless_somebody_refuses_it() {
        let store = Filled::new();
        assert!(on_a_terminal(&store, &["jobs"], &[]).contains('\u{1b}'));
        assert!(!on_a_terminal(&store, &["jobs"], &[("NO_COLOR", "1")]).contains('\u{1b}'));
        assert!(!on_a_terminal(&store, &["jobs"], &[("TERM", "dumb")]).contains('\u{1b}'));
        assert!(!on_a_terminal(&store, &["jobs", "--no-color"], &[]).contains('\u{1b}'));
        assert!(on_a_terminal(&store, &["jobs"], &[("NO_COLOR", "")]).contains('\u{1b}'), "empty means not set");
        assert!(!store.run(&["jobs"]).stdout.contains('\u{1b}'), "a pipe never does");
    }

    #[test]
    fn a_terminal_gets_the_output_of_a_job_without_its_escape_sequences() {
        let shown = on_a_terminal(&Filled::new(), &["logs", "mail"], &[]);
        assert!(shown.contains("line 12 \\x1b[31m") && !shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn a_table_fits_a_terminal_of_80_columns() {
        let store = Filled::new();
        for verb in ["jobs", "attempts"] {
            let shown = on_a_terminal(&store, &[verb, "--no-color"], &[]);
            // What is said beside a table names the store, whose folder may be deep.
            let table = shown.lines().filter(|line| !line.starts_with("no node is alive"));
            assert_eq!(table.filter(|line| line.trim_end().chars().count() > 80).count(), 0, "{shown}");
        }
    }
}
