//! Rules of the ledger that no answer of a store shows: hints, snapshots, and arguments that make no sense.

use std::sync::Arc;
use std::time::Duration;

use super::{DAY, LEASE, at, audit, ended, grant, ledger, node, request, slot, start};
use crate::clock::ManualClock;
use crate::job::Namespace;
use crate::slot::{Lease, Outcome, RunRecord};
use crate::store::memory::{Ledger, MemoryStore};
use crate::store::{Claim, ClaimRequest, Store, StoreOptions, Wake, WakeKind};

fn told(what: WakeKind) -> Vec<Wake> {
    vec![Wake::Slot { job: slot().job().clone(), key: slot().key(), what }]
}

#[test]
fn a_hint_is_told_for_each_change_that_lets_others_act_and_for_nothing_else() {
    let mut ledger = ledger();
    let lease = grant(&mut ledger, 1, start());
    ledger.claim(&request(2), start());
    ledger.renew(&lease, start());
    assert_eq!(ledger.take_wakes(), Vec::new());
    let failed = ended(&lease, Outcome::Failure);
    ledger.fail(&lease, &failed, LEASE, start());
    assert_eq!(ledger.take_wakes(), told(WakeKind::Released));
    ledger.fail(&lease, &failed, LEASE, start());
    assert_eq!(ledger.take_wakes(), Vec::new(), "a repetition changes nothing");
    ledger.complete(&lease, &ended(&lease, Outcome::Success), DAY, start());
    assert_eq!(ledger.take_wakes(), told(WakeKind::Done));
    ledger.close(&slot(), 3, &node("a"), at(DAY));
    assert_eq!(ledger.take_wakes(), Vec::new());
}

#[test]
fn a_snapshot_brought_back_loses_what_came_after_it_and_the_holder_restores_its_lease() {
    let mut ledger = ledger();
    let replica = ledger.clone();
    let lease = grant(&mut ledger, 1, start());
    ledger = replica;
    assert_eq!(ledger.counter(&slot()), None);
    assert_eq!(ledger.renew(&lease, start()), crate::store::Renewal::Restored);
    assert!(matches!(ledger.claim(&request(2), start()), Claim::Held { .. }));
}

#[test]
fn a_settlement_without_an_outcome_does_not_undo_one() {
    let mut ledger = ledger();
    let lease = grant(&mut ledger, 1, start());
    ledger.fail(&lease, &ended(&lease, Outcome::Failure), Duration::ZERO, start());
    ledger.fail(&lease, &RunRecord::begun(&lease), LEASE, start());
    assert_eq!(ledger.inspect(&[slot()], start())[0].runs, vec![ended(&lease, Outcome::Failure)]);
}

#[test]
fn the_lease_says_whose_record_it_is() {
    let mut ledger = ledger();
    let lease = grant(&mut ledger, 1, start());
    let odd = RunRecord { attempt: 77, ..ended(&lease, Outcome::Failure) };
    ledger.fail(&lease, &odd, Duration::ZERO, start());
    assert_eq!(ledger.inspect(&[slot()], start())[0].attempts, 1);
}

#[test]
fn spans_beyond_the_calendar_are_held_at_its_end() {
    let mut ledger = ledger();
    let endless = ClaimRequest { lease_ttl: Duration::MAX, ..request(1) };
    let Claim::Claimed { attempt, .. } = ledger.claim(&endless, start()) else { panic!() };
    let lease: Lease = endless.granted(attempt, start());
    assert_eq!(ledger.renew(&lease, at(DAY * 10_000)), crate::store::Renewal::Renewed);
    ledger.complete(&lease, &ended(&lease, Outcome::Success), Duration::MAX, at(DAY));
    assert!(matches!(ledger.claim(&request(2), at(DAY * 10_000)), Claim::Done(_)));
}

#[test]
fn a_ledger_forgets_nothing_that_stands_when_it_purges() {
    let mut ledger = Ledger::new(Duration::ZERO);
    grant(&mut ledger, 1, start());
    ledger.purge(start());
    assert!(matches!(ledger.claim(&request(2), start()), Claim::Held { .. }));
}

#[tokio::test]
async fn a_clone_shares_the_data_and_a_neighbour_does_not() {
    let store = MemoryStore::new(StoreOptions::default(), Arc::new(ManualClock::at(start())));
    let (clone, beside) = (store.clone(), store.beside(Namespace::new("other").unwrap()));
    store.claim(&request(1)).await.unwrap();
    assert!(matches!(clone.claim(&request(2)).await.unwrap(), Claim::Held { .. }));
    assert!(matches!(beside.claim(&request(2)).await.unwrap(), Claim::Claimed { .. }));
}

#[tokio::test]
async fn a_store_judges_by_the_clock_that_it_was_given() {
    let clock = ManualClock::at(start());
    let store = MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone()));
    store.claim(&request(1)).await.unwrap();
    clock.advance(LEASE);
    assert!(matches!(store.claim(&request(2)).await.unwrap(), Claim::Claimed { attempt: 2, .. }));
    clock.step_wall(slot().end());
    assert_eq!(store.claim(&request(3)).await.unwrap(), Claim::Closed);
}

#[tokio::test]
async fn hints_reach_every_connection_of_the_namespace() {
    let store = MemoryStore::new(StoreOptions::default(), Arc::new(ManualClock::at(start())));
    let (mut here, mut there) = (store.clone().subscribe(), store.beside(Namespace::new("b").unwrap()).subscribe());
    store.mark_done(&slot(), &audit(), DAY).await.unwrap();
    assert_eq!(here.recv().await.unwrap(), told(WakeKind::Done)[0]);
    assert!(there.try_recv().is_err());
}
