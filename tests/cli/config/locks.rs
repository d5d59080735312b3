//! `locks` and `lock_wait`: what is read, what is refused and with which words, and what is told of locks that do not go together.

use std::time::Duration;

use cronward::config::Severity;
use cronward::job::JobSpec;

use super::{config, job, report, tells, told};

fn only(text: &str) -> JobSpec {
    config(text).jobs.into_values().next().unwrap()
}

fn locks(lines: &str) -> String {
    only(&job(lines)).policy.locks.map(|demands| demands.to_string()).unwrap_or_default()
}

/// An error, and nothing else.
#[track_caller]
fn refuses(locks: &str, expected: &str) {
    let text = job(&format!("locks = {locks}"));
    assert!(report(&text).has_errors(), "{text}");
    tells(&text, expected);
}

#[test]
fn a_lock_is_a_name_or_a_table_with_a_mode_or_permits() {
    assert_eq!(locks("locks = [\"db-heavy\"]"), "db-heavy");
    assert_eq!(locks("locks = [{ name = \"a\" }, { name = \"b\", mode = \"shared\" }]"), "a, b:shared");
    assert_eq!(locks("locks = [{ name = \"a\", mode = \"write\" }, { name = \"b\", mode = \"read\" }]"), "a, b:shared");
    assert_eq!(locks("locks = [{ name = \"gpu\", permits = 2, of = 4 }]"), "gpu:2/4");
    assert_eq!(locks("locks = [{ name = \"gpu\", of = 4 }]"), "gpu:1/4");
    assert_eq!(locks(""), "");
}

#[test]
fn a_job_has_the_locks_of_the_defaults_unless_it_says_its_own() {
    let with_defaults = |lines: &str| format!("[defaults]\nlocks = [\"a\"]\nlock_wait = \"5m\"\n{}", job(lines));
    let policy = |lines: &str| only(&with_defaults(lines)).policy;
    assert_eq!(policy("").locks.unwrap().to_string(), "a");
    assert_eq!(policy("").lock_wait, Some(Duration::from_secs(300)));
    assert_eq!(policy("locks = [\"b\"]").locks.unwrap().to_string(), "b");
    assert_eq!(policy("locks = []").locks, None);
    assert_eq!(policy("lock_wait = \"slot\"").lock_wait, None);
}

#[test]
fn what_is_no_lock_is_refused_with_what_to_write() {
    refuses("\"a\"", "4:9 wrong-type: locks must be a list of locks, not a string (write locks = [\"db-heavy\"])");
    refuses("[3]", "4:10 wrong-type: locks[0] must be a name or a table, not a whole number (write { name = \"gpu\"");
    refuses("[\"A b\"]", "4:10 bad-name: locks[0]: lock name ");
    assert!(told(&job("locks = [\"A b\"]"))[0].ends_with("(for example \"a-b\")"));
    assert!(told(&job("locks = [\"gpu:1/4\"]"))[0].ends_with("(write { name = \"gpu\", permits = 1, of = 4 })"));
    refuses("[{}]", "4:10 missing-name: locks[0] has no name (write { name = \"gpu\" })");
    refuses("[{ name = \"a\", weight = 1 }]", "4:24 unknown-key: locks[0]: unknown key weight (known here: name, mode");
    refuses("[{ name = \"a\", mod = \"shared\" }]", "4:24 unknown-key: locks[0]: unknown key mod (did you mean mode?)");
    refuses("[{ name = \"a\", mode = \"shard\" }]", "4:31 bad-word: locks[0].mode cannot be \"shard\"");
    refuses(
        "[{ name = \"a\", mode = \"shared\", of = 4 }]",
        "4:10 both-modes: locks[0] has a mode and permits (keep mode",
    );
    refuses(
        "[{ name = \"a\", permits = 1 }]",
        "4:10 missing-of: locks[0] says how many permits it takes and not of how",
    );
    refuses(
        "[{ name = \"a\", permits = 0, of = 4 }]",
        "4:34 out-of-range: locks[0].permits is 0, which is out of range (from 1 to 1000000)",
    );
    refuses(
        "[{ name = \"a\", of = 0 }]",
        "4:29 out-of-range: locks[0].of is 0, which is out of range (from 1 to 1000000)",
    );
    let too_many = "4:10 too-many-permits: locks[0]: gpu: 5 permits of 4 can never be held (make permits at most of)";
    refuses("[{ name = \"gpu\", permits = 5, of = 4 }]", too_many);
    refuses("[\"a\", { name = \"a\" }]", "4:9 duplicate-lock: locks: a is named twice in one request (name it once)");
    let many: Vec<String> = (0..17).map(|at| format!("\"l{at}\"")).collect();
    refuses(
        &format!("[{}]", many.join(", ")),
        "4:9 too-many-locks: locks: a request names at most 16 locks, not 17 (take",
    );
    tells(&job("lock_wait = \"0s\""), "4:13 out-of-range: lock_wait is 0s");
    tells(&job("mutex = [\"a\"]"), "4:1 unknown-key: unknown key mutex in [jobs.a] (did you mean locks?)");
}

