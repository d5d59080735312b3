//! How files are read, whose slots are judged, and the figures of the whole.

use super::{Book, FILLER, PLAN, SLOT, at};
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
