//! How soon a slot was begun, for the first time and again: with everything well, and with something that excuses it.

use std::time::Duration;

use crate::clock::between;
use crate::schedule::Timetable;
use crate::verify::Class;
use crate::verify::tests::{Book, FILLER, PLAN};

#[test]
fn a_retry_after_a_failure_that_was_told_is_an_explained_repeat() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 2, "success").later();
    let report = book.is_clean_and(Class::Repeat);
    assert_eq!(
        report.explained[0].why,
        ["attempt 2 on b was started after attempt 1 on a: attempt 1 on a ended with failure"]
    );
    assert_eq!(report.recovery.failure.max_s, Some(1.05));
}

#[test]
fn a_repeat_after_a_crash_is_explained_by_the_fault_or_by_the_silence_of_the_node() {
    let crashed = Book::new().starts("a", 0.1, 1);
    let taken = crashed.run("b", 6.5, 8.0, 2, "success").node("b", 900.0, FILLER);
    assert_eq!(taken.is_clean_and(Class::Repeat).recovery.crash.count, 1);
    let report = taken.fault(3.0, "kill", "a").is_clean_and(Class::Repeat);
    assert_eq!(report.recovery.crash.max_s, Some(3.5));
    let sample = &report.recovery.crash.samples[0];
    assert_eq!((&*sample.slot, sample.took_s, sample.bound_s), ("push@2026-11-21T14Z", 3.5, 7.0));
    assert_eq!(report.recovery.crash.worst_ratio, Some(0.5));
    let said = "next attempt after a crash: 1 seen, p50 3.500s, p99 3.500s, max 3.500s, at most 50 % of its bound\n";
    assert!(report.to_string().contains(said), "{report}");
}

#[test]
fn a_recovery_beyond_its_bound_is_caught_unless_something_else_went_wrong_too() {
    let slow = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.2, 3.0, 2, "success").later();
    assert_eq!(slow.faulted(), ["late-recovery"]);
    assert!(slow.report_with(Duration::from_millis(150)).is_clean());
    let late_shell = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 2, "success").later();
    late_shell.recorded("a", 0.1, Some(1.0), 1).recorded("b", 2.9, Some(3.0), 2).is_clean_and(Class::Repeat);
    slow.clone().fault(1.5, "delay", "store").is_clean_and(Class::Repeat);
    slow.node("b", 0.5, r#""event":"store_lost","error":"x""#).is_clean_and(Class::Repeat);
    let crash = Book::new().starts("a", 0.1, 1).run("b", 10.2, 11.0, 2, "success").fault(3.0, "kill", "a");
    assert_eq!(crash.clone().node("b", 900.0, FILLER).faulted(), ["late-recovery"]);
    let report = crash.fault(4.0, "stop", "b").report();
    assert!(report.is_clean() && report.recovery.crash.count == 0, "{report}");
}