#[test]
fn a_run_without_a_guard_would_be_one_without_its_locks() {
    let text = job("locks = [\"a\"]\non_store_error = \"run\"");
    assert!(report(&text).has_errors());
    tells(
        &text,
        "5:18 unguarded-locks: on_store_error = \"run\" would run the job without its locks (write on_store_error",
    );
    let inherited = format!("[defaults]\non_store_error = \"run\"\n{}", job("locks = [\"a\"]"));
    tells(&inherited, "2:18 unguarded-locks: ");
}

#[test]
#[cfg(feature = "redis-redlock")]
fn a_store_that_keeps_no_locks_could_never_run_the_job() {
    let text = format!("[store]\nurl = \"redlock://a,b,c\"\n{}", job("locks = [\"a\"]"));
    let found = told(&text);
    let wanted = "no-locks: the store redlock keeps no locks: a could never run";
    assert!(found.iter().any(|line| line.contains(wanted)), "{found:?}");
    assert!(report(&text).has_errors());
    // However many: one line.
    let more: String = (0..9)
        .map(|number| format!("[jobs.m{number}]\nschedule = \"@hourly\"\ncommand = \"true\"\nlocks = [\"a\"]\n"))
        .collect();
    let found = told(&format!("{text}{more}"));
    let lines: Vec<&String> = found.iter().filter(|line| line.contains("no-locks")).collect();
    assert_eq!(lines.len(), 1, "{found:?}");
    assert!(lines[0].contains("keeps no locks: a, m0, m1") && lines[0].contains("more could never run"), "{lines:?}");
}

/// Two jobs, each with these locks.
fn two(a: &str, b: &str) -> String {
    format!("{}[jobs.b]\nschedule = \"@hourly\"\ncommand = [\"true\"]\nlocks = {b}\n", job(&format!("locks = {a}")))
}

#[test]
fn two_sizes_of_one_pool_are_told_and_exclusive_beside_permits_is_not() {
    let gpu = |of: &str| format!("[{{ name = \"gpu\"{of} }}]");
    let text = two(&gpu(", of = 4"), &gpu(", of = 2"));
    tells(
        &text,
        "4:9 lock-limits: gpu is limited to 4 here and to 2 in job b: the smaller limit counts while its holder is",
    );
    assert_eq!(report(&text).count(Severity::Warning), 1);
    assert_eq!(told(&two(&gpu(", of = 4"), &gpu(""))), Vec::<String>::new());
    assert_eq!(told(&two(&gpu(", of = 4"), &gpu(", mode = \"shared\""))), Vec::<String>::new());
}

#[test]
fn a_lock_that_nobody_else_names_and_one_that_is_held_without_end_are_mentioned() {
    let lone = job("locks = [\"a\"]");
    tells(&lone, "4:9 lone-lock: no other job of this file names a");
    assert_eq!((report(&lone).count(Severity::Note), report(&lone).count(Severity::Warning)), (1, 0));
    assert_eq!(told(&job("locks = [\"a\"]\nconcurrency = \"allow\"")), Vec::<String>::new());
    let other = "[jobs.b]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\nlocks = [\"a:no\"]\n";
    assert!(!told(&format!("{lone}{other}")).iter().any(|line| line.contains("lone-lock")), "who knows what it means");
    let endless = format!("{}timeout = \"none\"\n", two("[\"a\"]", "[\"a\"]"));
    tells(&endless, "8:9 no-timeout: job b may hold a without end: timeout is none");
}

#[test]
fn a_wait_that_is_longer_than_the_slot_and_one_that_uses_up_its_numbers_are_told() {
    let text = |wait: &str| {
        job(&format!("locks = [\"a\"]\nconcurrency = \"allow\"\nretry_delay = \"1s\"\nlock_wait = {wait:?}"))
    };
    tells(
        &text("2h"),
        "7:13 long-lock-wait: lock_wait = 2h is longer than the slot of 1h: the wait ends with the slot",
    );
    tells(&text("1s"), "7:13 short-lock-wait: lock_wait = 1s may be over more than 500 times in the slot");
    assert_eq!(told(&text("20m")), Vec::<String>::new());
    let without = "lock_wait = \"20m\"";
    tells(&job(without), "4:13 lock-wait-without-locks: lock_wait = 20m has no effect: the job names no locks");
    assert_eq!(told(&format!("[defaults]\n{without}\n{}", job(""))), Vec::<String>::new());
}

/// Jobs at two o'clock that hold one lock, each with these lines besides.
fn at_two(jobs: &[(&str, &str)]) -> String {
    let one = |(name, lines): &(&str, &str)| {
        format!("[jobs.{name}]\nschedule = \"0 2 * * *\"\ncommand = [\"true\"]\nlocks = [\"db-heavy\"]\n{lines}\n")
    };
    jobs.iter().map(one).collect()
}

const BACKUP: (&str, &str) = ("backup", "timeout = \"30m\"");
const EXPORT: (&str, &str) = ("export", "timeout = \"40m\"");

