//! One slot, shown and its output printed, against a real store.

use crate::filled::Filled;

#[test]
fn show_tells_all_that_is_known_of_a_slot() {
    let store = Filled::new();
    let told = store.run(&["show", "billing"]);
    let (key, file) = (&*store.key, store.file());
    assert_eq!((told.code, &*told.stderr), (0, ""));
    assert!(told.stdout.starts_with(&format!("billing@{key}  running\n")), "{}", told.stdout);
    for part in [
        "\n  attempts  2 of 3\n",
        "\n  lease     b, attempt 2, for another ",
        "\nattempt 1  exit 7\n  node      a\n  trigger   schedule\n",
        "\n    | no route\n",
        "\nattempt 2  running\n  node      b\n  trigger   retry\n",
        &format!("\nkept at\n  {file}  ("),
        "\n  namespace = 'default' AND job = 'billing' AND slot = '",
    ] {
        assert!(told.stdout.contains(part), "{part:?} is not in\n{}", told.stdout);
    }
}

#[test]
fn the_rows_that_show_names_are_there() {
    let store = Filled::new();
    let told = store.run(&["show", "mail"]).stdout;
    let rows = told.lines().find_map(|line| line.trim().strip_suffix("  (the rows)")).unwrap();
    let file = store.file();
    let count: i64 = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut file = <sqlx::SqliteConnection as sqlx::Connection>::connect(&file).await.unwrap();
        let query = format!("SELECT count(*) FROM outputs WHERE {rows}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(&mut file).await.unwrap()
    });
    assert_eq!(count, 3);
}

#[test]
fn a_hostile_output_reaches_no_terminal_through_show() {
    let told = Filled::new().run(&["show", "mail"]).stdout;
    assert!(told.contains("    | line 12 \\x1b[31m\n") && !told.contains('\u{1b}'), "{told}");
    assert!(!told.contains("| line 2 "), "only the last lines: {told}");
    assert!(told.contains("--attempt 3"), "it says how to see the rest: {told}");
}

#[test]
fn logs_prints_the_last_attempt_as_it_is() {
    let store = Filled::new();
    let long: String = (1..=12).map(|n| format!("line {n} \u{1b}[31m\n")).collect();
    let told = store.run(&["logs", "mail"]);
    assert_eq!((told.code, told.stdout, &*told.stderr), (0, long, ""));
    let first = store.run(&["logs", &format!("billing@{}", store.key), "--attempt", "1"]);
    assert_eq!((first.code, &*first.stdout, &*first.stderr), (0, "no route\n", ""));
}

#[test]
fn logs_of_what_has_none_says_so_beside_an_empty_result() {
    let store = Filled::new();
    let running = store.run(&["logs", "billing"]);
    assert_eq!((running.code, &*running.stdout), (0, ""));
    assert_eq!(running.stderr, format!("attempt 2 of billing@{} has no output (running)\n", store.key));
    let never = store.run(&["logs", "quiet"]);
    assert_eq!((never.code, &*never.stdout), (0, ""));
    assert_eq!(never.stderr, format!("quiet@{} has no attempt yet\n", store.key));
    let wrong = store.run(&["logs", "mail", "--attempt", "9"]);
    assert_eq!((wrong.code, &*wrong.stdout), (64, ""));
    assert!(wrong.stderr.contains("its attempts are: 1, 2, 3"), "{}", wrong.stderr);
}

#[test]
fn a_job_that_nobody_knows_is_answered_with_the_nearest_name() {
    let store = Filled::new();
    for verb in ["show", "logs", "next"] {
        let told = store.run(&[verb, "biling"]);
        assert_eq!((told.code, &*told.stdout), (64, ""), "{verb}");
        assert_eq!(told.stderr, "error: no job biling: did you mean billing?\n", "{verb}");
    }
}

#[test]
fn a_key_at_which_no_slot_starts_is_answered_with_the_slot_around_it() {
    let store = Filled::new();
    let told = store.run(&["show", "billing@2026-11-21T14Z"]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert_eq!(
        told.stderr,
        "error: no slot of billing starts at 2026-11-21T14Z: that time lies in billing@2026-11-16T07:34Z\n"
    );
}

#[test]
fn the_slot_before_is_one_back() {
    let store = Filled::new();
    let told = store.run(&["show", "billing@-1"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("  attempts  0 of 3\n") && !told.stdout.contains(&*store.key), "{}", told.stdout);
}
