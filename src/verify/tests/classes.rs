//! What is once, repeated or overlapping, and what explains it.

use super::{Book, FILLER};
use crate::verify::Class;

#[test]
fn a_slot_done_by_one_run_is_once() {
    let report = Book::new().run("a", 0.1, 1.0, 1, "success").later().is_clean_and(Class::Once);
    assert_eq!((report.slots, report.rate_below), (1, None));
}

#[test]
fn a_node_that_is_killed_while_it_drains_has_died_too() {
    let book = Book::new().starts("a", 0.1, 1).node("a", 1.0, r#""event":"draining","running":1,"drain_s":60.0"#);
    let taken = book.run("b", 6.5, 8.0, 2, "success").node("b", 900.0, FILLER);
    taken.is_clean_and(Class::Repeat);
}

#[test]
fn a_second_run_in_silence_is_not_explained() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
    assert_eq!(book.faulted(), ["repeat"]);
}

#[test]
fn what_was_recorded_as_done_is_repeated_only_where_the_store_lost_it_afterwards() {
    let twice = Book::new().run("a", 2.1, 3.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
    for kind in ["stop", "delay", "out_of_memory"] {
        assert_eq!(twice.clone().fault(4.0, kind, "store").faulted(), ["repeat"], "{kind}");
    }
    assert_eq!(twice.clone().told("b", 5.5, "lease_in_doubt", 2).faulted(), ["repeat"]);
    twice.clone().fault(4.0, "flush", "store").is_clean_and(Class::Repeat);
    twice.clone().fault(4.0, "reset", "push@2026-11-21T14Z").is_clean_and(Class::Repeat);
    assert_eq!(twice.fault(1.0, "flush", "store").faulted(), ["repeat"], "it was done after the loss");
    let not_recorded = Book::new().starts("a", 2.1, 1).ends("a", 3.0, 1, "success").settles("a", 7.0, 1, "success");
    not_recorded.run("b", 5.0, 6.0, 2, "success").later().fault(4.0, "stop", "a").is_clean_and(Class::Repeat);
}

#[test]
fn two_runs_at_the_same_time_in_silence_are_not_explained() {
    let book = Book::new().run("a", 0.1, 9.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
    assert_eq!(book.faulted(), ["overlap"]);
    let report = book.report();
    assert!(report.unexplained[0].message.contains("for 1.000s"), "{report}");
    assert!(report.unexplained[0].lines.iter().any(|line| line.starts_with("j:")), "{report}");
    assert!(report.to_string().contains("1 unexplained in 1 slots"), "{report}");
}

#[test]
fn an_overlap_that_a_node_told_of_is_explained() {
    for event in ["lease_in_doubt", "lease_lost", "lease_restored"] {
        let told = Book::new().run("a", 0.1, 9.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
        told.told("a", 7.0, event, 1).is_clean_and(Class::Overlap);
    }
}

#[test]
fn an_overlap_is_explained_by_a_node_that_stood_still_but_not_by_one_that_was_killed() {
    let book = Book::new().run("a", 0.1, 9.0, 1, "success").run("b", 7.0, 8.0, 2, "success").later();
    book.clone().fault(1.0, "stop", "a").is_clean_and(Class::Overlap);
    assert_eq!(book.clone().fault(1.0, "kill", "a").faulted(), ["overlap"]);
    assert_eq!(book.clone().fault(1.0, "stop", "elsewhere@2026-11-21T14Z").faulted(), ["overlap"]);
    assert_eq!(book.up("c").fault(1.0, "stop", "c").faulted(), ["overlap"], "another node's fault");
}

#[test]
fn a_fault_after_which_every_slot_is_done_once_all_the_same_excuses_nothing() {
    let twice = Book::new().run("a", 0.1, 1.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
    let slow = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.2, 3.0, 2, "success").later();
    for kind in ["drain", "reload", "clock", "script_flush", "kill_run", "stop_run"] {
        assert_eq!(twice.clone().fault(1.5, kind, "a").faulted(), ["repeat"], "{kind}");
        assert_eq!(twice.clone().fault(1.5, kind, "push@2026-11-21T14Z").faulted(), ["repeat"], "{kind}");
        assert_eq!(slow.clone().fault(1.5, kind, "a").faulted(), ["late-recovery"], "{kind}");
    }
}

#[test]
fn where_the_older_run_is_to_be_killed_a_word_about_it_does_not_excuse_an_overlap() {
    let mut book = Book::new().run("a", 0.1, 9.0, 1, "success").run("b", 5.0, 6.0, 2, "success").later();
    book = book.told("a", 6.0, "lease_lost", 1);
    book.journals = book.journals.replace("\"continue\"", "\"kill\"");
    assert_eq!(book.faulted(), ["overlap"]);
    let gap = r#""event":"gap","slots":1"#;
    book.clone().node("a", 6.0, gap).is_clean_and(Class::Overlap);
    let reloaded = book.node("a", 5.9, r#""event":"reloaded","jobs":1"#).node("a", 6.0, gap);
    assert_eq!(reloaded.faulted(), ["overlap"], "a node that reads its file again looks anew, and never stood still");
    reloaded.node("a", 6.5, gap).is_clean_and(Class::Overlap);
}

#[test]
fn overlap_is_measured_where_the_job_recorded_it() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.0, 3.0, 2, "success").later();
    let apart = book.clone().recorded("a", 0.15, Some(0.9), 1).recorded("b", 2.05, Some(2.9), 2);
    apart.is_clean_and(Class::Repeat);
    let together = book.recorded("a", 0.15, Some(2.06), 1).recorded("b", 2.05, Some(2.9), 2);
    assert_eq!(together.faulted(), ["overlap"]);
}

#[test]
fn a_run_that_the_recorder_knows_and_no_journal_told_of_is_caught() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "success").later().recorded("a", 0.1, Some(1.0), 1);
    book.is_clean_and(Class::Once);
    assert_eq!(book.recorded("b", 5.0, Some(6.0), 2).faulted(), ["repeat", "untold-run"]);
}

#[test]
fn a_death_after_the_repeat_does_not_explain_it() {
    // The first run succeeded, its node had no time to tell the store; then another node ran, and only then it died.
    let twice = Book::new().starts("a", 2.1, 1).ends("a", 3.0, 1, "success").run("b", 5.0, 6.0, 2, "success");
    let died = |seconds: f64| twice.clone().fault(seconds, "kill", "a").node("b", 900.0, FILLER);
    died(3.5).is_clean_and(Class::Repeat);
    assert_eq!(died(7.0).faulted(), ["repeat"]);
}

#[test]
fn where_the_older_run_is_to_be_killed_only_what_keeps_its_node_from_knowing_explains_an_overlap() {
    let mut book = Book::new().run("a", 0.1, 9.0, 1, "success").run("b", 7.0, 8.0, 2, "success").later();
    book.journals = book.journals.replace("\"continue\"", "\"kill\"");
    for (kind, target) in [("stop", "a"), ("flush", "store"), ("unlock", "push@2026-11-21T14Z")] {
        book.clone().fault(1.0, kind, target).is_clean_and(Class::Overlap);
    }
    for (kind, target) in [("delay", "a"), ("refuse", "a"), ("stop", "b"), ("stop", "store"), ("partition", "store")] {
        assert_eq!(book.clone().fault(1.0, kind, target).faulted(), ["overlap"], "{kind} of {target}");
    }
}
