//! How files are read, whose slots are judged, the figures of the whole and what they are of; and how much a fault, or a line that
//! says that lines are missing, may excuse.

use crate::verify::tests::{Book, FILLER, PLAN, SLOT, at};
use crate::verify::{Class, Inputs, check};

#[test]
fn a_journal_that_is_given_twice_counts_once() {
    let mut book = Book::new().run("a", 0.1, 1.0, 1, "success").later();
    book.journals = book.journals.repeat(2);
    book.is_clean_and(Class::Once);
}

#[test]
fn a_slot_that_is_not_over_is_not_judged() {
    let report = Book::new().starts("a", 0.1, 1).report();
    assert_eq!((report.slots, report.open, report.is_clean()), (0, 1, true));
}

#[test]
fn a_node_whose_clock_is_off_is_set_right_by_the_stores() {
    let shifted = Book::new().run("a", 0.1, 1.0, 1, "success").later();
    let journals = shifted.journals.replace("\"at\":\"2026-11-21T14:", "\"at\":\"2026-11-21T15:");
    Book { journals, ..shifted }.is_clean_and(Class::Once);
}

#[test]
fn a_slot_done_by_a_node_whose_journal_is_not_there_is_not_judged() {
    let report = Book::new().slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"z""#).later().report();
    assert!(report.is_clean() && report.slots == 0 && report.notes[0].contains("not among these"), "{report}");
}

#[test]
fn with_nothing_unexplained_the_rate_is_below_three_in_n() {
    let mut book = Book::new();
    for hour in ["14", "15", "16"] {
        let one = Book::default().run("a", 0.1, 1.0, 1, "success").journals;
        let fences = ["1795269600001", "1795273200001", "1795276800001"];
        let fence = fences[hour.parse::<usize>().unwrap() - 14];
        book.journals += &one.replace("T14", &format!("T{hour}")).replace(fences[0], fence);
    }
    let report = book.report();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.slots, report.rate_below), (3, Some(1.0)));
    assert!(report.to_string().contains("0 unexplained in 3 slots => rate < 3/3"), "{report}");
}

#[test]
fn a_cut_line_is_told_where_a_writer_died_and_refused_elsewhere() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "success");
    let mut inputs = Inputs::default();
    inputs.journal("j", &format!("{}{{\"at\":\"20", book.journals)).unwrap();
    assert!(check(inputs).notes[0].starts_with("j:9: the last line is cut"));
    let mut inputs = Inputs::default();
    inputs.journal("j", &format!("{{\"at\":\"20\n{}", book.journals)).unwrap();
    assert!(check(inputs).notes[0].starts_with("j:1: a cut line"));
    let error = Inputs::default().journal("j", "{}\n{}\n").unwrap_err().to_string();
    assert!(error.starts_with("j:1: not a line of a journal"), "{error}");
    let slotless = book.journals.replace(SLOT, "");
    let error = Inputs::default().journal("j", &slotless).unwrap_err().to_string();
    assert_eq!(error, "j:5: the line names no slot, or one that cannot be");
}

#[test]
fn a_recorder_with_a_line_for_each_start_and_end_is_read_too() {
    let line = |event: &str, ms: i64| {
        format!(
            "{{\"event\":\"{event}\",\"job\":\"push\",\"slot\":\"2026-11-21T14Z\",\"attempt\":1,\"fence\":1,\"node\":\"a\",\"pid\":7,\"overlap\":false,\"at_ms\":{ms}}}\n"
        )
    };
    let mut inputs = Inputs::default();
    let text = line("start", at(0.2).timestamp_millis()) + &line("end", at(0.9).timestamp_millis());
    inputs.recorder("r", &text).unwrap();
    assert_eq!((inputs.recorded[0].start, inputs.recorded[0].end), (at(0.2), Some(at(0.9))));
    let error = Inputs::default().recorder("r", &line("end", 5)).unwrap_err().to_string();
    assert_eq!(error, "r:1: a run ends that has not begun");
}

