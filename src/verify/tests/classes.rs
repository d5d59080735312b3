//! What is once, repeated, overlapping or lost, and what explains it.

use crate::verify::Class;
use crate::verify::tests::{Book, FILLER, PLAN, text};

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
    assert!(report.to_string().contains("1 unexplained in 1 slot"), "{report}");
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

#[test]
fn a_slot_that_failed_with_all_its_attempts_is_explained_and_with_fewer_it_is_not() {
    let two = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 2, "failure");
    let three = two.clone().run("a", 4.05, 5.0, 3, "failure").closed("a", 602.0, "failed").later();
    three.is_clean_and(Class::Lost);
    assert_eq!(two.closed("a", 602.0, "failed").later().faulted(), ["lost", "late-recovery"]);
}

#[test]
fn attempts_that_a_wiped_store_forgot_before_the_verdict_explain_that_the_slot_is_told_as_missed() {
    let three = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 2, "failure");
    let missed = three.clone().run("a", 4.05, 5.0, 3, "failure").closed("a", 640.0, "missed").later();
    assert_eq!(missed.faulted(), ["lost"]);
    missed.clone().fault(639.0, "flush", "store").is_clean_and(Class::Lost);
    assert_eq!(missed.clone().fault(639.0, "stop", "store").faulted(), ["lost"]);
    assert_eq!(missed.fault(641.0, "flush", "store").faulted(), ["lost"], "the verdict was told before");
    let two = three.closed("a", 640.0, "missed").later().fault(639.0, "flush", "store");
    assert_eq!(two.faulted(), ["lost", "late-recovery"]);
}

