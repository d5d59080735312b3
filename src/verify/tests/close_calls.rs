//! What a checker takes for a fault, or does not see, if it knows the clocks, the files and the claims of nodes less well than
//! their lines tell: each of these was met in a simulated cluster that kept its promises.

use super::{Book, FILLER, PLAN, text};
use crate::verify::Class;

fn plan(from: &str, to: &str) -> String {
    format!("{},\"jitter_s\":0.0", PLAN.replace(from, to))
}

impl Book {
    fn with(mut self, from: &str, to: &str) -> Self {
        self.journals = self.journals.replace(from, to);
        self
    }

    fn deadline_passed(self, node: &str, seconds: f64) -> Self {
        self.slot(node, seconds, r#""event":"start_deadline_passed""#)
    }
}

#[test]
fn two_claims_of_a_node_are_two_though_a_journal_shows_the_same_digits_of_both_tokens() {
    let twice = Book::new().run("a", 0.1, 1.0, 1, "failure").run("a", 2.05, 3.0, 2, "failure");
    let late = twice.run("b", 30.0, 31.0, 3, "success").later().with("\"a1\"", "\"a\"").with("\"a2\"", "\"a\"");
    assert_eq!(late.faulted(), ["late-recovery"], "after the second failure");
}

#[test]
fn the_end_of_a_run_that_recorded_none_is_told_by_its_nodes_clock_and_no_more_exact() {
    let killed = |to| Book::new().run("a", 0.1, to, 1, "killed").run("b", 2.05, 3.0, 2, "success").later();
    let recorded = |book: Book| book.recorded("a", 0.1, None, 1).recorded("b", 2.05, Some(3.0), 2);
    let zero = |book: Book| book.with("\"retry_delay_s\":1.0", "\"retry_delay_s\":0.0").fault(1.0, "kill_run", "push");
    zero(recorded(killed(2.1))).is_clean_and(Class::Repeat);
    assert_eq!(zero(recorded(killed(2.5))).report().tally(Class::Overlap).slots, 1);
    let ended = killed(2.1).recorded("a", 0.1, Some(2.1), 1).recorded("b", 2.05, Some(3.0), 2);
    assert_eq!(zero(ended).report().tally(Class::Overlap).slots, 1, "both are on the jobs' one clock");
}

#[test]
fn who_waits_after_a_failure_of_its_own_need_not_take_the_next_one_at_once() {
    let twice = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 1.05, 1.08, 2, "failure");
    let third = twice.run("a", 1.3, 2.0, 3, "success").with("\"retry_delay_s\":1.0", "\"retry_delay_s\":0.0").later();
    third.is_clean_and(Class::Repeat);
    assert_eq!(third.up("c").node("c", 900.0, FILLER).faulted(), ["late-recovery"], "another one was there");
}

#[test]
fn a_run_that_was_granted_later_comes_later_whatever_the_clocks_of_the_nodes_say() {
    let granted = format!(
        r#""event":"granted","attempt":2,"used":2,"max_attempts":2,"granted_at":"{}","token":"b","trigger":"retry","lease_ttl_s":6.0,"retry_delay_s":0.0,"on_lost":"continue""#,
        text(0.115)
    );
    let start = r#""event":"run_started","attempt":2,"fence":1795269600002,"trigger":"retry","guarded":true"#;
    let first = Book::new().run("a", 0.1, 0.11, 1, "failure").slot("b", 0.09, &granted).slot("b", 0.09, start);
    let second = first.ends("b", 0.2, 2, "failure").settles("b", 0.2, 2, "failure").closed("b", 602.0, "failed");
    let behind = second.with("\"max_attempts\":3", "\"max_attempts\":2").later();
    assert!(!behind.faulted().contains(&"late-recovery"), "{}", behind.report());
}

