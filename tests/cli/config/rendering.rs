//! Reports as people read them.

use super::{job, report};

#[test]
fn a_report_shows_file_line_column_source_caret_and_hint_of_every_finding() {
    let text = "[node]\ndrain = 10\n\n[jobs.push]\nshedule = \"0 * * * *\"\ncommand = [\"echo\", \"{hour}\"]\nmax_attempts = 0\n";
    let expected = r#"error[bad-duration]: drain is a number without a unit
 --> jobs.toml:2:9
  |
2 | drain = 10
  |         ^^
  |
  = fix: write drain = "10s" if seconds were meant

error[unknown-key]: unknown key shedule in [jobs.push]
 --> jobs.toml:5:1
  |
5 | shedule = "0 * * * *"
  | ^^^^^^^
  |
  = fix: did you mean schedule?

error[unknown-placeholder]: command[1]: unknown placeholder {hour}; known are {slot}, {slot_start}, {slot_end}, {scheduled_at}, {attempt}, {fence} and {job}; write {{ for a brace
 --> jobs.toml:6:20
  |
6 | command = ["echo", "{hour}"]
  |                    ^^^^^^^^

error[out-of-range]: max_attempts is 0, which is out of range
 --> jobs.toml:7:16
  |
7 | max_attempts = 0
  |                ^
  |
  = fix: from 1 to 999

"#;
    let report = report(text);
    assert_eq!(report.render(false), expected);
    assert_eq!(report.summary(), "jobs.toml: 4 errors");
}

#[test]
fn a_report_for_logs_has_one_line_per_finding() {
    let lines = report(&job("max_attempts = 0\nslot = \"hourly\"")).to_string();
    assert_eq!(
        lines,
        "jobs.toml:4:16: error: max_attempts is 0, which is out of range (from 1 to 999)\n\
         jobs.toml:5:8: error: slot cannot be \"hourly\" (did you mean \"hour\"? One of \"hour\", \"minute\", \"day\", \"tick\", or a duration that divides a day, like \"15m\")"
    );
}

#[test]
fn colour_comes_only_when_asked() {
    let report = report(&job("max_attempts = 0"));
    assert!(!report.render(false).contains('\u{1b}'));
    assert!(report.render(true).contains('\u{1b}'));
}

#[test]
fn a_text_of_escape_codes_reaches_no_terminal() {
    let shown = report(&job("slot = \"\\u001b[31mred\"\n\"\\u001b[2J\" = 1")).render(false);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn of_a_hostile_file_a_hundred_errors_are_shown_and_the_rest_is_counted() {
    let keys: String = (0..5_000).map(|number| format!("k{number} = 1\n")).collect();
    let report = report(&keys);
    assert_eq!(report.findings.len(), 101);
    assert!(report.findings[100].message.ends_with("more findings are not shown"), "{:?}", report.findings[100]);
}

#[test]
fn a_very_long_line_is_cut_around_the_finding() {
    let text = job(&format!("tags = [\"{}\", 5, \"{}\"]", "x".repeat(1_000_000), "y".repeat(1_000_000)));
    let shown = report(&text).render(false);
    assert!(shown.len() < 2_000, "{}", shown.len());
    assert!(shown.contains("tags[1] must be a string"), "{shown}");
}