/// The store has the failure, and the journal of the node that died has not.
#[test]
fn a_node_that_died_after_it_recorded_a_failure_leaves_the_retry_to_wait_for() {
    let crashed = Book::new().starts("a", 0.1, 1).fault(3.0, "kill", "a");
    let waits = |book: Book| book.slot("b", 3.2, r#""event":"claim_answered","answer":"backoff""#);
    let begins = |book: Book, at: f64| book.run("b", at, at + 1.0, 2, "success").node("b", 900.0, FILLER);
    begins(waits(crashed.clone()), 10.9).is_clean_and(Class::Repeat);
    assert_eq!(begins(waits(crashed.clone()), 11.1).faulted(), ["late-recovery"]);
    assert_eq!(begins(crashed, 10.9).faulted(), ["late-recovery"]);
}

#[test]
fn nobody_taking_over_from_a_node_that_died_is_caught() {
    let book = Book::new().starts("a", 0.1, 1).fault(3.0, "kill", "a").closed("b", 602.0, "missed");
    assert!(book.node("b", 900.0, FILLER).faulted().contains(&"late-recovery"));
}

/// The plan with more keys: `ours` is its last one.
fn plan(more: &str) -> String {
    format!("{PLAN},{more}")
}

/// Both nodes plan the job before its tick.
fn planned(more: &str) -> Book {
    Book::new().node("a", -3.0, &plan(more)).node("b", -3.0, &plan(more))
}

fn well() -> Book {
    planned(r#""jitter_s":0.0"#)
}

/// The slot is begun then, by a node that does it at once.
fn begun(book: &Book, seconds: f64) -> Book {
    book.clone().run("a", seconds, seconds + 1.0, 1, "success").later()
}

/// On time up to one instant, and too late half a second after it.
#[track_caller]
fn is_due_by(book: &Book, seconds: f64) {
    begun(book, seconds - 0.1).is_clean_and(Class::Once);
    assert_eq!(begun(book, seconds + 0.5).faulted(), ["late-first-start"]);
}

#[test]
fn a_first_start_long_after_the_tick_with_everything_well_is_caught() {
    is_due_by(&well(), 7.0);
    let late = begun(&well(), 300.0);
    let report = late.report();
    let said = "attempt 1 on a began 300.000s after 14:00:00.000Z, from when on a could have; the bound is 7.000s";
    assert_eq!(report.violations[0].message, said);
    assert_eq!(report.tally(Class::Once).slots, 1, "{report}");
    assert!(late.report_with(Duration::from_secs(294)).is_clean(), "a machine that lets processes wait");
}

#[test]
fn a_store_without_wake_ups_has_one_look_more() {
    let mut book = begun(&well(), 9.0);
    book.journals = book.journals.replace(
        r#""retry_delay_s":1.0,"on_lost":"continue""#,
        r#""retry_delay_s":1.0,"poll_s":3.0,"on_lost":"continue""#,
    );
    book.is_clean_and(Class::Once);
}

#[test]
fn the_jitter_of_the_job_counts() {
    let table = Timetable::parse("push".parse().unwrap(), "*/10 * * * *", "UTC", "tick").unwrap();
    let delay = table.with_jitter(Duration::from_secs(300)).delay().as_secs_f64();
    assert!(delay > 1.0, "{delay}");
    is_due_by(&planned(r#""jitter_s":300.0"#), delay + 7.0);
}

#[test]
fn where_the_jitter_or_the_plan_is_not_told_nothing_is_claimed() {
    for book in [Book::new(), Book::new().node("a", -3.0, PLAN).node("b", -3.0, PLAN)] {
        begun(&book, 300.0).is_clean_and(Class::Once);
    }
}

#[test]
fn who_may_not_claim_the_job_or_may_start_it_no_more_is_not_late() {
    let elsewhere = plan(r#""jitter_s":0.0"#).replace(r#""ours":true"#, r#""ours":false"#);
    let book = Book::new().node("a", -3.0, &elsewhere).node("b", -3.0, &elsewhere);
    begun(&book, 300.0).is_clean_and(Class::Once);
    begun(&planned(r#""jitter_s":0.0,"start_deadline_s":5.0"#), 300.0).is_clean_and(Class::Once);
    assert_eq!(begun(&planned(r#""jitter_s":0.0,"start_deadline_s":60.0"#), 300.0).faulted(), ["late-first-start"]);
    let told = well().slot("b", 1.0, r#""event":"start_deadline_passed""#);
    begun(&told, 300.0).is_clean_and(Class::Once);
}

/// With a node that had the job before all this, and left.
fn known(book: Book) -> Book {
    let started = book.node("c", -60.0, r#""event":"started","jobs":1"#).node("c", -60.0, &plan(r#""jitter_s":0.0"#));
    started.node("c", -59.0, r#""event":"store_reached""#).node("c", -50.0, r#""event":"stopped""#)
}

#[test]
fn a_tick_from_before_any_journal_plans_the_job_need_not_be_owed() {
    let reloaded =
        Book::new().node("a", 290.0, r#""event":"reloaded","jobs":1"#).node("a", 290.0, &plan(r#""jitter_s":0.0"#));
    begun(&reloaded, 500.0).is_clean_and(Class::Once);
    let known = known(reloaded);
    assert_eq!(begun(&known, 500.0).faulted(), ["late-first-start"]);
    // No node that had the job lived through the loss.
    begun(&known.fault(100.0, "wipe", "store"), 500.0).is_clean_and(Class::Once);
}

#[test]
fn a_node_that_came_late_begins_when_it_has_looked() {
    let up = |book: Book, node: &str, seconds: f64| {
        let started = book.node(node, seconds, r#""event":"started","jobs":1"#);
        started.node(node, seconds + 0.1, r#""event":"store_reached""#).node(node, seconds, &plan(r#""jitter_s":0.0"#))
    };
    let alone = up(known(Book::default()), "a", 290.0);
    is_due_by(&alone, 299.0);
    let unreached = known(Book::default()).node("a", 0.0, r#""event":"started","jobs":1"#).node(
        "a",
        0.0,
        &plan(r#""jitter_s":0.0"#),
    );
    is_due_by(&unreached.node("a", 100.0, r#""event":"store_reached""#), 109.0);
    let silent = up(Book::default(), "b", -3.0);
    let book = up(silent, "a", 290.0).run("a", 291.0, 292.0, 1, "success").node("a", 900.0, FILLER);
    book.is_clean_and(Class::Once);
}

#[test]
fn a_job_that_came_with_a_reload_is_begun_when_the_node_has_looked() {
    let reloaded = |book: Book, node: &str| {
        book.node(node, 290.0, r#""event":"reloaded","jobs":1"#).node(node, 290.0, &plan(r#""jitter_s":0.0"#))
    };
    is_due_by(&reloaded(reloaded(known(Book::new()), "a"), "b"), 299.0);
}

#[test]
fn who_was_away_from_the_store_or_stood_still_is_counted_from_its_return() {
    let away = |book: Book, node: &str| {
        book.node(node, -1.0, r#""event":"store_lost","error":"x""#).node(node, 290.0, r#""event":"store_reached""#)
    };
    is_due_by(&away(away(well(), "a"), "b"), 299.0);
    assert_eq!(begun(&away(well(), "a"), 295.0).faulted(), ["late-first-start"], "the other one was in touch");
    let asleep = |book: Book, node: &str| book.node(node, 290.0, r#""event":"gap","slots":1"#);
    is_due_by(&asleep(asleep(well(), "a"), "b"), 299.0);
}

#[test]
fn a_fault_excuses_as_long_as_it_and_what_follows_from_it_last() {
    // The lease and its third, the retry and a second.
    is_due_by(&well().fault_until(-1.0, 100.0, "partition", "store"), 117.0);
    assert_eq!(begun(&well().fault(50.0, "partition", "store"), 60.0).faulted(), ["late-first-start"], "not before it");
    for kind in ["drain", "reload", "clock", "script_flush"] {
        assert_eq!(begun(&well().fault(0.0, kind, "b"), 60.0).faulted(), ["late-first-start"], "{kind}");
    }
}

#[test]
fn answers_to_wait_for_something_else_excuse_and_those_about_a_lease_do_not() {
    for answer in ["paused", "blocked", "exhausted"] {
        let told = well().slot("a", 1.0, &format!(r#""event":"claim_answered","answer":"{answer}""#));
        begun(&told, 300.0).is_clean_and(Class::Once);
    }
    let held = |by: &str| well().slot("a", 1.0, &format!(r#""event":"claim_answered","answer":"held","by":"{by}""#));
    assert_eq!(begun(&held("b"), 300.0).faulted(), ["late-first-start"]);
    begun(&held("without-a-journal"), 300.0).is_clean_and(Class::Once);
    let failed = well().slot("b", 0.1, r#""event":"store_failed","op":"claim","kind":"timeout","error":"x""#);
    begun(&failed, 300.0).is_clean_and(Class::Once);
}

#[test]
fn a_node_whose_clock_was_off_or_whose_lines_are_missing_is_no_witness() {
    let off = |book: Book, node: &str| book.node(node, -3.5, r#""event":"clock_off","offset_ms":3000"#);
    begun(&off(off(well(), "a"), "b"), 300.0).is_clean_and(Class::Once);
    assert_eq!(begun(&off(well(), "a"), 300.0).faulted(), ["late-first-start"]);
    let lost = |book: Book, node: &str| book.node(node, 299.0, r#""event":"dropped","lines":3"#);
    begun(&lost(lost(well(), "a"), "b"), 300.0).is_clean_and(Class::Once);
    assert_eq!(begun(&lost(well(), "a"), 300.0).faulted(), ["late-first-start"]);
}

#[test]
fn a_node_that_died_may_have_held_the_slot() {
    // It died at 2.0 without a word of the slot, and starts anew much later.
    let book = well().node("b", 2.0, FILLER).node("b/b2", 500.0, r#""event":"started","jobs":1"#);
    let at = |seconds: f64| book.clone().run("a", seconds, seconds + 1.0, 1, "success").node("a", 900.0, FILLER);
    assert_eq!(
        between(crate::verify::tests::at(2.0), crate::verify::tests::at(12.0)).as_secs(),
        10,
        "what follows from a death lasts"
    );
    at(18.9).is_clean_and(Class::Once);
    assert_eq!(at(19.5).faulted(), ["late-first-start"]);
}
