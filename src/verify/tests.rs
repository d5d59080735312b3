//! Journals written by hand: what is well, every class, every rule, and clusters that are broken in silence.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::*;

/// Lines of several nodes; seconds count from 14:00:00, the slot is `push@2026-11-21T14Z` and lasts ten minutes.
#[derive(Clone, Default)]
struct Book {
    journals: String,
    recorder: String,
    faults: String,
}

fn at(seconds: f64) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
    #[allow(clippy::cast_possible_truncation, reason = "small")]
    let ms = (seconds * 1_000.0).round() as i64;
    start + TimeDelta::milliseconds(ms)
}

fn text(seconds: f64) -> String {
    at(seconds).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// A line that says nothing of importance.
const FILLER: &str = r#""event":"reload_refused","error":"x""#;

const SLOT: &str = r#""job":"push","slot":"2026-11-21T14Z","slot_end":"2026-11-21T14:10:00Z","#;

impl Book {
    /// Two nodes that are there and in touch all the time.
    fn new() -> Self {
        Self::default().up("a").up("b")
    }

    fn up(self, node: &str) -> Self {
        self.node(node, -5.0, r#""event":"started","jobs":1"#).node(node, -4.0, r#""event":"store_reached""#)
    }

    fn line(mut self, node: &str, seconds: f64, rest: &str) -> Self {
        let (name, instance) = node.split_once('/').unwrap_or((node, node));
        let line = format!(r#"{{"at":"{}","node":"{name}","instance":"{instance}",{rest}}}"#, text(seconds));
        self.journals.push_str(&line);
        self.journals.push('\n');
        self
    }

    fn node(self, node: &str, seconds: f64, fact: &str) -> Self {
        self.line(node, seconds, fact)
    }

    fn slot(self, node: &str, seconds: f64, fact: &str) -> Self {
        self.line(node, seconds, &format!("{SLOT}{fact}"))
    }

    fn granted(self, node: &str, seconds: f64, attempt: u32) -> Self {
        let at = text(seconds);
        self.slot(node, seconds, &format!(
            r#""event":"granted","attempt":{attempt},"used":{attempt},"max_attempts":3,"granted_at":"{at}","token":"{node}{attempt}","trigger":"schedule","lease_ttl_s":6.0,"retry_delay_s":1.0,"on_lost":"continue""#
        ))
    }

    fn starts(self, node: &str, seconds: f64, attempt: u32) -> Self {
        let fence = 1_795_269_600_000_u64 + u64::from(attempt);
        self.granted(node, seconds, attempt).slot(
            node,
            seconds,
            &format!(
                r#""event":"run_started","attempt":{attempt},"fence":{fence},"trigger":"schedule","guarded":true"#
            ),
        )
    }

    fn ends(self, node: &str, seconds: f64, attempt: u32, outcome: &str) -> Self {
        self.slot(
            node,
            seconds,
            &format!(r#""event":"run_ended","attempt":{attempt},"outcome":"{outcome}","duration_s":1.0"#),
        )
    }

    fn settles(self, node: &str, seconds: f64, attempt: u32, outcome: &str) -> Self {
        self.slot(node, seconds, &format!(r#""event":"settled","attempt":{attempt},"outcome":"{outcome}""#))
    }

    /// A whole run.
    fn run(self, node: &str, from: f64, to: f64, attempt: u32, outcome: &str) -> Self {
        self.starts(node, from, attempt).ends(node, to, attempt, outcome).settles(node, to, attempt, outcome)
    }

    fn closed(self, node: &str, seconds: f64, verdict: &str) -> Self {
        self.slot(node, seconds, &format!(r#""event":"closed","verdict":"{verdict}""#))
    }

    fn told(self, node: &str, seconds: f64, event: &str, attempt: u32) -> Self {
        self.slot(node, seconds, &format!(r#""event":"{event}","attempt":{attempt},"killing":false"#))
    }

    fn recorded(mut self, node: &str, from: f64, to: Option<f64>, attempt: u32) -> Self {
        let ms = |seconds: f64| at(seconds).timestamp_millis();
        let end = to.map_or("null".to_owned(), |to| ms(to).to_string());
        self.recorder.push_str(&format!(
            "{{\"job\":\"push\",\"slot\":\"2026-11-21T14Z\",\"attempt\":{attempt},\"fence\":{attempt},\"node\":\"{node}\",\"pid\":{attempt},\"start_ms\":{},\"end_ms\":{end}}}\n",
            ms(from)
        ));
        self
    }

    fn fault(mut self, seconds: f64, kind: &str, target: &str) -> Self {
        let line = format!("{{\"at\":\"{}\",\"kind\":\"{kind}\",\"target\":\"{target}\"}}\n", text(seconds));
        self.faults.push_str(&line);
        self
    }

    /// The journals go on until long after the slot.
    fn later(self) -> Self {
        self.node("a", 900.0, FILLER).node("b", 900.0, FILLER)
    }

    fn report(&self) -> Report {
        self.report_with(Duration::ZERO)
    }

    fn report_with(&self, allowance: Duration) -> Report {
        let mut inputs = Inputs { allowance, ..Inputs::default() };
        inputs.journal("j", &self.journals).unwrap();
        inputs.recorder("r", &self.recorder).unwrap();
        inputs.faults("f", &self.faults).unwrap();
        check(inputs)
    }

    #[track_caller]
    fn is_clean_and(&self, class: Class) -> Report {
        let report = self.report();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.tally(class).slots, 1, "{report}");
        report
    }

    /// The rules and classes that are found wanting.
    fn faulted(&self) -> Vec<&'static str> {
        let report = self.report();
        report.unexplained.iter().chain(&report.violations).map(|finding| finding.rule).collect()
    }
}

#[test]
fn a_slot_done_by_one_run_is_once() {
    let report = Book::new().run("a", 0.1, 1.0, 1, "success").later().is_clean_and(Class::Once);
    assert_eq!((report.slots, report.rate_below), (1, None));
}

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
fn a_node_that_is_killed_while_it_drains_has_died_too() {
    let book = Book::new().starts("a", 0.1, 1).node("a", 1.0, r#""event":"draining","running":1,"drain_s":60.0"#);
    let taken = book.run("b", 6.5, 8.0, 2, "success").node("b", 900.0, FILLER);
    taken.is_clean_and(Class::Repeat);
}

#[test]
fn a_journal_that_is_given_twice_counts_once() {
    let mut book = Book::new().run("a", 0.1, 1.0, 1, "success").later();
    book.journals = book.journals.repeat(2);
    book.is_clean_and(Class::Once);
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
    missed(Book::new().slot("a", 1.0, r#""event":"claim_answered","answer":"paused""#)).is_clean_and(Class::Lost);
    missed(Book::new().fault(0.0, "partition", "store")).is_clean_and(Class::Lost);
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

const PLAN: &str = r#""job":"push","event":"planned","schedule":"*/10 * * * *","timezone":"UTC","period":"tick","max_attempts":3,"lease_ttl_s":6.0,"retry_delay_s":1.0,"on_lost":"continue","ours":true"#;

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

#[test]
fn a_slot_that_is_not_over_is_not_judged() {
    let report = Book::new().starts("a", 0.1, 1).report();
    assert_eq!((report.slots, report.open, report.is_clean()), (0, 1, true));
}

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
fn a_node_whose_clock_is_off_is_set_right_by_the_stores() {
    let shifted = Book::new().run("a", 0.1, 1.0, 1, "success").later();
    let journals = shifted.journals.replace("\"at\":\"2026-11-21T14:", "\"at\":\"2026-11-21T15:");
    Book { journals, ..shifted }.is_clean_and(Class::Once);
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

#[test]
fn done_without_a_success_is_caught() {
    let book = Book::new().run("a", 0.1, 1.0, 1, "failure").later();
    let done = book.slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"a""#);
    assert!(done.faulted().contains(&"done-without-success"), "{:?}", done.faulted());
    done.fault(1.5, "mark_done", "push@2026-11-21T14Z").is_clean_and(Class::Once);
}

#[test]
fn a_slot_done_by_a_node_whose_journal_is_not_there_is_not_judged() {
    let report = Book::new().slot("b", 2.0, r#""event":"claim_answered","answer":"done","by":"z""#).later().report();
    assert!(report.is_clean() && report.slots == 0 && report.notes[0].contains("not among these"), "{report}");
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
