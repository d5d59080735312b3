//! What is allowed but may not be meant, and what does not go together.

use cronward::config::Severity;

use super::{config, job, report, tells, told};

fn scheduled(schedule: &str, lines: &str) -> String {
    format!("[jobs.a]\nschedule = {schedule:?}\ncommand = [\"true\"]\n{lines}\n")
}

#[track_caller]
fn warns(text: &str, expected: &str) {
    tells(text, expected);
    assert_eq!(report(text).count(Severity::Warning), 1, "{text}");
}

#[track_caller]
fn is_fine(text: &str) {
    assert_eq!(told(text), Vec::<String>::new(), "{text}");
}

#[test]
fn ticks_beyond_the_first_of_a_slot_are_told_to_be_retries() {
    let inherited = |period: &str, schedule| format!("[defaults]\nslot = {period:?}\n{}", scheduled(schedule, ""));
    warns(
        &inherited("hour", "*/10 * * * *"),
        "4:12 extra-ticks: this job will run at most once per hour, although its schedule fires more often",
    );
    warns(&inherited("day", "0 */6 * * *"), "4:12 extra-ticks: this job will run at most once per day");
    is_fine(&scheduled("0 */6 * * *", "slot = \"day\""));
    is_fine(&scheduled("*/10 * * * *", "slot = \"hour\""));
    is_fine(&scheduled("*/10 * * * *", "slot = \"tick\""));
    is_fine(&scheduled("0 * * * *", ""));
    is_fine(&scheduled("*/10 * * * *", "enabled = false"));
}

#[test]
fn a_schedule_that_fires_more_than_once_per_hour_needs_a_slot() {
    for schedule in ["*/5 * * * *", "* * * * *", "0,30 4 * * SUN", "*/10 * * * * *"] {
        let text = scheduled(schedule, "");
        assert!(report(&text).has_errors(), "{schedule}");
        tells(
            &text,
            "2:12 unwritten-slot: the schedule fires more than once per hour, but the job runs at most once per hour unless \
             its slot is written (write slot = \"tick\" to run it every time, or slot = \"hour\" if once per hour is meant)",
        );
    }
    // Neither does the wrong thing: it fires once per hour, or never.
    is_fine(&scheduled("59 * * * *", ""));
}

#[test]
fn the_old_name_of_a_key_is_read_and_mentioned() {
    let old = scheduled("*/10 * * * *", "period = \"tick\"");
    let job = |text: &str| config(text).jobs.into_values().next().unwrap();
    assert_eq!(job(&old), job(&scheduled("*/10 * * * *", "slot = \"tick\"")));
    tells(&old, "4:1 renamed-key: period is the old name of slot (write slot = … instead)");
    assert_eq!((report(&old).count(Severity::Note), report(&old).count(Severity::Warning)), (1, 0));
    let wrong = told(&scheduled("0 * * * *", "period = \"hourly\""));
    assert!(wrong[1].starts_with("4:10 bad-word: period cannot be \"hourly\""), "the name in the file: {wrong:?}");
    let both = scheduled("0 * * * *", "period = \"day\"\nslot = \"hour\"");
    tells(&both, "4:1 renamed-key: period is the old name of slot, which is here too (remove period)");
    assert!(report(&both).has_errors());
}

#[test]
fn a_step_beyond_its_range_is_told_with_what_is_left_of_it() {
    warns(
        &scheduled("*/90 * * * *", ""),
        "2:12 long-step: minute \"*/90\" means minute 0 alone: the step is longer than the range 0-59 (write 0, or a step of \
         at most 59)",
    );
    for (schedule, name) in [
        ("10-20/15 * * * *", "minute \"10-20/15\""),
        ("0 */24 * * *", "hour"),
        ("0 0 */31 * *", "day-of-month"),
        ("0 0 1 JAN-MAR/5 *", "month"),
        ("0 0 * * */7", "day-of-week"),
    ] {
        warns(&scheduled(schedule, ""), &format!("2:12 long-step: {name}"));
    }
    for schedule in ["0 */23 * * *", "5-5/1 * * * *", "0 0 1 */11 *", "0 0 * * 1-5/4"] {
        is_fine(&scheduled(schedule, ""));
    }
}

#[test]
fn two_days_of_which_one_begins_with_a_star_are_told_to_differ_from_cron() {
    warns(
        &scheduled("0 0 */2 * MON", ""),
        "2:12 star-day: day-of-month */2 and day-of-week MON: cronward runs the job when either day fits; Debian's cron runs \
         it only when both fit, because */2 begins with * (write +MON if both must fit, or 1-31/2 instead of */2 if either is \
         enough)",
    );
    warns(&scheduled("0 0 13 * */2", ""), "2:12 star-day: day-of-month 13 and day-of-week */2");
    for same in ["0 0 */2 * *", "0 0 * * */2", "0 0 1-31/2 * MON", "0 0 */2 * +MON", "0 0 13 * FRI", "0 0 0 */2 * MON"]
    {
        is_fine(&scheduled(same, ""));
    }
}

