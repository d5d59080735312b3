//! How soon another attempt began.

use std::time::Duration;

use super::{Book, FILLER};
use crate::verify::Class;

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

#[test]
fn nobody_taking_over_from_a_node_that_died_is_caught() {
    let book = Book::new().starts("a", 0.1, 1).fault(3.0, "kill", "a").closed("b", 602.0, "missed");
    assert!(book.node("b", 900.0, FILLER).faulted().contains(&"late-recovery"));
}
