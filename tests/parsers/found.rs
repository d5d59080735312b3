//! What was found: inputs that once broke a claim, each with the claim.

use cronward::config::{Environment, parse};
use cronward::exec::check_placeholders;
use cronward::fuzzing;
use cronward::schedule::{Schedule, Timetable};
use cronward::verify::{Inputs, check};

use crate::memory::bounded;

const JOB: &str = r#""job":"a","slot":"2026-11-21T14Z","slot_end":"2026-11-21T15:00:00Z""#;

/// A line of node `a`.
fn line(at: &str, rest: &str) -> String {
    format!("{{\"at\":\"{at}\",\"node\":\"a\",\"instance\":\"i\",{rest}}}\n")
}

fn planned(at: &str, schedule: &str, period: &str) -> String {
    let plan = format!(
        r#""job":"a","event":"planned","schedule":"{schedule}","timezone":"UTC","period":"{period}","max_attempts":3,"lease_ttl_s":60,"retry_delay_s":1,"on_lost":"continue","ours":true"#
    );
    line(at, &plan)
}

#[test]
fn a_period_longer_than_the_calendar_has_no_slot() {
    for period in ["9223372036854775807s", "9223372036854776s"] {
        let table = Timetable::parse("a".parse().unwrap(), "* * * * *", "UTC", period).unwrap();
        assert_eq!(table.slot_at("2026-11-21T14:00:00Z".parse().unwrap()), None, "{period}");
    }
    let journal = planned("2026-11-21T14:00:00Z", "* * * * *", "9223372036854775807s");
    assert!(fuzzing::journal((journal + &line("2026-11-21T16:00:00Z", r#""event":"stopped""#)).as_bytes()));
}

#[test]
fn a_search_backwards_from_before_all_slots_finds_nothing() {
    let schedule = Schedule::parse("* * * * *", "America/New_York".parse().unwrap()).unwrap();
    assert_eq!(schedule.last_until(chrono::DateTime::<chrono::Utc>::MIN_UTC), None);
    assert_eq!(schedule.last_until(chrono::DateTime::UNIX_EPOCH).map(|at| at.timestamp()), Some(0));
}

#[test]
fn a_name_in_a_finding_neither_breaks_its_line_nor_fills_the_screen() {
    let long = "x".repeat(100_000);
    for text in [
        "\"a\\nb\\u001b[2J\" = 1\n".to_owned(),
        format!("[{long}]\n[{long}]\n"),
        format!("[jobs.a]\nschedule = \"0 * * * *\"\ncommand = \"true\"\nenv = {{ A = \"${{B:?{long}}}\" }}\n"),
        "[jobs.\"a\\nb\"]\nschedule = \"0 * * * *\"\ncommand = \"true\"\n".to_owned(),
        "x = \"\u{202e}\u{94}\" y\n".to_owned(),
    ] {
        let report = parse("jobs.toml", text.clone(), &Environment::new(chrono::DateTime::UNIX_EPOCH)).unwrap_err();
        assert!(report.has_errors());
        assert!(!fuzzing::config(text.as_bytes()));
    }
}

#[test]
fn an_unknown_placeholder_is_told_without_its_escapes() {
    let error = check_placeholders("{\x1b[2J}").unwrap_err().to_string();
    assert!(error.starts_with("unknown placeholder {\\x1b[2J}; known are"), "{error}");
}

#[test]
fn what_a_foreign_server_says_of_a_key_moves_no_cursor() {
    assert!(!fuzzing::redis_reply(b"*3\r\n$7\r\ncorrupt\r\n$5\r\n\x1b[2Jk\r\n$3\r\n\xe2\x80\xae\r\n"));
}

#[test]
fn a_line_that_cannot_be_read_is_told_on_one_line() {
    let odd = line("2026-11-21T14:00:00Z", &format!(r#"{JOB},"event":"closed","verdict":"do\nne\u001b[2J""#));
    let error = Inputs::default().journal("a.jsonl", &odd).unwrap_err().to_string();
    assert!(error.starts_with("a.jsonl:1: not a line of a journal"), "{error}");
    assert!(error.contains("`do\\nne\\x1b[2J`"), "{error}");
}

#[test]
fn an_instant_at_the_ends_of_the_calendar_is_refused_with_its_line() {
    let stopped = r#""event":"stopped""#;
    let granted = r#""event":"granted","attempt":1,"used":1,"max_attempts":3,"granted_at":"+262142-12-31T23:59:59Z","token":"0","trigger":"schedule","lease_ttl_s":60,"retry_delay_s":1,"on_lost":"kill""#;
    for text in [
        line("+262142-12-31T23:59:59Z", stopped),
        line("-262143-01-01T00:00:00Z", stopped),
        line("2026-11-21T14:00:00Z", &format!("{JOB},{granted}")),
        line("2026-11-21T14:00:00Z", &JOB.replace("2026-11-21T15:00:00Z", "+262142-12-31T23:59:59Z"))
            .replace('}', r#","event":"closed","verdict":"done"}"#),
    ] {
        let error = Inputs::default().journal("a", &text).unwrap_err().to_string();
        assert!(error.ends_with("is no instant of the years 1970 to 9999"), "{error}");
    }
    let fault = r#"{"at":"+262142-12-31T23:59:59Z","kind":"kill","target":"a"}"#;
    assert!(Inputs::default().faults("f", fault).unwrap_err().to_string().starts_with("f:1: "));
    let run =
        r#"{"job":"a","slot":"2026-11-21T14Z","attempt":1,"fence":1,"node":"a","pid":1,"start_ms":8210266876799999}"#;
    assert!(Inputs::default().recorder("r", run).unwrap_err().to_string().starts_with("r:1: "));
}

#[test]
fn spans_without_measure_add_up_to_no_more_than_there_is() {
    let granted = r#""event":"granted","attempt":1,"used":1,"max_attempts":3,"granted_at":"2026-11-21T14:00:00Z","token":"0","trigger":"schedule","lease_ttl_s":1.8e19,"retry_delay_s":1.8e19,"poll_s":1.8e19,"on_lost":"kill""#;
    let started = r#""event":"run_started","attempt":1,"fence":1,"trigger":"schedule","guarded":true"#;
    let journal = line("2026-11-21T14:00:00Z", &format!("{JOB},{granted}"))
        + &line("2026-11-21T14:00:01Z", &format!("{JOB},{started}"))
        + &line("2026-11-22T14:00:01Z", r#""event":"stopped""#);
    assert!(fuzzing::journal(journal.as_bytes()));
}

#[test]
fn a_clock_that_is_wrong_by_centuries_plans_no_more_slots_than_are_judged_and_that_is_told() {
    let text =
        planned("1970-01-01T00:00:00Z", "* * * * * *", "tick") + &line("9999-12-31T23:59:59Z", r#""event":"stopped""#);
    let mut inputs = Inputs::default();
    inputs.most_planned = 500;
    inputs.journal("a", &text).unwrap();
    let report = check(inputs);
    assert_eq!(report.slots + report.open, 500);
    assert!(report.violations.iter().any(|finding| finding.rule == "too-many-slots"), "{:?}", report.violations);
}

#[test]
fn more_runs_of_a_slot_than_there_are_attempts_are_not_compared_and_that_is_told() {
    let started = |n: usize| {
        let fact =
            format!(r#"{JOB},"event":"run_started","attempt":{n},"fence":1,"trigger":"schedule","guarded":true"#);
        line("2026-11-21T14:00:01Z", &fact)
    };
    let mut text: String = (0..1_500).map(started).collect();
    text += &line("2026-11-21T16:00:01Z", r#""event":"stopped""#);
    let mut inputs = Inputs::default();
    inputs.journal("a", &text).unwrap();
    let report = check(inputs);
    let message = &report.unexplained[0].message;
    assert!(message.contains("1500 runs, of which 999 were compared"), "{message}");
    assert!(message.len() < 10_000, "{} bytes", message.len());
}

#[test]
fn what_is_imported_of_a_crontab_turns_no_reading_direction() {
    for text in
        ["\n\u{202e}", "# \u{202e}\n", "CRON_TZ=\u{202e}\n", "* * * * * echo \u{202e}\n", "A=\u{202e}\n* * * * * a\n"]
    {
        fuzzing::crontab(text.as_bytes());
    }
}

#[test]
fn a_line_that_is_not_imported_is_told_in_a_length_that_can_be_read() {
    let long = "x".repeat(10_000);
    for text in [
        format!("* * * * * {long}/ a\n"),
        format!("CRON_TZ={long}\n"),
        format!("RANDOM_DELAY={long}\n"),
        format!("@{long} a\n"),
    ] {
        fuzzing::crontab(text.as_bytes());
    }
}

#[test]
fn a_crontab_whose_settings_and_jobs_multiply_takes_no_memory_without_bound() {
    let text: String = (0..1_500).map(|n| format!("A{n}=1\n* * * * * j{n}\n")).collect();
    assert!(!bounded("a crontab", fuzzing::crontab, text.as_bytes()));
}

#[test]
fn a_sentinel_of_the_least_epoch_counts_no_more_for_that() {
    let fields =
        ["ip", "10.0.0.1", "port", "1", "flags", "failover_in_progress", "config-epoch", "-9223372036854775808"];
    let items: String = fields.iter().map(|field| format!("${}\r\n{field}\r\n", field.len())).collect();
    assert!(fuzzing::redis_reply(format!("*{}\r\n{items}", fields.len()).as_bytes()));
}
