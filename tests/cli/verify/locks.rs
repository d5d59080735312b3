//! What two real nodes wrote in fifty seconds of jobs that share a lock, each time with one thing about it that cannot be.
//!
//! `locks.jsonl` is the journals of both, without the answers that somebody else holds a slot: `read` and `scan` share `db`, `write` has
//! it for itself, each every ten seconds, and `backup` takes it for eighteen seconds of each minute, so that others miss their slots.

use cronward::verify::{Class, Inputs, Report, check};
use serde_json::Value;

const WRITE: &str = "write@2026-11-23T21:11:20Z";
const SCAN: &str = "scan@2026-11-23T21:11:40Z";
const READ: &str = "read@2026-11-23T21:11:40Z";
const MISSED: &str = "write@2026-11-23T21:11:30Z";

fn recorded() -> Vec<Value> {
    include_str!("locks.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_of(line: &Value, slot: &str, event: &str) -> bool {
    let (job, key) = slot.split_once('@').unwrap();
    line["job"] == job && line["slot"] == key && line["event"] == event
}

fn without(slot: &str, event: &str) -> Vec<Value> {
    let mut lines = recorded();
    let before = lines.len();
    lines.retain(|line| !is_of(line, slot, event));
    assert!(lines.len() < before, "{slot}");
    lines
}

/// With each of these slots' words on what it holds changed.
fn held(slots: &[&str], change: impl Fn(&mut Value)) -> Vec<Value> {
    let mut lines = recorded();
    for line in &mut lines {
        if slots.iter().any(|slot| is_of(line, slot, "lock_held")) {
            change(line);
        }
    }
    assert_ne!(lines, recorded());
    lines
}

fn report(lines: &[Value]) -> Report {
    let mut inputs = Inputs::default();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    inputs.journal("locks", &text).unwrap();
    check(inputs)
}

#[test]
fn the_history_itself_is_clean_and_what_was_missed_is_explained_by_who_held() {
    let report = report(&recorded());
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.slots, report.tally(Class::Lost).explained), (20, 8), "{report}");
    let missed = report.explained.iter().find(|slot| slot.slot == MISSED).unwrap();
    assert!(missed.why[0].contains("for db, held by backup@2026-11-23T21:11:25Z#1 on b"), "{:?}", missed.why);
}

#[test]
fn what_was_tampered_with_is_found_by_its_rule() {
    let tampered = [
        ("a run that held nothing", without(WRITE, "lock_held"), WRITE, "run-without-locks"),
        ("a number that goes back", held(&[WRITE], |line| line["fence"] = 1.into()), WRITE, "lock-fence-back"),
        (
            "two that shared and may not",
            held(&[READ, SCAN], |line| line["locks"][0]["of"] = 1.into()),
            SCAN,
            "lock-overlap",
        ),
    ];
    for (what, lines, slot, rule) in tampered {
        let report = report(&lines);
        let found = report.unexplained.iter().chain(&report.violations);
        let found: Vec<&str> = found.filter(|found| found.slot == slot).map(|found| found.rule).collect();
        assert!(found.contains(&rule), "{what}: {rule} is not among {found:?}\n{report}");
    }
}