#[test]
fn nobody_claims_a_slot_before_its_tick() {
    let at_five = plan("*/10 * * * *", "5-59/10 * * * *").replace("\"tick\"", "\"600s\"");
    let until = |lost: f64| {
        let book = Book::new().node("a", -3.0, &at_five).node("b", -3.0, &at_five);
        let lost = |book: Book, node| book.node(node, lost, r#""event":"store_lost","error":"x""#);
        let back = |book: Book, node| book.node(node, 600.0, r#""event":"store_reached""#);
        back(back(lost(lost(book, "a"), "b"), "a"), "b").closed("a", 602.0, "missed").later()
    };
    let report = until(299.0).report();
    assert!(!report.unexplained.iter().any(|slot| slot.slot == "push@2026-11-21T14Z"), "{report}");
    let report = until(330.0).report();
    assert!(report.unexplained.iter().any(|slot| slot.slot == "push@2026-11-21T14Z"), "{report}");
}

#[test]
fn a_node_whose_clock_is_off_by_a_little_fires_as_late() {
    let jitter = plan("*/10", "*/10");
    let behind = |by: f64| {
        let book = Book::new().node("a", -3.0, &jitter).line("b", -3.0 - by, &jitter);
        let book = book.line("b", -2.0 - by, &format!("\"event\":\"clock_off\",\"offset_ms\":-{}", by * 1_000.0));
        book.run("a", 0.0, 0.01, 1, "failure").run("a", 2.0, 3.0, 2, "success").later()
    };
    let quick = |book: Book| book.with("\"retry_delay_s\":1.0", "\"retry_delay_s\":0.0");
    quick(behind(2.5)).is_clean_and(Class::Repeat);
    let much_later = Book::new().node("a", -3.0, &jitter).line("b", -5.5, &jitter);
    let off = much_later.line("b", -4.5, r#""event":"clock_off","offset_ms":-2500"#).run("a", 0.0, 0.01, 1, "failure");
    assert_eq!(quick(off.run("a", 300.0, 301.0, 2, "success").later()).faulted(), ["late-recovery"]);
    let well = Book::new().node("a", -3.0, &jitter).node("b", -3.0, &jitter);
    let late = well.run("a", 0.0, 0.01, 1, "failure").run("a", 2.0, 3.0, 2, "success").later();
    assert_eq!(quick(late).faulted(), ["late-recovery"]);
}

#[test]
fn a_slot_is_not_closed_while_it_runs_on() {
    let on = |to| Book::new().run("a", 0.1, to, 1, "failure");
    assert!(on(640.0).node("b", 645.0, FILLER).node("a", 645.0, FILLER).report().is_clean());
    assert!(on(640.0).later().faulted().contains(&"no-verdict"));
}

#[test]
fn files_that_allow_different_numbers_of_attempts_are_each_held_to_their_own() {
    let (three, one) = (plan("*/10", "*/10"), plan("\"max_attempts\":3", "\"max_attempts\":1"));
    let book = |second: &str| {
        let book = Book::new().node("a", -3.0, &three).node("b", -3.0, second);
        book.run("a", 0.1, 1.0, 1, "failure")
    };
    let away = |book: Book| {
        let lost = book.node("a", 1.5, r#""event":"store_lost","error":"x""#);
        lost.node("a", 601.0, r#""event":"store_reached""#)
    };
    let failed = |book: Book| book.closed("b", 602.0, "failed").later();
    failed(away(book(&one))).is_clean_and(Class::Lost);
    assert!(failed(book(&one)).faulted().contains(&"lost"), "by its own file a had two more, and was well");
    assert!(failed(away(book(&three))).faulted().contains(&"lost"), "b had two more");
    let again = |second: &str| book(second).run("a", 2.5, 3.0, 2, "success").later();
    again(&one).is_clean_and(Class::Repeat);
    assert_eq!(again(&three).faulted(), ["late-recovery"]);
}

/// A file that differs at another time is no reason.
#[test]
fn another_number_of_attempts_hours_later_excuses_nothing() {
    let two = plan("\"max_attempts\":3", "\"max_attempts\":2");
    let book = Book::new().node("a", -3.0, &two).node("b", -3.0, &two).run("a", 0.1, 1.0, 1, "failure");
    let last = book.run("b", 300.0, 301.0, 2, "failure").with("\"max_attempts\":3", "\"max_attempts\":2");
    let late = last.closed("b", 602.0, "failed").node("c", 700.0, r#""event":"started","jobs":1"#);
    let three = plan("\"max_attempts\":2", "\"max_attempts\":3");
    assert_eq!(late.node("c", 700.1, &three).later().faulted(), ["late-recovery"]);
}

/// Who fails in its turn later was not waiting before.
#[test]
fn a_late_retry_that_fails_is_late() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 300.0, 301.0, 2, "failure");
    assert_eq!(book.run("a", 302.05, 303.0, 3, "success").later().faulted(), ["late-recovery"]);
}

/// Nobody was granted it, and nobody's claim went without an answer: whatever was counted was not of this slot.
#[test]
fn a_slot_that_failed_without_an_attempt_is_not_explained_by_a_fault_that_was_there() {
    let book = Book::new().closed("b", 602.0, "failed").later().fault(300.0, "delay", "store");
    assert!(book.faulted().contains(&"lost"));
}

#[test]
fn who_dies_right_after_a_grant_may_have_had_an_attempt_and_tells_of_none() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let failed = Book::new().node("a", -3.0, &one).node("b", -3.0, &one).closed("b", 602.0, "failed");
    let failed = failed.node("b", 900.0, FILLER);
    assert_eq!(failed.clone().node("a", 900.0, FILLER).faulted(), ["lost"]);
    failed.clone().fault(0.1, "kill", "a").is_clean_and(Class::Lost);
    let later = failed.clone().fault(300.0, "kill", "a");
    assert!(later.faulted().contains(&"lost"), "they had been well for five minutes, and asked for nothing");
    let three = failed.with("\"max_attempts\":1", "\"max_attempts\":3").fault(0.1, "kill", "a");
    assert!(three.faulted().contains(&"lost"), "it had one of them at the most");
}

#[test]
fn who_was_the_last_to_die_may_have_had_an_attempt_and_left_nobody_to_make_the_next() {
    let died = |seconds: f64| {
        let three = plan("x", "x");
        let book = Book::new().node("a", -3.0, &three).node("b", -3.0, &three);
        let gone = book.fault(-1.9, "kill", "a").fault(seconds, "kill", "b");
        let back = gone.node("c", 700.0, r#""event":"started","jobs":1"#).node("c", 700.1, &three);
        back.closed("c", 702.0, "failed").node("c", 900.0, FILLER)
    };
    let report = died(0.1).is_clean_and(Class::Lost);
    let why = &report.explained[0].why[0];
    assert!(why.contains("a node died that can have had an attempt") && why.contains("no node was there"), "{why}");
    assert_eq!(died(-1.9).faulted(), ["lost"], "nobody was left to ask for it");
    let away = died(0.4).node("b", -1.0, r#""event":"store_lost","error":"x""#);
    assert_eq!(away.faulted(), ["lost"], "it could not ask for it");
    away.node("b", 0.3, r#""event":"store_reached""#).is_clean_and(Class::Lost);
}

#[test]
fn who_died_under_an_attempt_that_it_told_of_had_none_beside() {
    let two = plan("\"max_attempts\":3", "\"max_attempts\":2");
    let book = Book::new().node("a", -3.0, &two).node("b", -3.0, &two).starts("a", 0.1, 1).fault(300.0, "kill", "a");
    let failed = book.with("\"max_attempts\":3", "\"max_attempts\":2").closed("b", 602.0, "failed");
    let report = failed.node("b", 900.0, FILLER).report().to_string();
    assert!(!report.contains("attempts were told, and nodes died"), "{report}");
}

#[test]
fn who_is_said_to_hold_the_slot_as_it_dies_had_an_attempt() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let book = Book::new().node("a", -3.0, &one).node("b", -3.0, &one).fault(20.0, "kill", "a");
    let failed = book.closed("b", 602.0, "failed").node("b", 900.0, FILLER);
    assert!(failed.faulted().contains(&"lost"));
    let held = failed.slot("b", 20.1, r#""event":"claim_answered","answer":"held","by":"a""#);
    assert!(!held.faulted().contains(&"lost"), "{}", held.report());
}

#[test]
fn a_claim_that_went_without_an_answer_may_have_been_an_attempt() {
    let two = plan("\"max_attempts\":3", "\"max_attempts\":2");
    let failed = |op: &str, kind: &str, next: f64| {
        let book = Book::new().node("a", -3.0, &two).node("b", -3.0, &two).run("a", 0.1, 1.0, 1, "failure");
        let failed = format!(r#""event":"store_failed","op":"{op}","kind":"{kind}","error":"x""#);
        let book = book.with("\"max_attempts\":3", "\"max_attempts\":2").slot("b", 1.9, &failed);
        let held = book.slot("a", 1.95, r#""event":"claim_answered","answer":"held","by":"b""#);
        let used_up = held.slot("b", next, r#""event":"claim_answered","answer":"exhausted""#);
        used_up.slot("a", 12.0, r#""event":"claim_answered","answer":"exhausted""#).closed("b", 602.0, "failed").later()
    };
    let report = failed("claim", "timeout", 9.0).is_clean_and(Class::Lost);
    let why = "1 of 2 attempts were told, and claims without an answer can have been granted the others";
    assert!(report.explained[0].why[0].contains(why), "{report}");
    failed("claim", "unavailable", 9.0).is_clean_and(Class::Lost);
    assert_eq!(failed("claim", "timeout", 7.5).faulted(), ["lost"], "it would have been told that it has the slot");
    assert_eq!(failed("claim", "denied", 9.0).faulted(), ["lost"], "it was answered");
    assert_eq!(failed("fail", "timeout", 9.0).faulted(), ["lost"], "it asked for none");
}

/// Whoever closed it had counted fewer attempts than were made: that takes a store that forgets.
#[test]
fn a_slot_that_was_missed_though_all_attempts_were_made_is_a_riddle() {
    let three = plan("*/10", "*/10");
    let book = Book::new().node("a", -3.0, &three).node("b", -3.0, &three).run("a", 0.1, 1.0, 1, "failure");
    let book = book.run("b", 2.05, 3.0, 2, "failure").run("a", 4.05, 5.0, 3, "failure").closed("a", 640.0, "missed");
    let later = book.node("c", 2_000.0, r#""event":"started","jobs":1"#);
    let five = plan("\"max_attempts\":3", "\"max_attempts\":5");
    assert!(later.node("c", 2_000.1, &five).later().faulted().contains(&"lost"));
}

#[test]
fn a_slot_without_a_verdict_whose_attempts_were_all_made_is_no_riddle() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").run("b", 2.05, 3.0, 2, "failure");
    let book = book.run("a", 4.05, 5.0, 3, "failure").later();
    assert_eq!(book.faulted(), ["no-verdict"], "which is a rule of its own");
}

#[test]
fn an_attempt_that_was_given_back_when_another_one_had_its_place_may_count_all_the_same() {
    let back = Book::new().granted("a", 0.1, 1).settles("a", 8.0, 1, "given_back").run("b", 7.0, 8.5, 2, "failure");
    let back = back.with("\"max_attempts\":3", "\"max_attempts\":2").closed("b", 602.0, "failed").later();
    assert!(back.faulted().contains(&"lost"));
    let told = back.slot("a", 8.0, r#""event":"overtaken","attempt":1,"by":"b","by_attempt":2"#);
    assert!(!told.faulted().contains(&"lost"), "{}", told.report());
}

#[test]
fn who_takes_a_job_from_a_new_file_does_not_look_for_slots_that_were_over() {
    let plan = plan("*/10", "*/10");
    let reload = |book: Book, node, at| book.node(node, at, r#""event":"reloaded","jobs":1"#);
    let lost = |book: Book, node| reload(book.node(node, -3.0, &plan), node, 300.0);
    let book = lost(lost(Book::new(), "a"), "b").run("a", 0.1, 1.0, 1, "failure").fault(1.5, "delay", "store");
    let again =
        |book: Book, at: f64| reload(reload(book, "a", at), "b", at).node("a", at, &plan).node("b", at, &plan).later();
    assert!(!again(book.clone(), 620.0).faulted().contains(&"no-verdict"));
    assert!(again(book, 580.0).faulted().contains(&"no-verdict"), "it lasted when they took the job again");
}

#[test]
fn a_node_that_says_that_it_plans_nothing_need_not_do_anything() {
    let alone = |jobs: &str| {
        let book = Book::default().node("b", -5.0, &format!("\"event\":\"started\",\"jobs\":{jobs}"));
        let book = book.node("b", -4.0, r#""event":"store_reached""#).up("a");
        book.run("a", 0.1, 1.0, 1, "failure").run("a", 2.5, 3.0, 2, "success").later()
    };
    alone("0").is_clean_and(Class::Repeat);
    assert_eq!(alone("1").faulted(), ["late-recovery"], "an old journal does not tell its plan");
}

#[test]
fn a_slot_for_which_it_was_too_late_before_anybody_was_there_is_nobodys() {
    let plan = plan("*/10", "*/10");
    let book = |told: &str| {
        let book = Book::default().node("a", 605.0, r#""event":"started","jobs":1"#).node("a", 605.1, told);
        book.node("a", 606.0, r#""event":"store_reached""#).deadline_passed("a", 606.5).node("a", 1_000.0, FILLER)
    };
    let report = book(&plan).report();
    assert!(
        report.is_clean() && report.notes.iter().any(|note| note.contains("over before a node was there")),
        "{report}"
    );
    assert_eq!(book(FILLER).report().slots, 1, "nobody knows what it planned");
    let within = Book::default().node("a", 300.0, r#""event":"started","jobs":1"#).node("a", 300.1, &plan);
    let told =
        within.node("a", 301.0, r#""event":"store_reached""#).deadline_passed("a", 301.5).node("a", 1_000.0, FILLER);
    assert!(told.faulted().contains(&"no-verdict"), "it was there to close it");
}

#[test]
fn a_run_without_a_guard_begins_by_the_clock_of_its_node() {
    let start = r#""event":"run_started","attempt":0,"fence":0,"trigger":"schedule","guarded":false"#;
    let book = |seconds: f64| {
        let off = Book::new().node("a", -4.5, r#""event":"clock_off","offset_ms":1500"#);
        off.slot("a", seconds, start).ends("a", seconds + 1.0, 0, "success").later()
    };
    assert!(!book(0.1).faulted().contains(&"early-start"), "it is 13:59:58.6 by the store's clock");
    assert!(book(-0.5).faulted().contains(&"early-start"));
}

#[test]
fn a_run_whose_end_its_node_told_of_late_was_over_when_its_keeper_saw_it_end() {
    let book = |ran| {
        let stood_still = Book::new().starts("a", 0.1, 1).ended_after(ran, "a", 30.0, 1, "killed");
        let book = stood_still.run("b", 8.0, 9.0, 2, "success").later();
        book.with("\"on_lost\":\"continue\"", "\"on_lost\":\"kill\"")
    };
    let overlaps = |book: Book| book.report().tally(Class::Overlap).slots;
    assert_eq!((overlaps(book(5.0)), overlaps(book(29.9))), (0, 1));
    let recorded = book(5.0).recorded("a", 0.1, Some(20.0), 1).recorded("b", 8.0, Some(9.0), 2);
    assert_eq!(overlaps(recorded), 1, "the job's own word is the better one");
}

#[test]
fn of_an_end_that_its_node_did_not_see_only_the_earliest_instant_shows_an_overlap() {
    let book = |after: &str| {
        let between = format!(",\"ended_between\":[\"{after}\",\"2026-11-21T14:00:30Z\"]");
        let stood_still = Book::new().starts("a", 0.1, 1).ended_after(29.9, "a", 30.0, 1, "killed");
        let book = stood_still.with("\"duration_s\":29.9", &format!("\"duration_s\":29.9{between}"));
        let book = book.run("b", 8.0, 9.0, 2, "success").later();
        book.with("\"on_lost\":\"continue\"", "\"on_lost\":\"kill\"")
    };
    let overlaps = |book: Book| book.report().tally(Class::Overlap).slots;
    assert_eq!(overlaps(book("2026-11-21T14:00:02Z")), 0);
    assert_eq!(overlaps(book("2026-11-21T14:00:08.500Z")), 1);
}

#[test]
fn a_run_by_a_clock_that_was_set_while_its_node_ran_is_no_late_start() {
    let told = |line: &str| Book::new().run("a", 0.1, 1.0, 1, "failure").node("a", 662.0, line);
    // It is 14:09:58 when the second attempt is granted, and a minute later by a clock that was set in between.
    let book = |line: &str| {
        let late = told(line).run("a", 658.0, 659.0, 2, "success").later();
        late.with(&format!("\"granted_at\":\"{}\"", text(658.0)), &format!("\"granted_at\":\"{}\"", text(598.0)))
    };
    assert!(!book(r#""event":"clock_off","offset_ms":60000"#).faulted().contains(&"late-start"));
    assert!(book(FILLER).faulted().contains(&"late-start"), "nobody told of a clock");
    assert!(book(r#""event":"clock_off","offset_ms":30000"#).faulted().contains(&"late-start"), "not so far");
    // Set back by a minute, after the first attempt: its lines seem a minute later than they are.
    let back = |line: &str| {
        let book = Book::new().run("a", 580.0, 590.0, 1, "failure").run("a", 535.0, 536.0, 2, "success");
        let book = book.node("a", 540.0, line).later();
        book.with(&format!("\"granted_at\":\"{}\"", text(535.0)), &format!("\"granted_at\":\"{}\"", text(595.0)))
    };
    assert!(!back(r#""event":"clock_off","offset_ms":-60000"#).faulted().contains(&"late-start"));
    assert!(back(FILLER).faulted().contains(&"late-start"));
}

#[test]
fn a_job_that_met_another_run_alive_met_the_one_that_was() {
    let three = Book::new().starts("a", 0.1, 1).fault(1.0, "kill", "a").run("b", 8.0, 20.0, 2, "success");
    let three = three.told("b", 10.0, "lease_lost", 2).starts("c", 9.0, 3).ends("c", 12.0, 3, "success");
    let book = three.settles("c", 12.0, 3, "success").up("c").node("b", 900.0, FILLER).node("c", 900.0, FILLER);
    let mut book = book.recorded("a", 0.1, None, 1).recorded("b", 8.0, Some(20.0), 2).recorded("c", 9.0, Some(12.0), 3);
    book.recorder = book.recorder.trim_end().trim_end_matches('}').to_owned() + ",\"overlap\":true}\n";
    let report = book.report();
    let said = "attempt 1 on a and attempt 3 on c ran at the same time";
    assert!(!report.to_string().contains(said), "{report}");
    let alone = book.recorder.lines().filter(|line| !line.contains("\"attempt\":2")).collect::<Vec<_>>().join("\n");
    let journals = book.journals.lines().filter(|line| !(line.contains("\"node\":\"b\"") && line.contains("push")));
    let orphan = Book { recorder: alone + "\n", journals: journals.collect::<Vec<_>>().join("\n") + "\n", ..book };
    assert!(orphan.report().to_string().contains(said), "{}", orphan.report());
}

#[test]
fn what_a_job_recorded_belongs_to_the_run_of_that_number_that_began_then() {
    let twice =
        Book::new().run("a", 0.1, 0.2, 1, "failure").fault(1.0, "flush", "store").run("a", 40.0, 41.0, 1, "success");
    let report = twice.later().recorded("a", 40.01, Some(40.99), 1).report();
    assert!(report.is_clean(), "the first one could not be started, and recorded nothing: {report}");
}

/// A grant of the second attempt, by the store's clock.
fn second_grant(granted: f64, used: u32) -> String {
    format!(
        r#""event":"granted","attempt":2,"used":{used},"max_attempts":3,"granted_at":"{}","token":"b2","trigger":"retry","lease_ttl_s":6.0,"retry_delay_s":0.0,"on_lost":"continue""#,
        text(granted)
    )
}

const SECOND_START: &str =
    r#""event":"run_started","attempt":2,"fence":1795269600002,"trigger":"retry","guarded":true"#;

#[test]
fn a_retry_comes_after_the_run_that_failed_though_the_clock_of_its_node_is_behind() {
    let retried = |granted: f64, from: f64, to: f64| {
        let begun = Book::new().slot("b", from, &second_grant(granted, 2)).slot("b", from, SECOND_START);
        begun.ends("b", to, 2, "success").settles("b", to, 2, "success").later()
    };
    let failed = |book: Book, from: f64, to: f64| book.starts("a", from, 1).ends("a", to, 1, "failure");
    let well = failed(retried(0.115, 0.09, 0.098), 0.1, 0.105).settles("a", 0.11, 1, "failure");
    let quick = |book: Book| book.with("\"retry_delay_s\":1.0", "\"retry_delay_s\":0.0");
    quick(well).is_clean_and(Class::Repeat);
    let on = failed(retried(0.115, 0.09, 0.098), 0.1, 0.3);
    assert_eq!(quick(on).faulted(), ["repeat"], "it had not ended when the other one was granted the slot");
    // Its node stood still until its lease had lapsed, and the other one had done the slot.
    let lapsed = failed(retried(6.25, 6.22, 6.29).granted("a", 0.1, 1), 6.3, 6.32).settles("a", 6.33, 1, "failure");
    assert!(quick(lapsed.clone()).faulted().contains(&"repeat"), "{}", lapsed.report());
}

/// One attempt is all: what it is said to have come to, by nobody who had it.
fn used_up(book: Book, node: &str, ahead: f64) -> Book {
    let begun = book.node(node, 8.0 + ahead, r#""event":"started","jobs":1"#);
    let begun = begun.node(node, 8.1 + ahead, &plan("\"max_attempts\":3", "\"max_attempts\":1"));
    let reached = begun.node(node, 8.2 + ahead, r#""event":"store_reached""#);
    let told = reached.slot(node, 8.3 + ahead, r#""event":"claim_answered","answer":"exhausted""#);
    told.closed(node, 602.0 + ahead, "failed").node(node, 900.0 + ahead, FILLER)
}

#[test]
fn who_died_before_it_knew_its_clock_had_that_of_its_machine() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let died = |said: &str| {
        let begun = Book::default().node("a/1", 95.0, r#""event":"started","jobs":1"#).node("a/1", 95.0, &one);
        let off = begun.node("a/1", 95.01, said).fault(0.02, "kill", "a");
        used_up(off.node("a/2", 103.15, r#""event":"clock_off","offset_ms":95000"#), "a/2", 95.0)
    };
    died(FILLER).is_clean_and(Class::Lost);
    let right = died(r#""event":"store_reached""#);
    assert!(right.faulted().contains(&"lost"), "its own clock was right when it reached its store");
    let set = died(FILLER).node("a/3", 1_500.0, r#""event":"clock_off","offset_ms":5000"#);
    assert!(set.faulted().contains(&"lost"), "the clock was set: nobody knows when");
}

#[test]
fn who_dies_before_it_knows_that_it_reached_its_store_may_have_had_an_attempt() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let died = |told: &dyn Fn(Book) -> Book| {
        let begun = Book::default().node("a/1", -1.0, r#""event":"started","jobs":1"#).node("a/1", -1.0, &one);
        used_up(told(begun).fault(0.9, "kill", "a"), "a/2", 0.0)
    };
    died(&|book| book).is_clean_and(Class::Lost);
    let refused =
        |book: Book| book.slot("a/1", 0.1, r#""event":"store_failed","op":"claim","kind":"denied","error":"x""#);
    assert!(died(&refused).faulted().contains(&"lost"), "it was told that it was not granted the slot");
    let lost = |book: Book| {
        let reached = book.node("a/1", -0.9, r#""event":"store_reached""#);
        reached.node("a/1", -0.2, r#""event":"store_lost","error":"x""#)
    };
    assert!(died(&lost).faulted().contains(&"lost"), "it knew that its store was away");
}

#[test]
fn a_node_that_put_its_clock_right_need_not_be_late() {
    let died = |schedule: &str, period: &str| {
        let one =
            plan("\"max_attempts\":3", "\"max_attempts\":1").replace("*/10 ", schedule).replace("\"tick\"", period);
        let begun = Book::default().node("a/1", -12.5, r#""event":"started","jobs":1"#).node("a/1", -12.5, &one);
        let off = begun.node("a/1", -12.4, r#""event":"clock_off","offset_ms":-2500"#);
        let dead =
            off.node("a/1", -12.4, r#""event":"store_reached""#).node("a/1", -2.3, FILLER).fault(0.3, "kill", "a");
        used_up(dead, "a/2", 0.0)
    };
    died("*/10 ", "\"tick\"").is_clean_and(Class::Lost);
    let later = died("5-59/10 ", "\"600s\"");
    assert!(later.faulted().contains(&"lost"), "it died before the tick");
}

#[test]
fn an_attempt_that_its_node_heard_of_after_the_lease_may_count_though_it_was_given_back() {
    let why = r#""event":"unstarted","attempt":2,"why":"the node was shutting down""#;
    let book = |heard: f64| {
        let first = Book::new().granted("a", 0.1, 1).settles("a", 0.2, 1, "given_back");
        let second = first.slot("b", heard, &second_grant(0.3, 1)).slot("b", heard, why);
        let back = second.settles("b", heard + 0.1, 2, "given_back").closed("a", 602.0, "failed").later();
        // One that was answered at once shows that the clock of its node is right.
        let quick = back.slot("b", 0.1, &second_grant(0.1, 1).replace("\"attempt\":2", "\"attempt\":1"));
        quick.settles("b", 0.15, 1, "given_back").with("\"max_attempts\":3", "\"max_attempts\":1")
    };
    assert!(!book(30.0).faulted().contains(&"lost"), "{}", book(30.0).report());
    assert!(book(0.4).faulted().contains(&"lost"), "it was given back in time");
}

#[test]
fn an_attempt_that_was_given_back_counts_again_where_the_store_went_back() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let why = r#""event":"unstarted","attempt":1,"why":"the slot ended while it waited for x""#;
    let book = |fault: f64, kind: &str| {
        let begun = Book::default().node("a", 585.0, r#""event":"started","jobs":1"#).node("a", 585.1, &one);
        let reached = begun.node("a", 585.2, r#""event":"store_reached""#).granted("a", 590.0, 1);
        let back = reached.slot("a", 599.9, why).settles("a", 600.0, 1, "given_back").fault(fault, kind, "store");
        let failed = back.closed("a", 620.0, "failed").node("a", 900.0, FILLER);
        failed.with("\"max_attempts\":3", "\"max_attempts\":1")
    };
    assert!(!book(610.0, "failover").faulted().contains(&"lost"), "{}", book(610.0, "failover").report());
    assert!(book(610.0, "wipe").faulted().contains(&"lost"), "an empty store counts no attempts");
    assert!(book(630.0, "failover").faulted().contains(&"lost"), "the verdict was there before");
    assert!(book(610.0, "delay").faulted().contains(&"lost"));
}

#[test]
fn an_attempt_that_its_node_gave_back_as_it_died_is_one_that_the_store_does_not_count() {
    let one = plan("\"max_attempts\":3", "\"max_attempts\":1");
    let why = r#""event":"unstarted","attempt":2,"why":"the start deadline had passed""#;
    let book = |used: u32| {
        let began = Book::new().node("a", -3.0, &one).node("b", -3.0, &one).starts("a", 0.1, 1).fault(2.0, "kill", "a");
        let second = began.slot("b", 6.3, &second_grant(6.3, used)).slot("b", 6.3, why);
        let back = second.settles("b", 6.4, 2, "given_back").deadline_passed("b", 6.5);
        back.closed("b", 602.0, "missed").node("b", 900.0, FILLER).with("\"max_attempts\":3", "\"max_attempts\":1")
    };
    book(1).is_clean_and(Class::Lost);
    assert!(book(2).faulted().contains(&"lost"), "by the store's count both were made: it would have failed");
}

#[test]
fn who_leaves_may_have_closed_a_slot_before_it_is_gone() {
    let plan = plan("*/10", "*/10");
    let book = |stopped: f64| {
        let planned = Book::new().node("a", -3.0, &plan).node("b", -3.0, &plan).run("a", 0.1, 1.0, 1, "failure");
        let left = planned.node("b", 500.0, r#""event":"draining","running":1,"drain_s":200.0"#);
        let gone = left.node("b", stopped, r#""event":"stopped""#).fault(590.0, "delay", "store");
        gone.node("a", 900.0, FILLER)
    };
    assert!(!book(604.0).faulted().contains(&"no-verdict"), "{}", book(604.0).report());
    assert!(book(598.0).faulted().contains(&"no-verdict"), "it was gone before there was anything to close");
}