#[test]
fn the_default_lease_of_a_short_slot_is_a_third_of_it() {
    let ttl = |text: &str| config(text).jobs.values().next().unwrap().policy.lease_ttl.as_millis();
    assert_eq!(ttl(&scheduled("0 * * * *", "")), 60_000);
    assert_eq!(ttl(&scheduled("* * * * *", "slot = \"minute\"")), 20_000);
    assert_eq!(ttl(&scheduled("*/2 * * * * *", "slot = \"tick\"")), 666);
    assert_eq!(ttl(&scheduled("0,20 * * * * *", "slot = \"tick\"")), 6_666);
    assert_eq!(ttl(&scheduled("59 59 23 * * *", "slot = \"tick\"")), 60_000);
    assert_eq!(ttl(&scheduled("* * * * * *", "slot = \"tick\"")), 500, "never below what a lease can be");
    assert_eq!(ttl(&scheduled("*/20 * * * * *", "slot = \"tick\"\nlease_ttl = \"9s\"")), 9_000);
    assert_eq!(ttl(&format!("[defaults]\nlease_ttl = \"7s\"\n{}", scheduled("* * * * *", "slot = \"minute\""))), 7_000);
}

#[test]
fn the_default_retry_delay_of_a_short_slot_is_a_sixth_of_it() {
    let delay = |text: &str| config(text).jobs.values().next().unwrap().policy.retry.delay.as_millis();
    for (schedule, lines, millis) in [
        ("0 * * * *", "", 10_000),
        ("* * * * *", "slot = \"minute\"", 10_000),
        ("*/30 * * * * *", "slot = \"tick\"", 5_000),
        ("*/5 * * * * *", "slot = \"tick\"", 833),
        ("* * * * * *", "slot = \"tick\"", 166),
    ] {
        assert_eq!(delay(&scheduled(schedule, lines)), millis, "{schedule}");
        is_fine(&scheduled(schedule, lines));
    }
    let short = scheduled("*/5 * * * * *", "slot = \"tick\"");
    assert_eq!(delay(&format!("{short}retry_delay = \"1s\"\n")), 1_000);
    warns(
        &format!("[defaults]\nretry_delay = \"10s\"\n{short}"),
        "2:15 long-retry-delay: retry_delay = 10s is not shorter than the slot of 5s: nothing is ever retried",
    );
}

#[test]
fn a_done_marker_that_ends_within_its_slot_is_an_error() {
    let report = report(&job("done_ttl = \"1h\""));
    assert!(report.has_errors());
    tells(
        &job("done_ttl = \"1h\""),
        "4:12 short-done-ttl: done_ttl = 1h does not outlive the slot of 1h and a minute of clock skew (write done_ttl = \"1h 1m\"",
    );
    tells(&scheduled("@daily", "slot = \"day\"\ndone_ttl = \"2h\""), "5:12 short-done-ttl");
    tells(&format!("[defaults]\ndone_ttl = \"30m\"\n{}", job("")), "2:12 short-done-ttl");
    is_fine(&format!("[defaults]\ndone_ttl = \"2h\"\n{}", scheduled("@daily", "slot = \"day\"")));
    is_fine(&job("done_ttl = \"1h 1m\""));
}

#[test]
fn a_lease_below_three_round_trips_is_told() {
    warns(
        &format!("[store]\nop_timeout = \"1s\"\n{}", job("lease_ttl = \"2s\"")),
        "6:13 short-lease: lease_ttl = 2s is below three round trips to the store (op_timeout is 1s) (write lease_ttl = \"3s\"",
    );
    is_fine(&format!("[store]\nop_timeout = \"1s\"\n{}", job("lease_ttl = \"3s\"")));
}

#[test]
fn a_warning_about_a_default_is_told_once_whatever_the_number_of_jobs() {
    let jobs = job("") + &job("").replace("jobs.a", "jobs.b");
    warns(&format!("[defaults]\nlease_ttl = \"1s\"\n{jobs}"), "2:13 short-lease");
}

#[test]
fn a_command_that_cannot_die_before_its_lease_ends_is_an_error() {
    let text = job("on_lost = \"kill\"\nlease_ttl = \"10s\"");
    assert!(report(&text).has_errors());
    tells(&text, "4:11 late-kill: on_lost = \"kill\" cannot stop the command before its lease ends: kill_after is 10s");
    is_fine(&job("on_lost = \"kill\"\nlease_ttl = \"10s\"\nkill_after = \"3s\""));
    is_fine(&job("lease_ttl = \"10s\""));
}