#[test]
fn a_missed_slot_is_explained_when_no_node_could_do_it() {
    let missed = |book: Book| book.closed("a", 602.0, "missed").later();
    assert_eq!(missed(Book::new()).faulted(), ["lost"], "two nodes were there");
    let late = Book::default().node("a", 601.0, r#""event":"started","jobs":1"#);
    missed(late).is_clean_and(Class::Lost);
    let away = |book: Book, node| {
        book.node(node, 0.0, r#""event":"store_lost","error":"x""#).node(node, 600.0, r#""event":"store_reached""#)
    };
    missed(away(away(Book::new(), "a"), "b")).is_clean_and(Class::Lost);
    assert_eq!(missed(away(Book::new(), "a")).faulted(), ["lost"], "the other one was in touch");
    missed(Book::new().slot("a", 1.0, r#""event":"start_deadline_passed""#)).is_clean_and(Class::Lost);
    missed(answered(answered(Book::new(), "a", 0.1, "paused"), "b", 0.1, "paused")).is_clean_and(Class::Lost);
    missed(Book::new().fault_until(0.0, 599.0, "partition", "store")).is_clean_and(Class::Lost);
    let stopped = |book: Book, node: &str| {
        let mut book = book.fault(0.0, "stop", node);
        let until = format!("\"{node}\",\"until\":\"{}\"}}", text(599.0));
        book.faults = book.faults.replace(&format!("\"{node}\"}}"), &until);
        book
    };
    missed(stopped(stopped(Book::new(), "a"), "b")).is_clean_and(Class::Lost);
    assert_eq!(missed(stopped(Book::new(), "a")).faulted(), ["lost"], "the other one was not stopped");
    let asleep = |book: Book, node| book.node(node, 599.0, r#""event":"gap","slots":1"#);
    missed(asleep(asleep(Book::new(), "a"), "b")).is_clean_and(Class::Lost);
    Book::new().closed("a", 602.0, "skipped").later().is_clean_and(Class::Lost);
}

#[test]
fn a_planned_slot_of_which_nobody_says_a_word_is_lost_and_has_no_verdict() {
    let book = Book::new().node("a", -3.0, PLAN).later();
    assert_eq!(book.faulted(), ["lost", "no-verdict"]);
    let done = book.run("a", 0.1, 1.0, 1, "success");
    let report = done.is_clean_and(Class::Once);
    assert_eq!((report.slots, report.open), (1, 1), "the slot of 14:10 is not over: {report}");
}

#[test]
fn a_planned_slot_that_nobody_was_granted_is_measured_by_the_lease_that_was_planned() {
    let short = PLAN.replace("*/10 * * * *", "*/30 * * * * *");
    let mut book = Book::new().node("a", -1.0, &short).later().closed("a", 32.0, "missed");
    book.journals = book.journals.replace("14:10:00Z", "14:00:30Z");
    let report = book.report();
    let lost = report.unexplained.iter().any(|slot| slot.slot == "push@2026-11-21T14Z" && slot.rule == "lost");
    assert!(lost, "30 s in touch are enough for a lease of 6 s: {report}");
}

fn answered(book: Book, node: &str, seconds: f64, answer: &str) -> Book {
    book.slot(node, seconds, &format!(r#""event":"claim_answered","answer":"{answer}""#))
}

const FAILED: &str = r#""event":"store_failed","op":"claim","kind":"timeout","error":"x""#;

#[test]
fn what_kept_the_nodes_for_a_moment_explains_no_loss_of_a_long_slot() {
    let missed = |book: Book| book.closed("a", 602.0, "missed").later();
    let failed = missed(Book::new().slot("a", 0.1, FAILED).slot("b", 0.1, FAILED));
    failed.is_clean_and(Class::Lost);
    assert_eq!(missed(Book::new().slot("a", 0.1, FAILED)).faulted(), ["lost"], "the other node was never refused");
    let back = Book::new().slot("a", 0.1, FAILED).slot("b", 0.1, FAILED);
    assert_eq!(missed(answered(back, "b", 3.0, "backoff")).faulted(), ["lost"], "the store answered again");
    let blocked = |from: &[f64]| {
        let all = from.iter().flat_map(|at| [("a", *at), ("b", *at)]);
        all.fold(Book::new(), |book, (node, at)| answered(book, node, at, "blocked"))
    };
    assert_eq!(missed(blocked(&[0.1])).faulted(), ["lost"], "who is blocked looks again when that lease is over");
    let throughout: Vec<f64> = (0..120).map(|step| f64::from(step) * 5.0 + 0.1).collect();
    missed(blocked(&throughout)).is_clean_and(Class::Lost);
    assert_eq!(missed(Book::new().fault_until(0.0, 20.0, "partition", "store")).faulted(), ["lost"]);
    assert_eq!(missed(Book::new().fault(0.0, "pause", "push").fault(60.0, "resume", "push")).faulted(), ["lost"]);
    let late = Book::new().slot("a", 500.0, r#""event":"start_deadline_passed""#);
    assert_eq!(missed(late).faulted(), ["lost"], "there was time until the deadline");
}

#[test]
fn an_attempt_that_was_given_back_without_an_answer_may_count_or_not() {
    let away = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 1.5, 2.0, 2, "failure");
    let away = away.fault_until(3.0, 598.0, "partition", "store");
    let heard = |at| {
        let (granted, line) =
            (text(599.0), r#""event":"granted","attempt":3,"used":3,"max_attempts":3,"granted_at":""#);
        let rest = r#"","token":"a3","trigger":"retry","lease_ttl_s":6.0,"retry_delay_s":1.0,"on_lost":"continue""#;
        away.clone().slot("a", at, &format!("{line}{granted}{rest}"))
    };
    let missed = |book: Book| book.closed("b", 602.0, "missed").later();
    assert_eq!(missed(heard(599.1)).faulted(), ["lost"], "all three attempts were made");
    // A grant that is heard of after the end is given back, also by a node that dies before it says so.
    missed(heard(600.5)).is_clean_and(Class::Lost);
    let given_up = r#""event":"settlement_given_up","attempt":3,"outcome":"given_back""#;
    missed(heard(599.1).slot("a", 601.0, given_up)).is_clean_and(Class::Lost);
}

/// The store has counted an attempt that no journal tells of, and by the file of the node that died there are four.
#[test]
fn that_no_attempt_is_left_by_one_file_is_the_stores_word_to_the_nodes_that_were_told_so() {
    let plan = |attempts: u32| PLAN.replace(r#""max_attempts":3"#, &format!(r#""max_attempts":{attempts}"#));
    let held = |book: Book, node| book.slot(node, 0.2, r#""event":"claim_answered","answer":"held","by":"c""#);
    let begun =
        |of_b| Book::new().up("c").node("a", -3.0, &plan(1)).node("b", -3.0, &plan(of_b)).node("c", -3.0, &plan(4));
    let died = |of_b| held(held(begun(of_b), "a"), "b").fault(0.1, "kill", "c");
    let failed = |book: Book| book.closed("a", 602.0, "failed").later();
    let both = answered(answered(died(1), "a", 6.3, "exhausted"), "b", 6.4, "exhausted");
    failed(both).is_clean_and(Class::Lost);
    let one = answered(died(1), "a", 6.3, "exhausted");
    assert_eq!(failed(one).faulted(), ["lost"], "the other one was not told so");
    let of_four = answered(died(4), "a", 6.3, "exhausted");
    assert_eq!(failed(of_four).faulted(), ["lost"], "by its file the other one had four");
    let reloaded = answered(answered(died(1), "a", 6.3, "exhausted"), "b", 6.4, "exhausted").node("b", 30.0, &plan(4));
    assert_eq!(failed(reloaded).faulted(), ["lost"], "it was told so by the file that it had before");
    let at_its_end = answered(answered(died(1), "a", 6.3, "exhausted"), "b", 500.0, "exhausted");
    assert_eq!(failed(at_its_end).faulted(), ["lost"], "it had the time to ask");
}

#[test]
fn a_node_that_does_not_plan_the_job_or_lacks_lines_could_not_have_done_it() {
    let missed = |book: Book| book.closed("a", 602.0, "missed").later();
    let elsewhere = PLAN.replace(r#""ours":true"#, r#""ours":false"#);
    missed(Book::new().node("a", -3.0, &elsewhere).node("b", -3.0, &elsewhere)).is_clean_and(Class::Lost);
    let dropped = |book: Book, node: &str| book.node(node, 599.0, r#""event":"dropped","lines":2"#);
    missed(dropped(dropped(Book::new(), "a"), "b")).is_clean_and(Class::Lost);
}

#[test]
fn a_slot_without_a_verdict_that_nobody_could_do_is_explained() {
    let away = |book: Book, node: &str| book.node(node, -1.0, r#""event":"store_lost","error":"x""#);
    let book = away(away(Book::new().node("a", -3.0, PLAN), "a"), "b").later();
    let report = book.is_clean_and(Class::Lost);
    assert!(
        report.explained[0].why[0].ends_with("no verdict: no node was there and in touch with its store for 9.000s")
    );
}

#[test]
fn a_run_whose_end_nobody_told_explains_a_loss_only_where_nobody_was_left_to_tell() {
    let open = Book::new().starts("a", 0.1, 1).closed("b", 602.0, "missed");
    assert_eq!(open.clone().later().faulted(), ["lost", "run-without-end"]);
    let missing = open.clone().node("a", 5.0, r#""event":"dropped","lines":2"#).later();
    missing.is_clean_and(Class::Lost);
    open.node("b", 900.0, FILLER).is_clean_and(Class::Lost);
}

#[test]
fn a_slot_that_a_node_asks_for_with_a_clock_that_is_behind_was_nobodys_to_do() {
    let begun = Book::default().node("a", 0.0, r#""event":"started","jobs":1"#).node("a", 0.0, PLAN);
    let asked = answered(begun, "a", 0.3, "closed");
    // By the store's clock it began at 14:15; it was granted nothing, and measured its clock.
    let measured = asked.clone().node("a", 0.4, r#""event":"clock_off","offset_ms":-900000"#);
    let report = measured.node("a", 0.4, r#""event":"store_reached""#).node("a", 850.0, FILLER).report();
    assert!(report.is_clean() && report.slots == 0, "{report}");
    assert!(report.notes.iter().any(|note| note.starts_with("1 slots were over before")), "{report}");
    // It died before it measured anything: the store's word that the slot is over says how far it is behind at least.
    let unmeasured = asked.node("a", 1.0, FILLER);
    let alone = unmeasured.clone().line("b", 610.0, r#""event":"started","jobs":1"#);
    let alone = alone.node("b", 611.0, r#""event":"store_reached""#).node("b", 1_000.0, FILLER);
    assert!(alone.report().is_clean(), "{}", alone.report());
    let others = unmeasured.up("b").node("b", -3.0, PLAN).node("b", 900.0, FILLER);
    assert_eq!(others.faulted(), ["lost", "no-verdict"], "another node was there when it was to be done");
}

#[test]
fn what_a_node_planned_that_never_reached_its_store_is_not_judged_and_that_is_told() {
    let book = Book::new().node("c", -5.0, r#""event":"started","jobs":1"#).node("c", -5.0, PLAN).later();
    let report = book.report();
    assert!(report.is_clean() && report.slots == 0, "{report}");
    assert!(report.notes[0].starts_with("c (c) never reached its store"), "{report}");
    let alone = Book::default().node("c", -5.0, r#""event":"started","jobs":1"#).node("c", -5.0, PLAN);
    let report = alone.node("c", 900.0, FILLER).report();
    assert_eq!((report.slots, report.tally(Class::Lost).slots), (1, 1), "nobody else was there: {report}");
}