#[test]
fn a_node_that_was_granted_nothing_is_set_right_by_what_it_measured() {
    // Its clock is a quarter of an hour behind: by the store's it planned the slot when that was over.
    let book = Book::new().node("c", -5.0, r#""event":"started","jobs":1"#);
    let book = book.node("c", -4.0, r#""event":"store_reached""#).node("c", -4.0, PLAN).node("c", 5.0, FILLER);
    let slow = book.clone().node("c", -4.0, r#""event":"clock_off","offset_ms":-900000"#).later();
    assert!(book.later().faulted().contains(&"lost"), "with a right clock it was there");
    let report = slow.report();
    assert!(report.is_clean() && report.slots == 0, "{report}");
}

#[test]
fn slots_that_were_done_elsewhere_are_counted_for_whoever_gave_every_journal() {
    let book = Book::new().slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"z""#).later();
    assert_eq!((book.report().elsewhere, book.report().open), (1, 0));
}

#[test]
fn a_node_that_measured_nonsense_is_not_set_right_by_it() {
    for offset in [i64::MAX, i64::MIN, 1 << 60] {
        let book = Book::new().node("a", -4.5, &format!(r#""event":"clock_off","offset_ms":{offset}"#));
        book.run("b", 0.1, 1.0, 1, "success").later().is_clean_and(Class::Once);
    }
}

const DROPPED: &str = r#""event":"dropped","lines":2"#;

/// Three slots, each done once.
fn three() -> Book {
    let mut book = Book::new();
    for (hour, fence) in [("14", "1795269600001"), ("15", "1795273200001"), ("16", "1795276800001")] {
        let one = Book::default().run("a", 0.1, 1.0, 1, "success").journals;
        book.journals += &one.replace("T14", &format!("T{hour}")).replace("1795269600001", fence);
    }
    book
}

#[test]
fn with_a_violation_there_is_no_rate() {
    let well = three();
    assert_eq!(well.report().rate_below, Some(1.0));
    let report = well.slot("b", 0.05, r#""event":"closed","verdict":"missed""#);
    let report = report.slot("b", 0.06, r#""event":"closed","verdict":"failed""#).report();
    assert_eq!((report.unexplained.len(), report.violations.len()), (0, 1), "{report}");
    assert_eq!((report.rate_below, report.undisturbed_rate_below), (None, None));
    assert!(report.to_string().ends_with("0 unexplained in 3 slots; 1 violation\n"), "{report}");
}

#[test]
fn slots_that_no_fault_came_near_are_counted() {
    let report = three().report();
    assert_eq!((report.undisturbed, report.undisturbed_rate_below), (3, Some(1.0)));
    assert!(!report.to_string().contains("injected"), "{report}");
    let report = three().fault(1.0, "stop", "b").report();
    assert_eq!((report.slots, report.undisturbed, report.undisturbed_rate_below), (3, 2, None));
    assert!(report.to_string().contains("\n2 of 3 slots had no injected fault near\n"), "{report}");
    assert_eq!(three().fault(1.0, "drain", "b").report().undisturbed, 3, "it excuses nothing");
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!((&value["undisturbed"], &value["undisturbed_rate_below"]), (&2.into(), &serde_json::Value::Null));
}

#[test]
fn a_repeat_is_blamed_only_on_a_fault_that_can_cause_one() {
    // The first run ended well, and the store never had it.
    let silent = Book::new().starts("a", 2.1, 1).ends("a", 3.0, 1, "success").settles("a", 7.0, 1, "success");
    let twice = silent.run("b", 5.0, 6.0, 2, "success").later();
    twice.clone().fault(3.0, "lose_requests", "a").is_clean_and(Class::Repeat);
    twice.clone().fault(3.0, "unlock", "push@2026-11-21T14Z").is_clean_and(Class::Repeat);
    assert_eq!(twice.clone().fault(3.0, "lose_requests", "b").faulted(), ["repeat"], "the first run's node was well");
    for kind in ["pause", "resume", "mark_done"] {
        assert_eq!(twice.clone().fault(3.0, kind, "push@2026-11-21T14Z").faulted(), ["repeat"], "{kind}");
    }
}

#[test]
fn a_loss_is_blamed_only_on_a_fault_that_can_cause_one() {
    let missed = Book::new().closed("a", 602.0, "missed").later();
    missed.clone().fault(1.0, "pause", "push").is_clean_and(Class::Lost);
    for kind in ["resume", "mark_done", "reset", "unlock"] {
        assert_eq!(missed.clone().fault(1.0, kind, "push").faulted(), ["lost"], "{kind}");
    }
}

#[test]
fn one_loss_of_data_costs_one_repeat() {
    let once = Book::new().run("a", 2.1, 3.0, 1, "success").run("b", 5.0, 6.0, 2, "success");
    let once = once.fault(4.0, "flush", "store");
    once.later().is_clean_and(Class::Repeat);
    // The second run does not tell how it ended, so only the loss explains the third.
    let open = Book::new().run("a", 2.1, 3.0, 1, "success").starts("b", 5.0, 2).node("b", 6.0, DROPPED);
    let open = open.run("a", 7.0, 8.0, 3, "success");
    let thrice = open.recorded("b", 5.0, Some(6.0), 2).later();
    assert_eq!(thrice.clone().fault(4.0, "flush", "store").faulted(), ["too-many-repeats"]);
    thrice.clone().fault(4.0, "flush", "store").fault(6.5, "flush", "store").is_clean_and(Class::Repeat);
    thrice.clone().fault(4.0, "evict", "store").is_clean_and(Class::Repeat);
    let again = thrice.starts("b", 9.0, 4).recorded("b", 9.0, Some(9.5), 4).node("b", 10.0, DROPPED);
    let again = again.run("a", 11.0, 12.0, 5, "success").fault(4.0, "evict", "store");
    assert!(again.faulted().contains(&"too-many-repeats"), "one eviction is not any number of them");
    let retried = Book::new().run("a", 2.1, 3.0, 1, "success").run("b", 5.0, 6.0, 2, "failure");
    let retried = retried.run("a", 7.05, 8.0, 3, "success").fault(4.0, "flush", "store").later();
    retried.is_clean_and(Class::Repeat);
}

#[test]
fn missing_lines_excuse_only_what_they_could_have_told() {
    let unrecorded = Book::new().starts("a", 0.1, 1).ends("a", 1.0, 1, "success").closed("b", 602.0, "missed");
    let with = |node: &str, seconds: f64| unrecorded.clone().node(node, seconds, DROPPED).later().faulted();
    assert!(with("a", 2.0).is_empty(), "its own journal lacks lines after the run's end");
    assert_eq!(with("a", 0.5), ["success-without-done"], "all lines after the run are there");
    assert_eq!(with("b", 2.0), ["success-without-done"], "another node's journal");

    let silent = Book::new().node("a", -3.0, PLAN);
    let rules = |book: Book| book.later().faulted();
    assert_eq!(rules(silent.clone().node("a", -2.0, DROPPED)), ["lost", "no-verdict"], "before the slot's end");
    let around_the_end = silent.node("b", 599.0, FILLER).node("b", 603.0, DROPPED);
    assert_eq!(rules(around_the_end), ["lost"], "the verdict may be among them");

    let done = Book::new().run("a", 0.1, 1.0, 1, "failure");
    let done = done.slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"a""#);
    assert!(!done.clone().node("b", 1.5, DROPPED).later().faulted().contains(&"done-without-success"));
    let after = done.node("b", 2.5, FILLER).node("b", 3.0, DROPPED).later();
    assert!(after.faulted().contains(&"done-without-success"), "it was told as done before");
}

#[test]
fn a_run_that_no_journal_told_of_is_caught_in_spite_of_lines_that_are_missing_at_another_time() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "success").recorded("b", 50.0, Some(51.0), 2).later();
    let with = |first: f64| book.clone().node("b", first, FILLER).node("b", first + 2.0, DROPPED).faulted();
    assert!(with(100.0).contains(&"untold-run"));
    assert!(!with(49.0).contains(&"untold-run"));
}

#[test]
fn a_job_that_a_reload_took_away_is_not_expected_any_more() {
    let reloaded = |book: Book, node: &str| book.node(node, -1.0, r#""event":"reloaded","jobs":0"#);
    let book = Book::new().node("a", -3.0, PLAN).node("b", -3.0, PLAN);
    assert_eq!(book.clone().later().faulted(), ["lost", "no-verdict"]);
    let gone = reloaded(reloaded(book, "a"), "b");
    assert!(gone.clone().later().faulted().is_empty());
    assert_eq!(gone.node("a", -1.0, PLAN).later().faulted(), ["lost", "no-verdict"], "the file still has it");
}