#[test]
fn a_timeout_longer_than_the_slot_is_told_when_the_next_slot_waits_for_it() {
    warns(&job("timeout = \"2h\""), "4:11 long-timeout: timeout = 2h is longer than the slot of 1h");
    is_fine(&job("timeout = \"2h\"\nconcurrency = \"allow\""));
    is_fine(&job("timeout = \"none\""));
    is_fine(&scheduled("* * * * *", "slot = \"minute\""));
}

#[test]
fn waits_longer_than_the_slot_are_told() {
    warns(
        &scheduled("*/5 * * * * *", "slot = \"tick\"\nretry_delay = \"10s\""),
        "5:15 long-retry-delay: retry_delay = 10s is not shorter than the slot of 5s: nothing is ever retried",
    );
    warns(&job("retry_delay = \"1h\""), "4:15 long-retry-delay");
    is_fine(&job("retry_delay = \"1h\"\nmax_attempts = 1"));
    warns(&job("jitter = \"1h\""), "4:10 long-jitter: jitter = 1h is not shorter than the slot of 1h");
    warns(&job("alert_after = \"30m\""), "4:15 early-alert: alert_after = 30m is shorter than the slot of 1h");
    warns(
        &job("retry_backoff = \"exponential\"\nretry_max_delay = \"5s\""),
        "5:19 short-max-delay: retry_max_delay = 5s is below retry_delay = 10s",
    );
}

#[test]
fn changes_of_the_clock_that_a_job_notices_are_told() {
    let berlin = "timezone = \"Europe/Berlin\"\nslot = \"day\"";
    tells(
        &scheduled("30 2 * * *", berlin),
        "2:12 dst-shifted: in Europe/Berlin 2027-03-28 02:30:00 does not exist (the clock goes forward): fires at 03:00:00 instead",
    );
    assert_eq!(report(&scheduled("30 2 * * *", berlin)).count(Severity::Note), 1);
    let told = told(&scheduled("*/30 2 * * *", "timezone = \"Europe/Berlin\"\nslot = \"tick\""));
    assert!(told.iter().any(|line| line.contains("dst-skipped")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("dst-repeated")), "{told:#?}");
    is_fine(&scheduled("30 2 * * *", "slot = \"day\""));
    is_fine(&scheduled("0 * * * *", "timezone = \"Europe/Berlin\""));
}

