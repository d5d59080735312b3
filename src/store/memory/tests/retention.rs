//! How long things are kept.

use super::{DAY, LEASE, at, audit, ended, grant, ledger, node, request, slot, start};
use crate::slot::{Mark, Outcome, SlotRecord};
use crate::store::{Claim, NodeReport};

fn report(name: &str, instance: &str) -> NodeReport {
    NodeReport::new(node(name), instance, start())
}

#[test]
fn records_are_kept_from_their_last_change_on() {
    let mut ledger = ledger();
    let lease = grant(&mut ledger, 1, start());
    ledger.fail(&lease, &ended(&lease, Outcome::Failure), LEASE, at(DAY));
    let known = |now| ledger.inspect(&[slot()], now).remove(0);
    assert_eq!(known(at(DAY * 8 - LEASE)).attempts, 1);
    assert_eq!(known(at(DAY * 8)), SlotRecord::untouched(slot()));
}

#[test]
fn a_mark_that_outlives_its_records_stands() {
    let mut ledger = ledger();
    ledger.mark_done(&slot(), &audit(), DAY * 30, start());
    let known = ledger.inspect(&[slot()], at(DAY * 20)).remove(0);
    assert!(matches!(known.mark, Mark::Done(_)));
    assert_eq!((known.verdict, known.audit.len()), (None, 0));
    assert!(matches!(ledger.claim(&request(1), at(DAY * 20)), Claim::Done(_)));
}

#[test]
fn a_purge_removes_what_was_kept_for_its_time_and_nothing_else() {
    let mut ledger = ledger();
    grant(&mut ledger, 1, start());
    assert_eq!(ledger.purge(at(DAY)), 0);
    assert_eq!(ledger.inspect(&[slot()], at(DAY))[0].attempts, 1);
    // The last change was the claim; what counts is the later end of the slot.
    assert_eq!(ledger.purge(at(DAY * 7)), 0);
    assert_eq!(ledger.purge(at(DAY * 8)), 1);
    assert_eq!(ledger.purge(at(DAY * 8)), 0);
}

#[test]
fn a_purge_is_bounded() {
    let mut ledger = ledger();
    for second in 0..1_500 {
        let start = slot().start() - std::time::Duration::from_secs(second);
        let other = crate::slot::Slot::new(slot().job().clone(), start, slot().end()).unwrap();
        ledger.reset(&other, &audit(), self::start());
    }
    assert_eq!(ledger.purge(at(DAY * 8)), 1_000);
    assert_eq!(ledger.purge(at(DAY * 8)), 500);
}

#[test]
fn a_node_that_was_not_heard_of_for_the_retention_is_forgotten() {
    let mut ledger = ledger();
    ledger.heartbeat(&report("a", "a1"), start());
    assert_eq!(ledger.nodes(at(DAY * 7 - LEASE)).len(), 1);
    assert_eq!(ledger.nodes(at(DAY * 7)).len(), 0);
}
