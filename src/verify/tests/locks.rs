//! Jobs that hold locks besides their slots: what a wait for them explains, and what may never be, each with what excuses it.

use super::{Book, FILLER, PLAN, text};
use crate::verify::Class;

const DB: &str = r#"{"lock":"db","weight":1,"of":1}"#;
const WELL: &str = r#""event":"renewal_answered","answer":"renewed""#;

fn permits(weight: u32, of: u32) -> String {
    format!(r#"{{"lock":"db","weight":{weight},"of":{of}}}"#)
}

fn shared() -> String {
    permits(1, u32::MAX)
}

fn plan(locks: &str) -> String {
    format!("{PLAN},\"jitter_s\":0.0,\"locks\":[{locks}]")
}

/// Both nodes plan the job, with its lock, before its tick.
fn planned() -> Book {
    Book::new().node("a", -3.0, &plan(DB)).node("b", -3.0, &plan(DB))
}

impl Book {
    /// What is written is of another job.
    fn of_job(self, job: &str, write: impl FnOnce(Self) -> Self) -> Self {
        let before = self.journals.len();
        let mut after = write(self);
        let new = after.journals.split_off(before).replace("\"job\":\"push\"", &format!("\"job\":\"{job}\""));
        after.journals.push_str(&new);
        after
    }

    fn waits(self, node: &str, seconds: f64, attempt: u32) -> Self {
        let fact = format!(
            r#""event":"lock_waiting","attempt":{attempt},"locks":[{DB}],"ahead":1,"by":"c","by_label":"pull@2026-11-21T14Z#1""#
        );
        self.slot(node, seconds, &fact)
    }

    fn holds(self, node: &str, seconds: f64, attempt: u32, fence: u64, locks: &str) -> Self {
        let fact =
            format!(r#""event":"lock_held","attempt":{attempt},"locks":[{locks}],"fence":{fence},"waited_s":0.0"#);
        self.slot(node, seconds, &fact)
    }

    fn leaves_for(self, node: &str, seconds: f64, attempt: u32, why: &str) -> Self {
        let fact = format!(r#""event":"lock_left","attempt":{attempt},"answer":"released","why":"{why}""#);
        self.slot(node, seconds, &fact).settles(node, seconds, attempt, "given_back")
    }

    fn loses(self, node: &str, seconds: f64, attempt: u32, in_doubt: bool) -> Self {
        let fact = format!(r#""event":"lock_lost","attempt":{attempt},"in_doubt":{in_doubt},"killing":false"#);
        self.slot(node, seconds, &fact)
    }

    /// Its node renews its lease, each two seconds.
    fn renews(self, node: &str, from: f64, to: f64) -> Self {
        let mut book = self;
        let mut seconds = from;
        while seconds < to {
            book = book.slot(node, seconds, WELL);
            seconds += 2.0;
        }
        book
    }

    /// It waits from its grant on, in vain.
    fn waits_in_vain(self, node: &str, from: f64, to: f64, attempt: u32) -> Self {
        let waiting = self.granted(node, from, attempt).waits(node, from + 0.05, attempt).renews(node, from + 2.0, to);
        waiting.leaves_for(node, to, attempt, "it waited for db (lock_wait)")
    }

    /// A command that is started, with its locks held.
    fn begins_with(self, node: &str, from: f64, fence: u64, locks: &str) -> Self {
        self.with_start(node, from, |book| book.holds(node, from, 1, fence, locks))
    }

    fn with_start(self, node: &str, from: f64, held: impl FnOnce(Self) -> Self) -> Self {
        // The grant is told again with the start: the same one.
        held(self.granted(node, from, 1)).starts(node, from, 1)
    }

    /// A whole run with its locks.
    fn works(self, node: &str, (from, to): (f64, f64), fence: u64, locks: &str) -> Self {
        let begun = self.begins_with(node, from, fence, locks);
        begun.ends(node, to, 1, "success").settles(node, to, 1, "success").left(node, to + 0.01, "released")
    }

    fn left(self, node: &str, seconds: f64, answer: &str) -> Self {
        self.slot(node, seconds, &format!(r#""event":"lock_left","attempt":1,"answer":"{answer}""#))
    }

    /// Lines without these words.
    fn without(mut self, words: &str) -> Self {
        let lines = self.journals.lines().filter(|line| !line.contains(words));
        self.journals = lines.map(|line| format!("{line}\n")).collect();
        self
    }

    fn killed_when_lost(mut self) -> Self {
        self.journals = self.journals.replace(r#""on_lost":"continue""#, r#""on_lost":"kill""#);
        self
    }

    /// Attempts that were given back are not counted.
    fn counted_once(mut self) -> Self {
        for number in 2..=10 {
            self.journals = self.journals.replace(&format!("\"used\":{number},"), "\"used\":1,");
        }
        self
    }

    /// By each node's file there is one.
    fn only_one_attempt(mut self) -> Self {
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
        let mut parts = self.journals.split("\"max_attempts\":");
        let first = parts.next().unwrap_or_default().to_owned();
        self.journals = parts.fold(first, |all, part| format!("{all}\"max_attempts\":1{}", &part[digits(part)..]));
        self
    }

    #[track_caller]
    fn is_clean(&self) {
        let report = self.report();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_slot_that_ended_while_it_waited_for_its_locks_is_explained_by_that() {
    let waited = planned().waits_in_vain("a", 0.1, 599.9, 1).closed("b", 602.0, "missed").later();
    let report = waited.is_clean_and(Class::Lost);
    let why = "not done in 0 runs, missed: recorded as missed: attempt 1 on a waited from 14:00:00.100Z to \
               14:09:59.900Z for db, held by pull@2026-11-21T14Z#1 on c";
    assert_eq!(report.explained[0].why, [why]);
    assert_eq!(waited.without("\"event\":\"lock_").faulted(), ["lost"], "nobody said that it waited");
}

#[test]
fn a_wait_explains_no_more_than_its_lease_lasted() {
    let until = |renewed: f64| {
        let begun = planned().granted("a", 0.1, 1).waits("a", 0.2, 1).renews("a", 2.0, renewed);
        begun.closed("b", 602.0, "missed").later()
    };
    until(590.0).is_clean_and(Class::Lost);
    assert_eq!(until(300.0).faulted(), ["lost"], "its lease had lapsed, and the other one was there");
    let left = |at: f64| planned().waits_in_vain("a", 0.1, at, 1).closed("b", 602.0, "missed").later();
    left(592.0).is_clean_and(Class::Lost);
    assert_eq!(left(580.0).faulted(), ["lost"], "the other one could have had it");
}

#[test]
fn a_wait_that_was_over_before_it_was_told_of_is_known_by_what_was_not_started() {
    // Given back before its locks have answered; the node makes its pause, of 256 s after the ninth time in a row.
    let refused = |book: Book, from: f64, attempt: u32| {
        let begun = book.granted("a", from, attempt);
        let why = r#""why":"db: the queue is full""#;
        let begun = begun.slot("a", from, &format!(r#""event":"unstarted","attempt":{attempt},{why},"locks":[{DB}]"#));
        let settled = begun.settles("a", from + 0.01, attempt, "given_back");
        settled.slot("a", from + 0.02, &format!(r#""event":"lock_left","attempt":{attempt},"answer":"released",{why}"#))
    };
    let mut book = Book::default().up("a").node("a", -3.0, &plan(DB));
    let mut from = 0.1;
    for attempt in 1..=10 {
        book = refused(book, from, attempt);
        from += f64::from(1 << (attempt - 1)).max(2.5) + 0.1;
    }
    let book = book.counted_once().closed("a", 602.0, "missed").node("a", 900.0, FILLER);
    book.is_clean_and(Class::Lost);
    assert_eq!(book.without("\"event\":\"unstarted").faulted(), ["lost"], "nobody said that it waited");
}

#[test]
fn a_slot_is_not_over_while_the_lease_of_one_that_waited_stands() {
    let until = |last: f64| {
        let begun = planned().granted("a", 0.1, 1).waits("a", 0.2, 1).renews("a", 2.0, 599.0);
        begun.node("b", last, FILLER).report().open
    };
    // The slot that follows is open in both.
    assert_eq!((until(619.0), until(621.0)), (2, 1));
}

#[test]
fn who_waited_in_vain_again_and_again_comes_back_ever_later() {
    let mut from = 0.1;
    let pauses = [1.25, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0];
    let alone = Book::default().up("a").node("a", -3.0, &plan(DB));
    let both = alone.clone().up("b").node("b", -3.0, &plan(DB));
    let again = |book: Book, number: usize, from: f64| {
        book.waits_in_vain("a", from, from + 3.0, u32::try_from(number).unwrap() + 1)
    };
    let (mut alone, mut both) = (alone, both);
    for (number, pause) in pauses.into_iter().enumerate() {
        (alone, both) = (again(alone, number, from), again(both, number, from));
        from += 3.0 + pause + 0.1;
    }
    let alone = alone.closed("a", 602.0, "missed").node("a", 900.0, FILLER).counted_once();
    alone.is_clean_and(Class::Lost);
    let once = Book::default().up("a").node("a", -3.0, &plan(DB)).waits_in_vain("a", 0.1, 3.1, 1);
    let once = once.closed("a", 602.0, "missed").node("a", 900.0, FILLER);
    assert_eq!(once.faulted(), ["lost"], "after one wait it is back in a second");
    assert_eq!(both.closed("a", 602.0, "missed").later().counted_once().faulted(), ["lost"], "the other one waits not");
}

#[test]
fn a_first_start_is_late_by_its_claim_where_it_waited_for_its_locks() {
    let begun = |claimed: f64, held: f64| {
        let book = planned().granted("a", claimed, 1).waits("a", claimed + 0.1, 1).renews("a", claimed + 2.0, held);
        let book = book.holds("a", held, 1, 7, DB).slot(
            "a",
            held,
            r#""event":"run_started","attempt":1,"fence":1795269600001,"trigger":"schedule","guarded":true"#,
        );
        book.ends("a", held + 1.0, 1, "success").settles("a", held + 1.0, 1, "success").later()
    };
    begun(0.1, 300.0).is_clean_and(Class::Once);
    begun(6.9, 300.0).is_clean_and(Class::Once);
    let late = begun(300.0, 301.0).report();
    let said = "the wait for locks of attempt 1 on a began 300.000s after 14:00:00.000Z, from when on a could have; the \
                bound is 7.000s";
    let found: Vec<_> = late.violations.iter().map(|finding| (finding.rule, &*finding.message)).collect();
    assert_eq!(found, [("late-first-start", said)]);
    let silent = begun(0.1, 300.0).without("\"event\":\"lock_waiting").without("\"event\":\"lock_held");
    assert_eq!(silent.faulted(), ["run-without-locks", "late-first-start"]);
}

#[test]
fn a_retry_is_late_by_its_claim_where_it_waited_for_its_locks() {
    let failed = || planned().with_start("a", 0.1, |book| book.holds("a", 0.1, 1, 7, DB)).ends("a", 1.0, 1, "failure");
    let failed = || failed().settles("a", 1.0, 1, "failure");
    let retried = |claimed: f64| {
        let book = failed().granted("b", claimed, 2).waits("b", claimed, 2).renews("b", claimed + 2.0, 60.0);
        let book = book.holds("b", 60.0, 2, 8, DB).slot(
            "b",
            60.0,
            r#""event":"run_started","attempt":2,"fence":1795269600002,"trigger":"retry","guarded":true"#,
        );
        book.ends("b", 61.0, 2, "success").settles("b", 61.0, 2, "success").later()
    };
    let report = retried(2.05).is_clean_and(Class::Repeat);
    assert_eq!(report.recovery.failure.max_s, Some(1.05), "until it was claimed");
    assert_eq!(retried(2.3).faulted(), ["late-recovery"]);
    let in_vain = failed().waits_in_vain("b", 2.05, 599.0, 2).closed("a", 602.0, "missed").later();
    in_vain.is_clean_and(Class::Lost);
    let never = failed().closed("a", 602.0, "missed").later();
    assert!(never.faulted().contains(&"late-recovery"), "nobody tried");
}

#[test]
fn a_node_that_dies_in_a_queue_is_taken_over_from() {
    let dies = planned().granted("a", 0.1, 1).waits("a", 0.2, 1).renews("a", 2.0, 100.0).fault(99.0, "kill", "a");
    let taken = dies.clone().granted("b", 105.0, 2).waits("b", 105.1, 2).renews("b", 107.0, 200.0);
    let taken = taken.holds("b", 200.0, 2, 8, DB).slot(
        "b",
        200.0,
        r#""event":"run_started","attempt":2,"fence":1795269600002,"trigger":"retry","guarded":true"#,
    );
    let done = taken.ends("b", 201.0, 2, "success").settles("b", 201.0, 2, "success").node("b", 900.0, FILLER);
    done.is_clean_and(Class::Once);
    assert_eq!(dies.closed("b", 602.0, "missed").node("b", 900.0, FILLER).faulted(), ["lost"], "nobody took over");
}

/// Two jobs with a demand each: `push` on a, `pull` on b from three seconds before the other's end.
fn both(first: &str, second: &str) -> Book {
    let begun = Book::new().works("a", (0.1, 20.0), 7, first);
    begun.of_job("pull", |book| book.works("b", (17.0, 30.0), 8, second)).later()
}

#[test]
fn two_commands_with_locks_that_exclude_each_other_are_caught_together() {
    let report = both(DB, DB).report();
    let found: Vec<_> = report.violations.iter().map(|it| (it.rule, &*it.slot, &*it.message)).collect();
    let said = "push@2026-11-21T14Z (attempt 1 on a) and pull@2026-11-21T14Z (attempt 1 on b) held db at the same \
                time for 3.000s: 2 of 1";
    assert_eq!(found, [("lock-overlap", "pull@2026-11-21T14Z", said)]);
    assert_eq!(report.violations[0].lines.len(), 2, "{report}");
    let other = r#"{"lock":"other","weight":1,"of":1}"#;
    for (first, second, are_caught) in [
        (shared(), shared(), false),
        (DB.to_owned(), shared(), true),
        (shared(), DB.to_owned(), true),
        (permits(2, 3), permits(1, 3), false),
        (permits(2, 3), permits(2, 3), true),
        (permits(2, 3), permits(2, 4), true),
        (permits(1, 3), shared(), false),
        (DB.to_owned(), other.to_owned(), false),
        (format!("{DB},{other}"), other.to_owned(), true),
    ] {
        let found = both(&first, &second).faulted();
        assert_eq!(found == ["lock-overlap"], are_caught, "{first} and {second}: {found:?}");
        assert_eq!(found.is_empty(), !are_caught, "{first} and {second}: {found:?}");
    }
}

#[test]
fn three_of_two_are_caught_once_and_two_of_two_are_not() {
    let half = permits(1, 2);
    let two = both(&half, &half);
    two.is_clean();
    let third = |from: f64| two.clone().of_job("pop", |book| book.works("a", (from, 40.0), 9, &half));
    let report = third(18.0).report();
    assert_eq!(report.violations.len(), 1, "{report}");
    assert!(report.violations[0].message.ends_with("held db at the same time for 2.000s: 3 of 2"), "{report}");
    third(20.5).is_clean();
}

#[test]
fn commands_overlap_by_how_long_they_ran_and_by_more_than_clocks_differ() {
    let from = |second: f64| {
        let begun = Book::new().works("a", (0.1, 20.0), 7, DB);
        begun.of_job("pull", |book| book.works("b", (second, 30.0), 8, DB)).later()
    };
    from(19.95).is_clean();
    assert_eq!(from(19.85).faulted(), ["lock-overlap"]);
    let begun = Book::new().begins_with("a", 0.1, 7, DB).ended_after(10.0, "a", 20.0, 1, "success");
    let begun = begun.settles("a", 20.0, 1, "success");
    let told_late = begun.of_job("pull", |book| book.works("b", (15.0, 30.0), 8, DB)).later();
    told_late.is_clean();
    let off = |book: Book| book.node("a", -3.5, r#""event":"clock_off","offset_ms":3500"#);
    off(from(17.0)).is_clean();
    assert_eq!(off(from(12.0)).faulted(), ["lock-overlap"], "no clock was off by as much");
}

#[test]
fn what_nobody_ran_with_and_what_a_dead_node_held_is_no_overlap() {
    let unstarted = Book::new().granted("a", 0.1, 1).holds("a", 0.1, 1, 7, DB).leaves_for("a", 20.0, 1, "it was lost");
    let unstarted = unstarted.run("b", 22.0, 23.0, 2, "success").counted_once();
    unstarted.of_job("pull", |book| book.works("b", (10.0, 30.0), 8, DB)).later().is_clean();
    let silent = |until: f64| {
        let begun = Book::new().begins_with("a", 0.1, 7, DB).renews("a", 2.0, until);
        let other = begun.of_job("pull", |book| book.works("b", (30.0, 40.0), 8, DB));
        other.node("b", 900.0, FILLER).faulted().contains(&"lock-overlap")
    };
    assert!(!silent(29.0), "it was never heard of again");
    assert!(silent(35.0), "it still ran");
}

#[test]
fn an_overlap_that_was_told_or_that_a_fault_explains_is_excused() {
    let open = || Book::new().begins_with("a", 0.1, 7, DB);
    let goes_on = |book: Book| {
        let ended = book.ends("a", 20.0, 1, "success").settles("a", 20.0, 1, "success");
        ended.of_job("pull", |book| book.works("b", (10.0, 30.0), 8, DB)).later()
    };
    let again = r#""event":"lock_held","attempt":1,"locks":[{"lock":"db","weight":1,"of":1}],"fence":7,"waited_s":0.0,"again":true"#;
    let given_up = r#""event":"settlement_given_up","attempt":1,"outcome":"success""#;
    let gap = r#""event":"gap","slots":1"#;
    let dropped = r#""event":"dropped","lines":1"#;
    assert_eq!(goes_on(open()).faulted(), ["lock-overlap"]);
    assert_eq!(goes_on(open()).killed_when_lost().faulted(), ["lock-overlap"]);
    // What was told, and whether it is excused where the command goes on, and where it was to be killed.
    let doubtful = || open().loses("a", 9.0, 1, true);
    for (what, book, goes, killed) in [
        ("in doubt", doubtful(), true, false),
        ("in doubt, and that is over", doubtful().slot("a", 9.5, again), false, false),
        ("in doubt once more", doubtful().slot("a", 9.5, again).loses("a", 12.0, 1, true), true, false),
        ("taken", open().loses("a", 12.0, 1, false), true, true),
        ("in doubt, then taken", doubtful().loses("a", 12.0, 1, false), true, false),
        ("told as it left", open().left("a", 20.1, "overtaken"), true, true),
        ("left in time", open().left("a", 20.1, "released"), false, false),
        ("left to lapse", open().left("a", 20.1, "expired"), false, false),
        ("the lease is in doubt", open().told("a", 9.0, "lease_in_doubt", 1), true, false),
        ("only its record was lost", open().slot("a", 25.0, given_up), false, false),
        ("it stood still", open().node("a", 12.0, gap), false, true),
        ("it stood still long before", open().node("a", 0.05, gap), false, false),
        ("lines are missing", open().node("a", 12.0, dropped), true, true),
        ("a stop", open().fault(9.0, "stop", "a"), true, true),
        ("a stop of another", open().fault(9.0, "stop", "c"), true, false),
        ("a partition", open().fault(9.0, "partition", "store"), true, false),
        ("a loss of data", open().fault(9.0, "flush", "store"), true, true),
        ("a drain", open().fault(9.0, "drain", "a"), false, false),
        ("a pause of the job", open().fault(9.0, "pause", "push"), false, false),
    ] {
        let overlaps = |book: Book| book.faulted().contains(&"lock-overlap");
        assert_eq!(!overlaps(goes_on(book.clone())), goes, "{what}: {}", goes_on(book).report());
        let book = goes_on(book).killed_when_lost();
        assert_eq!(!overlaps(book.clone()), killed, "{what}, killed: {}", book.report());
    }
    // Before, and long after it had consequences.
    assert!(goes_on(open().fault(12.0, "flush", "store")).faulted().contains(&"lock-overlap"));
    let late = Book::new().fault(-60.0, "flush", "store").begins_with("a", 0.1, 7, DB);
    assert!(goes_on(late).faulted().contains(&"lock-overlap"));
}

#[test]
fn one_that_told_of_its_loss_does_not_excuse_two_that_did_not() {
    let told = Book::new().of_job("pop", |book| {
        book.up("c").works("c", (0.1, 40.0), 6, DB).loses("c", 5.0, 1, true).node("c", 900.0, FILLER)
    });
    let two = told.works("a", (10.0, 20.0), 7, DB).of_job("pull", |book| book.works("b", (17.0, 30.0), 8, DB)).later();
    let report = two.report();
    assert_eq!(report.violations.len(), 1, "{report}");
    assert!(!report.violations[0].message.contains("pop"), "{report}");
}

#[test]
fn a_number_of_a_lock_that_goes_back_is_caught_unless_the_store_lost_its_data() {
    let after = |second: u64, locks: &str| {
        let begun = Book::new().works("a", (0.1, 20.0), 7, locks);
        begun.of_job("pull", |book| book.works("b", (25.0, 30.0), second, locks)).later()
    };
    after(8, DB).is_clean();
    assert_eq!(after(7, DB).faulted(), ["lock-fence-back"]);
    let back = after(6, DB);
    let report = back.report();
    assert_eq!(report.violations[0].message, "the number of db went from 7 in push@2026-11-21T14Z to 6");
    after(6, &shared()).is_clean();
    after(6, &permits(1, 2)).is_clean();
    assert_eq!(after(6, &permits(2, 3)).faulted(), ["lock-fence-back"]);
    back.clone().fault(22.0, "flush", "store").is_clean();
    assert_eq!(back.clone().fault(22.0, "partition", "store").faulted(), ["lock-fence-back"]);
    assert_eq!(back.clone().fault(27.0, "flush", "store").faulted(), ["lock-fence-back"], "that came later");
    let third = back.of_job("pop", |book| book.works("a", (40.0, 50.0), 7, DB));
    assert_eq!(third.faulted(), ["lock-fence-back"], "told once");
}

#[test]
fn grants_that_came_within_what_clocks_differ_by_are_in_no_order() {
    let close = |second: f64| {
        let begun = Book::new().works("a", (10.0, 10.02), 8, DB);
        begun.of_job("pull", |book| book.works("b", (second, 30.0), 7, DB)).later().faulted()
    };
    assert!(close(10.08).is_empty());
    assert_eq!(close(10.2), ["lock-fence-back"]);
}

#[test]
fn an_instance_whose_answers_all_took_long_says_little_of_when_it_held() {
    let both = Book::new()
        .works("a", (10.0, 10.05), 7, DB)
        .of_job("pull", |book| book.works("b", (11.0, 30.0), 8, DB))
        .later();
    both.is_clean();
    // Of a slow store: by its own lines the clock of b seems to be five seconds ahead, and it held before the other.
    let (told, granted) = (text(11.0), text(6.0));
    let as_told = format!("\"granted_at\":\"{told}\"");
    assert!(both.journals.contains(&as_told));
    let journals = both.journals.replace(&as_told, &format!("\"granted_at\":\"{granted}\""));
    Book { journals, ..both }.is_clean();
}

#[test]
fn attempts_of_one_slot_are_one_owner() {
    let first = Book::new().begins_with("a", 0.1, 7, DB).told("a", 5.0, "lease_lost", 1);
    let second = first.granted("b", 8.0, 2).holds("b", 8.0, 2, 6, DB).slot(
        "b",
        8.0,
        r#""event":"run_started","attempt":2,"fence":1795269600002,"trigger":"retry","guarded":true"#,
    );
    let second = second.ends("b", 9.0, 2, "success").settles("b", 9.0, 2, "success");
    let found = second.clone().ends("a", 12.0, 1, "success").later().faulted();
    assert!(!found.iter().any(|rule| rule.starts_with("lock-")), "{found:?}");
    let silent = second.without("lease_lost").ends("a", 12.0, 1, "success").later().faulted();
    assert!(silent.contains(&"overlap") && !silent.contains(&"lock-overlap"), "{silent:?}");
}

#[test]
fn a_run_of_a_job_with_locks_holds_them_as_it_begins() {
    let ends = |book: Book| book.ends("a", 1.0, 1, "success").settles("a", 1.0, 1, "success").later();
    let bare = ends(planned().starts("a", 0.1, 1));
    assert_eq!(bare.faulted(), ["run-without-locks"]);
    assert_eq!(bare.report().violations[0].message, "attempt 1 on a began without db");
    ends(planned().begins_with("a", 0.1, 7, DB)).is_clean_and(Class::Once);
    let other = planned().begins_with("a", 0.1, 7, r#"{"lock":"other","weight":1,"of":1}"#);
    assert_eq!(ends(other).faulted(), ["run-without-locks"], "it held another one");
    let after = planned().starts("a", 0.1, 1).holds("a", 0.2, 1, 7, DB);
    assert_eq!(ends(after).faulted(), ["run-without-locks"], "too late");
    let dropped =
        planned().node("a", -2.5, FILLER).starts("a", 0.1, 1).node("a", 0.2, r#""event":"dropped","lines":1"#);
    ends(dropped).is_clean_and(Class::Once);
    let elsewhere = planned().starts("a", 0.1, 1).node("b", 0.2, r#""event":"dropped","lines":1"#);
    assert_eq!(ends(elsewhere).faulted(), ["run-without-locks"], "another node's lines are");
    let without = Book::new().node("a", -3.0, &plan("")).node("b", -3.0, &plan(DB));
    ends(without.starts("a", 0.1, 1)).is_clean_and(Class::Once);
}

#[test]
fn a_run_that_began_as_the_file_changed_holds_what_both_files_ask_for() {
    let reloaded = |old: &str, new: &str, at: f64| {
        let before = Book::new().node("a", -3.0, &plan(old)).node("b", -3.0, &plan(old));
        let after = before.node("a", at, r#""event":"reloaded","jobs":1"#).node("a", at, &plan(new));
        after.starts("a", 1.0, 1).ends("a", 2.0, 1, "success").settles("a", 2.0, 1, "success").later()
    };
    for at in [0.8, 1.2] {
        reloaded("", DB, at).is_clean_and(Class::Once);
        reloaded(DB, "", at).is_clean_and(Class::Once);
        assert_eq!(reloaded(DB, DB, at).faulted(), ["run-without-locks"]);
    }
    assert_eq!(reloaded("", DB, 0.2).faulted(), ["run-without-locks"]);
    assert_eq!(reloaded(DB, "", 1.8).faulted(), ["run-without-locks"]);
}

#[test]
fn an_attempt_that_was_not_started_is_given_back_though_nobody_heard_the_answer() {
    let unstarted =
        format!(r#""event":"unstarted","attempt":1,"why":"the slot ended while it waited for db","locks":[{DB}]"#);
    let waits = planned().granted("a", 0.1, 1).waits("a", 0.2, 1).renews("a", 2.0, 600.0);
    let told = waits.slot("a", 600.0, &unstarted).closed("b", 602.0, "missed").later().only_one_attempt();
    told.is_clean_and(Class::Lost);
    let ran = Book::new().granted("a", 0.1, 1).starts("a", 0.2, 1).ends("a", 599.0, 1, "failure");
    let missed = ran.settles("a", 599.1, 1, "failure").closed("b", 602.0, "missed").later().only_one_attempt();
    assert_eq!(missed.faulted(), ["lost"], "one that ran counts: the slot has failed");
}

#[test]
fn an_attempt_that_was_given_back_after_its_lease_had_lapsed_may_count_and_one_that_was_in_time_does_not() {
    let given_back = |renewed: f64| {
        let one = planned().granted("a", 0.1, 1).waits("a", 0.2, 1).renews("a", 2.0, renewed);
        let left = one.leaves_for("a", 599.0, 1, "it waited for db (lock_wait)");
        left.closed("b", 602.0, "failed").later().only_one_attempt()
    };
    given_back(500.0).is_clean_and(Class::Lost);
    assert_eq!(given_back(598.0).faulted(), ["lost"], "its lease stood: the store took it back");
}
