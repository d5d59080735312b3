//! What may never be, each with what excuses it.

use std::time::Duration;

use super::{Book, FILLER, PLAN, SLOT};
use crate::verify::Class;

#[test]
fn a_slot_that_ends_without_a_verdict_is_caught() {
    let book = Book::new().run("a", 590.0, 599.5, 1, "failure").later();
    assert!(book.faulted().contains(&"no-verdict"));
    assert!(!book.closed("b", 602.0, "missed").faulted().contains(&"no-verdict"));
}

#[test]
fn a_start_before_the_slot_or_after_its_end_is_caught() {
    assert_eq!(Book::new().run("a", -0.5, 1.0, 1, "success").later().faulted(), ["early-start", "early-start"]);
    assert_eq!(Book::new().run("a", 602.0, 603.0, 1, "success").later().faulted(), ["late-start", "late-start"]);
    let by_the_store = Book::new().run("a", 600.0, 600.9, 1, "success").later();
    assert_eq!(by_the_store.faulted(), ["late-start"]);
    let by_the_recorder = Book::new().run("a", 599.0, 604.0, 1, "success").later().recorded("a", 603.0, Some(604.0), 1);
    assert_eq!(by_the_recorder.faulted(), ["late-start"]);
    assert!(by_the_recorder.report_with(Duration::from_secs(3)).is_clean(), "a machine that lets processes wait");
}

#[test]
fn attempts_above_the_maximum_are_caught_and_those_given_back_do_not_count() {
    let three = |outcome| {
        let first = Book::new().run("a", 0.1, 1.0, 1, outcome).run("b", 2.05, 3.0, 2, "failure");
        first.run("a", 4.05, 5.0, 3, "failure").run("b", 6.05, 7.0, 4, "success").later()
    };
    let fixed = |book: Book| Book { journals: book.journals.replace("\"used\":4", "\"used\":3"), ..book };
    assert_eq!(fixed(three("failure")).faulted(), ["too-many-attempts"]);
    fixed(three("given_back")).is_clean_and(Class::Repeat);
    three("failure").fault(5.0, "reset", "push@2026-11-21T14Z").is_clean_and(Class::Repeat);
    assert_eq!(three("given_back").faulted(), ["too-many-attempts"], "the store granted a fourth of three");
}

/// The store took it back. Its answer was lost, and each later one said that somebody else had the slot by then; or the node died.
#[test]
fn an_attempt_that_may_have_been_given_back_is_none_too_many_unless_the_store_says_so() {
    let four = |fact: &str| {
        let begun = Book::new().run("a", 0.1, 1.0, 1, "failure").granted("b", 2.05, 2).slot("b", 3.9, fact);
        begun.run("a", 4.05, 5.0, 3, "failure").run("b", 6.05, 7.0, 4, "success").later()
    };
    let counted_three = |book: Book| Book { journals: book.journals.replace("\"used\":4", "\"used\":3"), ..book };
    for fact in [r#""event":"settlement_given_up","attempt":2,"outcome":"given_back""#, FILLER] {
        counted_three(four(fact)).is_clean_and(Class::Repeat);
        assert_eq!(four(fact).faulted(), ["too-many-attempts"]);
    }
}

#[test]
fn done_without_a_success_is_caught() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").later();
    let done = book.slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"a""#);
    assert!(done.faulted().contains(&"done-without-success"), "{:?}", done.faulted());
    done.fault(1.5, "mark_done", "push@2026-11-21T14Z").is_clean_and(Class::Once);
}

#[test]
fn success_without_done_is_caught() {
    let book = Book::new().starts("a", 0.1, 1).ends("a", 1.0, 1, "success");
    assert_eq!(book.clone().later().faulted(), ["success-without-done", "no-verdict"]);
    let told = r#""event":"settlement_given_up","attempt":1,"outcome":"success""#;
    book.slot("a", 700.0, told).closed("b", 602.0, "missed").later().is_clean_and(Class::Once);
    let undone = Book::new().run("a", 0.1, 1.0, 1, "success").closed("b", 602.0, "missed").later();
    assert_eq!(undone.faulted(), ["success-without-done"]);
    let late = Book::new().run("a", 0.1, 605.0, 1, "success").closed("b", 602.0, "missed").later();
    late.is_clean_and(Class::Once);
    // Its answer came a moment after that of the run's end, which the store heard later.
    let overtaken = |at| Book::new().run("a", 0.1, 605.0, 1, "success").closed("b", at, "missed").later();
    overtaken(605.4).is_clean_and(Class::Once);
    assert_eq!(overtaken(606.0).faulted(), ["success-without-done"]);
}