#[test]
fn secrets_in_the_file_are_told_and_never_shown() {
    let text = format!(
        "[store]\nurl = \"redis://:hunter2@h\"\n{}# redis://:hunter2@h\n",
        job("env = { DB_PASSWORD = \"swordfish\", API_TOKEN = \"x1y2z3\", URL = \"http://u:hunter2@h\" }")
    );
    let report = report(&text);
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["secret-in-file"; 4]);
    for shown in [report.render(false), report.to_string(), report.text.clone(), format!("{report:?}")] {
        for secret in ["hunter2", "swordfish", "x1y2z3"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    assert_eq!(report.text.len(), text.len());
}

#[test]
fn what_only_looks_like_a_secret_is_left_alone() {
    is_fine(&job("env = { TOKEN_FILE = \"/run/token\", SECRET = \"${HOSTNAME}\", PASSWORD = \"\", PATH = \"/bin\" }"));
    is_fine(&format!("[store]\nurl = \"redis://:${{HOSTNAME}}@h\"\n{}", job("")));
}

#[test]
fn a_job_that_this_node_does_not_run_is_noted() {
    let text = job("only_on = { zone = \"eu-1\" }");
    tells(&text, "4:11 no-such-label: this node does not run the job: it has no label zone = \"eu-1\"");
    assert_eq!(report(&text).count(Severity::Note), 1);
    is_fine(&format!("[node]\nlabels = {{ zone = \"eu-1\" }}\n{text}"));
}

#[test]
fn a_file_without_jobs_is_told() {
    for text in ["", "# nothing\n", "[jobs]\n", "[node]\n"] {
        warns(text, "1:1 no-jobs: there are no jobs in the file");
        assert!(config(text).jobs.is_empty());
    }
}

#[test]
fn a_lease_longer_than_the_slot_is_an_error_because_it_blocks_the_later_slots() {
    let minute = |lines: &str| scheduled("* * * * *", &format!("slot = \"minute\"\n{lines}"));
    let text = minute("lease_ttl = \"10m\"");
    tells(
        &text,
        "5:13 blocking-lease: lease_ttl = 10m is longer than the slot of 1m: after a crash the lease would block the slots \
         that follow (write lease_ttl = \"20s\" in the job, or leave lease_ttl out of the file)",
    );
    assert!(report(&text).has_errors());
    // Whatever reads the file refuses it: a start, a reload, a command of one job.
    assert!(cronward::config::parse("jobs.toml", text, &super::env()).is_err());
    tells(&scheduled("0 9,10 * * *", "slot = \"tick\"\nlease_ttl = \"2h\""), "5:13 blocking-lease");
    let inherited = format!("[defaults]\nlease_ttl = \"5m\"\n{}", minute(""));
    tells(&inherited, "3:7 blocking-lease: lease_ttl = 5m is longer than the slot of 1m");
    for lease in ["60s", "1s"] {
        is_fine(&format!("[store]\nop_timeout = \"100ms\"\n{}", minute(&format!("lease_ttl = {lease:?}"))));
    }
    warns(
        &minute("lease_ttl = \"10m\"\nconcurrency = \"allow\""),
        "5:13 long-lease: lease_ttl = 10m is longer than the slot of 1m: after a crash no other node takes the slot over",
    );
}

#[test]
fn the_default_lease_never_exceeds_the_slot() {
    for (schedule, period, slot) in [
        ("* * * * *", "minute", 60),
        ("0 * * * *", "hour", 3_600),
        ("0 0 * * *", "day", 86_400),
        ("* * * * * *", "tick", 1),
        ("*/2 * * * * *", "tick", 2),
        ("0 9,10 * * *", "tick", 3_600),
        ("0 0 29 2 *", "tick", 86_400),
    ] {
        let text = scheduled(schedule, &format!("slot = {period:?}"));
        let ttl = config(&text).jobs.values().next().unwrap().policy.lease_ttl;
        assert!(ttl <= std::time::Duration::from_secs(slot), "{schedule} {period}: {ttl:?}");
    }
}

#[test]
fn a_start_deadline_that_the_slot_ends_before_is_noted() {
    let text = job("start_deadline = \"2h\"");
    tells(
        &text,
        "4:18 idle-deadline: start_deadline = 2h has no effect: the slot of 1h ends first (shorten it, or leave it out)",
    );
    assert_eq!((report(&text).count(Severity::Note), report(&text).count(Severity::Warning)), (1, 0));
    tells(&format!("[defaults]\nstart_deadline = \"1h\"\n{}", job("")), "2:18 idle-deadline");
    is_fine(&job("start_deadline = \"59m\""));
    // Meant for the jobs with longer slots.
    is_fine(&format!("[defaults]\nstart_deadline = \"2h\"\n{}", scheduled("0 3 * * *", "slot = \"day\"")));
    is_fine(&format!("[defaults]\nstart_deadline = \"2m\"\n{}", scheduled("* * * * *", "slot = \"minute\"")));
}

#[test]
fn attempts_that_do_not_fit_in_the_slot_are_noted_with_the_number_that_does() {
    let minute = |lines: &str| scheduled("* * * * *", &format!("slot = \"minute\"\n{lines}"));
    let text = minute("max_attempts = 50\nretry_delay = \"59s\"");
    tells(
        &text,
        "5:16 few-attempts: max_attempts = 50 is never reached: with retry_delay = 59s at most 2 attempts fit in the slot of 1m \
         (write max_attempts = 2, or shorten retry_delay)",
    );
    assert_eq!(report(&text).count(Severity::Note), 1);
    tells(&minute("retry_delay = \"30s\""), "5:15 few-attempts: max_attempts = 3 is never reached");
    let doubling =
        job("max_attempts = 10\nretry_delay = \"10m\"\nretry_backoff = \"exponential\"\nretry_max_delay = \"1h\"");
    tells(
        &doubling,
        "4:16 few-attempts: max_attempts = 10 is never reached: with retry_delay = 10m at most 3 attempts fit",
    );
    is_fine(&minute("max_attempts = 2\nretry_delay = \"59s\""));
    is_fine(&minute("max_attempts = 999\nretry_delay = \"0s\""));
    is_fine(&job("max_attempts = 7"));
}

#[test]
fn weekday_numbers_of_quartz_and_a_zone_in_the_schedule_are_errors_with_what_to_write() {
    let text = scheduled("0 0 2 ? * 2-6", "slot = \"day\"");
    assert!(report(&text).has_errors());
    tells(
        &text,
        "2:12 bad-schedule: schedule: day-of-week \"2-6\" beside day-of-month \"?\" is Quartz's notation, whose numbers are other days \
         than cron's (write names: Quartz counts 1 = Sunday, so 2-6 is MON-FRI there)",
    );
    tells(
        &scheduled("CRON_TZ=Europe/Berlin 0 9 * * *", "slot = \"day\""),
        "2:12 bad-schedule: schedule: holds the time zone \"Europe/Berlin\", which has a key of its own (write schedule = \"0 9 * * \
         *\" and timezone = \"Europe/Berlin\"; on a command line --timezone Europe/Berlin)",
    );
    tells(
        &scheduled("0 0 30 2 *", ""),
        "2:12 bad-schedule: schedule: never fires: no date fits (the months named have no day 30: write at most 29, or L for the last \
         day)",
    );
}
