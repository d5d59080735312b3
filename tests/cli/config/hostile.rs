//! No text makes the check panic, whatever it is, and what it answers can always be shown.

use cronward::config::{load, parse};
use proptest::prelude::*;

use super::env;

const SAMPLE: &str = include_str!("../../../jobs.toml");

/// Pieces that mean something to some part of the check, and some that should not.
const PIECES: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    "\"",
    "\"\"\"",
    "'",
    "'''",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "#",
    ",",
    ".",
    " ",
    "\\u0000",
    "\\",
    "\0",
    "\u{feff}",
    "\u{1b}[31m",
    "ä",
    "日本",
    "👩‍👩‍👧",
    "\u{202e}",
    "node",
    "store",
    "defaults",
    "http",
    "jobs",
    "jobs.a",
    "[jobs.a]\n",
    "[defaults]\n",
    "[store]\n",
    "schedule",
    "command",
    "env",
    "period",
    "slot",
    "timezone",
    "lease_ttl",
    "done_ttl",
    "url",
    "url_file",
    "listen",
    "only_on",
    "max_attempts",
    "\"* * * * *\"",
    "\"0 0 31 2 *\"",
    "\"@hourly\"",
    "\"tick\"",
    "\"day\"",
    "\"Europe/Berlin\"",
    "\"redis://:p@h\"",
    "\"://:@\"",
    "\"${\"",
    "\"${A:-b}\"",
    "\"$\"",
    "\"{slot\"",
    "\"{}\"",
    "\"1h 30m\"",
    "\"99999999999999999999d\"",
    "0",
    "-1",
    "0xff",
    "1e400",
    "nan",
    "99999999999999999999",
    "1979-05-27",
    "true",
    " = ",
    "{ A = \"x\", ",
    "[\"true\"]",
    "[[[[[[[[[[[[[[[[[[[[[[[[",
    "a.b.c.d",
    "\"a\".\"b\"",
    "/",
    "12:00:00",
];

fn text_of_pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

/// The sample with some bytes cut, doubled or replaced by pieces.
fn mutated_sample() -> impl Strategy<Value = String> {
    let edit = (0..SAMPLE.len(), 0..40_usize, prop::sample::select(PIECES));
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text = SAMPLE.to_owned();
        for (at, length, piece) in edits {
            let start = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let end = (start + length..).find(|at| *at >= text.len() || text.is_char_boundary(*at)).unwrap_or(start);
            text.replace_range(start..end.min(text.len()), piece);
        }
        text
    })
}

fn survives(text: &str) {
    let outcome = parse("jobs.toml", text.to_owned(), &env());
    let usable = outcome.is_ok();
    let report = match outcome {
        Ok((config, report)) => {
            assert_eq!(config.hash().len(), 16);
            assert_eq!(config.entries().len(), config.jobs.len());
            report
        }
        Err(report) => report,
    };
    assert_eq!(report.has_errors(), !usable);
    assert_eq!(report.text.len(), text.len());
    let shown = report.render(true) + &report.render(false) + &report.to_string() + &report.summary();
    assert!(shown.len() >= report.findings.len());
    assert_eq!(report.to_findings().len(), report.findings.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_of_meaningful_pieces_is_survived(text in text_of_pieces()) {
        survives(&text);
    }

    #[test]
    fn a_mutated_sample_is_survived(text in mutated_sample()) {
        survives(&text);
    }

    #[test]
    fn any_characters_are_survived(text in "\\PC{0,200}|(.|\n|\r){0,100}") {
        survives(&text);
    }

    #[test]
    fn any_bytes_in_a_file_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let _ = load(file.path(), &env()).map_err(|error| error.to_string());
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for text in
        ["x = ".to_owned() + &"[".repeat(100_000), "a.".repeat(100_000), "x = ".to_owned() + &"{a=".repeat(50_000)]
    {
        survives(&text);
    }
}

#[test]
fn a_file_of_hundreds_of_jobs_is_read_whole() {
    let jobs: String =
        (0..300).map(|n| format!("[jobs.j{n}]\nschedule = \"{} * * * *\"\ncommand = [\"true\"]\n", n % 60)).collect();
    let (config, report) = parse("jobs.toml", jobs, &env()).unwrap();
    assert_eq!((config.jobs.len(), report.findings.len()), (300, 0));
}