/// The store's answer to somebody else is as good a proof that it has the success as the answer to its own node, and lost less often.
#[test]
fn a_success_that_another_node_was_told_of_is_recorded() {
    let book = Book::new().starts("a", 0.1, 1).ends("a", 1.0, 1, "success");
    let told =
        |by: &str| book.clone().slot("b", 2.0, &format!(r#""event":"claim_answered","answer":"done","by":"{by}""#));
    told("a").later().is_clean_and(Class::Once);
    assert_eq!(told("b").later().faulted(), ["success-without-done"], "that is another run's success");
    assert_eq!(told("a").closed("b", 602.0, "missed").later().faulted(), ["success-without-done"], "and it is to stay");
    let twice = book.clone().starts("a", 20.0, 2).ends("a", 21.0, 2, "success");
    let twice = twice.slot("b", 22.0, r#""event":"claim_answered","answer":"done","by":"a""#).later();
    assert!(twice.faulted().contains(&"success-without-done"), "it is one of two");
    let renewed = book.clone().slot("a", 1.5, r#""event":"renewal_answered","answer":"done""#);
    renewed.clone().fault(300.0, "kill", "a").node("b", 900.0, FILLER).is_clean_and(Class::Once);
    let lost = renewed.told("a", 1.5, "lease_lost", 1).later();
    assert!(lost.faulted().contains(&"success-without-done"), "another one did it");
    let before = Book::new().slot("b", 0.05, r#""event":"claim_answered","answer":"done","by":"a""#);
    let before = before.starts("a", 0.1, 1).ends("a", 1.0, 1, "success").later();
    assert!(before.faulted().contains(&"success-without-done"), "nothing was done by then");
}

#[test]
fn a_fence_that_goes_back_and_a_number_granted_twice_are_caught_unless_the_store_was_wiped() {
    let book = Book::new().run("a", 0.1, 1.0, 2, "failure").run("b", 2.05, 3.0, 1, "success").later();
    assert_eq!(book.faulted(), ["fence-back"]);
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 1, "success").later();
    assert_eq!(book.faulted(), ["same-attempt-twice", "fence-back"]);
    book.fault(1.5, "wipe", "store").is_clean_and(Class::Repeat);
}

#[test]
fn two_different_verdicts_are_caught() {
    let book = Book::default().node("a", 601.0, r#""event":"started","jobs":1"#);
    let book = book.closed("a", 602.0, "missed").closed("a", 603.0, "failed").later();
    assert!(book.faulted().contains(&"two-verdicts"), "{:?}", book.faulted());
}

#[test]
fn a_verdict_is_owed_by_whoever_is_there_later_too() {
    let planned = Book::new().node("a", -3.0, PLAN).fault_until(590.0, 640.0, "partition", "store");
    let later = |seconds: f64| planned.clone().node("a", seconds, FILLER).node("b", seconds, FILLER);
    assert_eq!(later(655.0).faulted(), ["lost"], "there was no time to tell it");
    assert_eq!(later(900.0).faulted(), ["lost", "no-verdict"]);
    assert_eq!(later(900.0).fault(650.0, "flush", "store").faulted(), ["lost"], "the store forgot the slot");
    let left = later(900.0).node("b", 645.0, r#""event":"draining","running":0,"drain_s":1.0"#);
    assert_eq!(left.faulted(), ["lost"], "who had recorded it may have left before it was told");
}

#[test]
fn a_success_that_is_not_recorded_is_excused_by_who_leaves_or_dies_soon_after_it_alone() {
    let book = Book::new().starts("a", 0.1, 1).ends("a", 1.0, 1, "success").closed("b", 602.0, "missed");
    let draining = r#""event":"draining","running":1,"drain_s":5.0"#;
    let leaves = |seconds: f64| book.clone().node("a", seconds, draining);
    leaves(2.0).node("b", 900.0, FILLER).is_clean_and(Class::Once);
    assert_eq!(leaves(300.0).node("b", 900.0, FILLER).faulted(), ["success-without-done"]);
    let stopped = |book: Book, seconds| book.node("a", seconds, r#""event":"stopped""#).node("b", 900.0, FILLER);
    assert_eq!(stopped(leaves(2.0), 2.5).faulted(), ["success-without-done"], "who leaves as it should says so");
    let given_up = r#""event":"settlement_given_up","attempt":1,"outcome":"success""#;
    stopped(leaves(2.0).slot("a", 2.4, given_up), 2.5).is_clean_and(Class::Once);
    let killed = |seconds: f64| book.clone().fault(seconds, "kill", "a").node("b", 900.0, FILLER);
    assert_eq!(killed(2.0).faulted(), ["late-recovery"], "nobody took over");
    assert_eq!(killed(300.0).faulted(), ["success-without-done"]);
    let away = book.clone().node("a", 0.9, r#""event":"store_lost","error":"x""#).fault(300.0, "kill", "a");
    assert_eq!(away.node("b", 900.0, FILLER).faulted(), ["late-recovery"]);
    let failed =
        |at: f64| book.clone().slot("a", at, r#""event":"store_failed","op":"complete","kind":"timeout","error":"x""#);
    failed(1.5).fault(300.0, "kill", "a").node("b", 900.0, FILLER).is_clean_and(Class::Once);
    let answered =
        failed(1.5).slot("a", 2.0, r#""event":"renewal_answered","answer":"renewed""#).fault(300.0, "kill", "a");
    assert!(answered.node("b", 900.0, FILLER).faulted().contains(&"success-without-done"), "it was in touch again");
}

/// A node whose calls fail is not in touch with its store, whichever slot they are about.
#[test]
fn a_verdict_is_owed_by_whoever_is_answered() {
    let planned = Book::new().node("a", -3.0, PLAN).fault_until(590.0, 640.0, "partition", "store");
    let failed = r#""job":"other","slot":"2026-11-21T14Z","slot_end":"2026-11-21T14:10:00Z","event":"store_failed","op":"claim","kind":"timeout","error":"x""#;
    let answered = r#""job":"other","slot":"2026-11-21T14Z","slot_end":"2026-11-21T14:10:00Z","event":"claim_answered","answer":"closed""#;
    let on_and_off = |every: usize| {
        (630..900).step_by(every).fold(planned.clone(), |book, second| {
            let at = |add: f64| f64::from(second) + add;
            let fails = |book: Book, node| book.node(node, at(0.0), failed).node(node, at(0.5), answered);
            fails(fails(book, "a"), "b")
        })
    };
    let owed = |book: Book| book.later().faulted().contains(&"no-verdict");
    assert!(!owed(on_and_off(10)), "it was never answered for long enough");
    assert!(owed(on_and_off(30)));
    let once = |node: &str| planned.clone().node(node, 645.0, failed);
    assert!(owed(once("a")), "b was well");
    assert!(owed(once("a").node("b", 645.0, failed)), "a heartbeat that fails is told");
}

#[test]
fn a_grant_without_a_run_explains_that_a_slot_is_done_only_where_its_node_could_not_tell() {
    let done = |book: Book| book.slot("b", 30.0, r#""event":"claim_answered","answer":"done","by":"a""#);
    let granted = done(Book::new().granted("a", 0.1, 1));
    assert_eq!(granted.clone().later().faulted(), ["done-without-success"]);
    let died = |seconds: f64| granted.clone().fault(seconds, "kill", "a").node("b", 900.0, FILLER).faulted();
    assert!(died(1.0).is_empty(), "it may have begun and told nothing");
    assert_eq!(died(300.0), ["done-without-success"]);
    let dropped = granted.node("a", 2.0, r#""event":"dropped","lines":2"#);
    dropped.later().is_clean_and(Class::Once);
}

#[test]
fn a_success_that_was_settled_without_a_run_is_caught() {
    let book = Book::new().settles("a", 1.0, 1, "success").later();
    assert_eq!(book.faulted(), ["done-without-success"]);
    let rotated = Book { journals: book.journals.replace(r#""event":"started","jobs":1"#, FILLER), ..book };
    assert!(rotated.faulted().is_empty(), "the file does not begin with the node's start");
}

#[test]
fn a_run_of_which_nobody_told_the_end_is_caught_while_its_node_lives() {
    let open = Book::new().starts("a", 0.1, 1).run("b", 7.0, 8.0, 2, "success");
    let told = || open.clone().told("a", 5.0, "lease_in_doubt", 1);
    assert!(open.clone().later().faulted().contains(&"run-without-end"));
    assert!(!told().later().faulted().contains(&"run-without-end"), "it may go on");
    assert!(told().node("a", 800.0, r#""event":"stopped""#).later().faulted().contains(&"run-without-end"));
    let renewed = (1..450).fold(Book::new().starts("a", 0.1, 1), |book, step| {
        book.slot("a", f64::from(step) * 2.0, r#""event":"renewal_answered","answer":"renewed""#)
    });
    assert!(!renewed.later().faulted().contains(&"run-without-end"), "it is renewed to the end of the journal");
    assert!(!open.fault(3.0, "kill", "a").node("b", 900.0, FILLER).faulted().contains(&"run-without-end"));
}

#[test]
fn a_slot_that_was_over_may_be_begun_by_a_person_and_by_nobody_else() {
    let missed = || Book::new().closed("a", 605.0, "missed");
    let late = missed().run("a", 700.0, 705.0, 1, "success").later();
    assert!(late.faulted().contains(&"late-start"), "{:?}", late.faulted());
    let mut by_hand = late.clone();
    by_hand.journals = late.journals.replace(r#""trigger":"schedule""#, r#""trigger":"manual""#);
    assert!(by_hand.faulted().contains(&"late-start"), "nobody asked for a slot that is over: {:?}", by_hand.faulted());
    let mut asked = by_hand;
    asked.journals = asked.journals.replace(r#""event":"granted","#, r#""event":"granted","past":true,"#);
    assert!(!asked.faulted().contains(&"late-start"), "{:?}", asked.faulted());
    let again = missed().run("a", 700.0, 705.0, 1, "failure").closed("a", 706.0, "failed").later();
    assert!(again.faulted().contains(&"two-verdicts") && again.faulted().contains(&"lost"), "{:?}", again.faulted());
    let mut reset = again.clone();
    reset.journals = again.journals.replace(r#""event":"granted","#, r#""event":"granted","past":true,"#);
    assert!(!reset.faulted().contains(&"two-verdicts") && !reset.faulted().contains(&"lost"), "{:?}", reset.faulted());
    let twice = missed().closed("a", 606.0, "failed").run("a", 700.0, 705.0, 1, "failure").later();
    let past = twice.journals.replace(r#""event":"granted","#, r#""event":"granted","past":true,"#);
    let twice = Book { journals: past, ..twice };
    assert!(twice.faulted().contains(&"two-verdicts"), "both before anybody asked: {:?}", twice.faulted());
    let four_times = |past: &str| {
        let mut book = Book::new();
        for attempt in 1..=4 {
            let at = 700.0 + 10.0 * f64::from(attempt);
            book = book.run("a", at, at + 1.0, attempt, "failure");
        }
        book.journals = book.journals.replace(r#""event":"granted","#, &format!(r#""event":"granted",{past}"#));
        book.journals = book.journals.replace("\"used\":4", "\"used\":3");
        book.later().faulted()
    };
    assert!(
        four_times("").contains(&"too-many-attempts") && !four_times("\"past\":true,").contains(&"too-many-attempts")
    );
    // Its fence is smaller than that of a slot since, and is held against those of its own slot.
    let mut since = Book::default().up("c").run("c", 620.0, 621.0, 1, "success");
    since.journals = since.journals.replace(SLOT, &SLOT.replace("T14Z", "T15Z").replace("14:10:00", "16:00:00"));
    since.journals = since.journals.replace("179526960000", "179527320000");
    asked.journals = since.journals + &asked.journals;
    assert!(!asked.faulted().contains(&"fence-back"), "{:?}", asked.faulted());
    let mut back = Book::new().run("a", 1.0, 2.0, 2, "failure").run("b", 700.0, 705.0, 1, "success").later();
    let (first, rest) = back.journals.split_once("\"settled\"").unwrap();
    back.journals =
        format!("{first}\"settled\"{}", rest.replace(r#""event":"granted","#, r#""event":"granted","past":true,"#));
    assert!(back.faulted().contains(&"fence-back"), "{:?}", back.faulted());
}