#[test]
fn jobs_that_share_a_lock_and_do_not_fit_into_their_slots_are_told_with_the_numbers() {
    let text = at_two(&[("report", "timeout = \"30m\""), EXPORT, BACKUP]);
    tells(
        &text,
        "4:9 locks-do-not-fit: at 2026-11-22 02:00 UTC backup, export and report share db-heavy: with timeouts of 30m, 40m \
         and 30m report starts at 03:10, and its slot ends at 03:00 (shorten the timeouts, move a schedule, or give it a \
         longer slot (one attempt each was counted))",
    );
    assert_eq!(report(&text).count(Severity::Warning), 1);
    let fits = |lines: &str| assert_eq!(told(&at_two(&[("report", lines), EXPORT, BACKUP])), Vec::<String>::new());
    fits("slot = \"day\"");
    fits("enabled = false");
    let later = at_two(&[("report", "")]).replace("0 2", "30 2");
    assert_eq!(told(&format!("{later}{}", at_two(&[EXPORT]))), Vec::<String>::new());
    let shared =
        at_two(&[("report", ""), EXPORT, BACKUP]).replace("\"db-heavy\"", "{ name = \"db\", mode = \"read\" }");
    assert_eq!(told(&shared), Vec::<String>::new());
}

#[test]
fn a_wait_that_ends_before_the_lock_is_free_is_told_by_its_own_name() {
    let export = |lines: &str| at_two(&[BACKUP, ("export", lines)]);
    tells(
        &export("lock_wait = \"20m\""),
        "9:9 locks-do-not-fit: at 2026-11-22 02:00 UTC backup and export share db-heavy: with timeouts of 30m and 30m \
         export starts at 02:30, and its lock_wait is over at 02:20",
    );
    tells(
        &export("start_deadline = \"30m\""),
        "9:9 locks-do-not-fit: at 2026-11-22 02:00 UTC backup and export share db-heavy: with timeouts of 30m and 30m \
         export starts at 02:30, and its start_deadline passes at 02:30",
    );
    assert_eq!(told(&export("start_deadline = \"31m\"")), Vec::<String>::new());
}

#[test]
fn a_job_that_runs_beside_itself_may_not_fit_beside_itself_and_each_job_is_told_once() {
    let pool = |lines: &str| {
        format!(
            "[jobs.a]\nschedule = \"*/10 * * * *\"\nslot = \"tick\"\ncommand = [\"true\"]\nlocks = [{{ name = \"p\", of = 2 }}]\n\
             timeout = \"25m\"\n{lines}\n"
        )
    };
    let allowed = pool("concurrency = \"allow\"");
    tells(
        &allowed,
        "5:9 locks-do-not-fit: at 2026-11-21 12:40 UTC a asks for p: with a timeout of 25m a starts at 12:50, and its \
         slot ends at 12:50",
    );
    assert_eq!(told(&allowed.replace("25m", "15m")), Vec::<String>::new());
    tells(&pool("").replace("25m", "10m"), "5:9 lone-lock: no other job of this file names p");
}

#[test]
fn of_many_jobs_a_few_are_named_and_one_without_a_timeout_has_a_note_of_its_own() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let text = at_two(&names.map(|name| (name, "timeout = \"12m\"")));
    tells(
        &text,
        "29:9 locks-do-not-fit: at 2026-11-22 02:00 UTC a, b, c, d, 1 more and f share db-heavy: with timeouts of 12m, 12m, \
         12m, 12m, others and 12m f starts at 03:00, and its slot ends at 03:00",
    );
    tells(&at_two(&[BACKUP, ("export", "timeout = \"none\"")]), "9:9 no-timeout: ");
}

#[test]
fn however_many_jobs_share_a_lock_the_findings_about_it_are_few() {
    let many = |lines: &str| {
        let names: Vec<String> = (10..90).map(|number| format!("j{number}")).collect();
        at_two(&names.iter().map(|name| (name.as_str(), lines)).collect::<Vec<_>>())
    };
    let found = told(&many("timeout = \"30m\""));
    assert_eq!(found.len(), 4, "{found:#?}");
    let rest = "75 more jobs that name db-heavy may not begin before the end of the slot either: j15, j16, j17, j18 and 71 more";
    assert!(found.iter().any(|line| line.contains(rest)), "{found:#?}");
    let found = told(&many("timeout = \"none\""));
    assert_eq!(found.len(), 4, "{found:#?}");
    let rest = "77 more jobs may hold db-heavy without end: j13, j14, j15, j16 and 73 more: timeout is none";
    assert!(found.iter().any(|line| line.contains(rest)), "{found:#?}");
    let sizes = |number: usize| format!("{{ name = \"gpu\", of = {} }}", if number == 10 { 2 } else { 4 });
    let pools: String = (10..90)
        .map(|number| {
            many("").split_inclusive("\n\n").nth(number - 10).unwrap().replace("\"db-heavy\"", &sizes(number))
        })
        .collect();
    let found: Vec<String> = told(&pools).into_iter().filter(|line| line.contains("lock-limits")).collect();
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(
        found[3].contains("gpu is limited to more than 2 in 76 more jobs: j14, j15, j16, j17 and 72 more"),
        "{found:#?}"
    );
}
