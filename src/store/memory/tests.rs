//! The rules of time: what the suite cannot ask of a real store without waiting. The rest is in the suite, which the
//! ledger passes like every other store.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::NodeName;
use crate::slot::{Audit, Lease, Outcome, RunRecord, Slot, Token};
use crate::store::memory::Ledger;
use crate::store::{Claim, ClaimRequest};

const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn ledger() -> Ledger {
    Ledger::new(7 * DAY)
}

fn slot() -> Slot {
    Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

/// Ten minutes into the slot, and this much later.
fn at(since: Duration) -> DateTime<Utc> {
    later("2026-11-21T14:10:00Z".parse().unwrap(), since)
}

fn start() -> DateTime<Utc> {
    at(Duration::ZERO)
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn request(token: u128) -> ClaimRequest {
    ClaimRequest::new(slot(), Token::from_bits(token), node("a"), LEASE, 3)
}

fn grant(ledger: &mut Ledger, token: u128, now: DateTime<Utc>) -> Lease {
    match ledger.claim(&request(token), now) {
        Claim::Claimed { attempt, at, .. } => request(token).granted(attempt, at),
        other => panic!("{other:?}"),
    }
}

fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    RunRecord::ended(lease, outcome)
}

fn audit() -> Audit {
    let word = || "x".to_owned();
    Audit { verb: word(), who: "alice".to_owned(), host: word(), why: word(), at: DateTime::UNIX_EPOCH }
}

/// When things end, to the millisecond.
mod lapse {
    use std::time::Duration;

    use super::{DAY, LEASE, at, audit, ended, grant, ledger, node, request, slot, start};
    use crate::slot::{DoneMark, Holder, Lease, Mark, Outcome, Slot, Verdict};
    use crate::store::{Claim, Closing, Intervention, Release, Renewal, Settlement};

    const TICK: Duration = Duration::from_millis(1);

    #[test]
    fn a_lease_stands_until_its_ttl_is_over_and_not_longer() {
        let mut ledger = ledger();
        grant(&mut ledger, 1, start());
        let held = ledger.claim(&request(2), at(LEASE - TICK));
        assert!(matches!(held, Claim::Held { remaining, .. } if remaining == TICK), "{held:?}");
        assert_eq!(grant(&mut ledger, 2, at(LEASE)).attempt, 2);
    }

    #[test]
    fn a_repeated_claim_makes_the_lease_last_from_then_on() {
        let mut ledger = ledger();
        grant(&mut ledger, 1, start());
        let again = ledger.claim(&request(1), at(LEASE / 2));
        assert_eq!(again, Claim::Claimed { attempt: 1, used: 1, at: start(), revision: None });
        assert_eq!(ledger.mark_ttl(&slot(), at(LEASE / 2)), Some(LEASE));
    }

    #[test]
    fn a_claim_repeated_after_its_lease_is_the_same_attempt_until_another_was_granted() {
        let mut ledger = ledger();
        grant(&mut ledger, 1, start());
        let again = ledger.claim(&request(1), at(LEASE * 2));
        assert_eq!(again, Claim::Claimed { attempt: 1, used: 1, at: start(), revision: None });
        assert_eq!(ledger.mark_ttl(&slot(), at(LEASE * 2)), Some(LEASE));
        assert_eq!(grant(&mut ledger, 2, at(LEASE * 3)).attempt, 2);
        assert!(matches!(ledger.claim(&request(1), at(LEASE * 3)), Claim::Held { .. }));
        assert_eq!(grant(&mut ledger, 1, at(LEASE * 4)).attempt, 3, "a new attempt");
    }

    #[test]
    fn a_renewal_makes_the_lease_last_from_then_on() {
        let mut ledger = ledger();
        let lease = grant(&mut ledger, 1, start());
        assert_eq!(ledger.renew(&lease, at(LEASE - TICK)), Renewal::Renewed);
        assert!(matches!(ledger.claim(&request(2), at(LEASE * 2 - TICK * 2)), Claim::Held { .. }));
        assert_eq!(ledger.renew(&lease, at(LEASE * 3)), Renewal::Restored);
    }

    #[test]
    fn a_renewal_that_asks_for_less_leaves_what_there_is() {
        let mut ledger = ledger();
        let lease = grant(&mut ledger, 1, start());
        let shorter = Lease { ttl: TICK, ..lease };
        assert_eq!(ledger.renew(&shorter, at(TICK)), Renewal::Renewed);
        assert_eq!(ledger.mark_ttl(&slot(), at(TICK)), Some(LEASE - TICK));
    }

    #[test]
    fn a_wait_ends_when_it_is_over() {
        let mut ledger = ledger();
        let lease = grant(&mut ledger, 1, start());
        let run = ended(&lease, Outcome::Failure);
        assert_eq!(ledger.fail(&lease, &run, LEASE, start()), Release::Released);
        assert_eq!(ledger.fail(&lease, &run, LEASE, at(LEASE / 2)), Release::Released, "a repetition");
        assert_eq!(ledger.claim(&request(2), at(LEASE - TICK)), Claim::Backoff { remaining: TICK });
        assert!(matches!(ledger.claim(&request(2), at(LEASE)), Claim::Claimed { attempt: 2, .. }));
    }

    #[test]
    fn a_slot_is_open_from_its_start_and_closed_at_its_end() {
        let mut ledger = ledger();
        let (early, last, over) = (slot().start() - TICK, slot().end() - TICK, slot().end());
        assert_eq!(ledger.claim(&request(1), early), Claim::Early { remaining: TICK });
        assert!(matches!(ledger.claim(&request(1), slot().start()), Claim::Claimed { attempt: 1, .. }));
        ledger.expire_mark(&slot(), slot().start());
        assert!(matches!(ledger.claim(&request(2), last), Claim::Claimed { attempt: 2, .. }));
        assert_eq!(ledger.claim(&request(3), over), Claim::Closed);
        assert!(
            matches!(ledger.claim(&request(2), over), Claim::Claimed { attempt: 2, .. }),
            "not for the one who holds it"
        );
    }

    #[test]
    fn a_slot_is_closed_at_its_end_and_not_before() {
        let mut ledger = ledger();
        let open = ledger.close(&slot(), 3, &node("a"), slot().end() - TICK);
        assert_eq!(open, Closing::Open { remaining: TICK });
        assert_eq!(ledger.close(&slot(), 3, &node("a"), slot().end()), Closing::First(Verdict::Missed));
    }

    #[test]
    fn a_done_marker_ends_and_the_verdict_stays() {
        let mut ledger = ledger();
        let lease = grant(&mut ledger, 1, start());
        let settled = ledger.complete(&lease, &ended(&lease, Outcome::Success), DAY, start());
        assert_eq!(settled, Settlement::Recorded);
        assert!(matches!(ledger.claim(&request(2), at(DAY - TICK)), Claim::Done(_)));
        let done = DoneMark { by: Holder { node: node("a"), attempt: 1 }, at: start(), token: None };
        assert_eq!(ledger.claim(&request(2), at(DAY)), Claim::Done(done), "as the verdict has it");
        let records = ledger.inspect(&[slot()], at(DAY));
        assert_eq!(records[0].mark, Mark::Free);
        assert_eq!(records[0].verdict.as_ref().map(|record| record.verdict), Some(Verdict::Done));
        assert_eq!(ledger.close(&slot(), 3, &node("b"), at(DAY)), Closing::Already(Verdict::Done));
    }

    #[test]
    fn a_pause_ends_by_itself() {
        let mut ledger = ledger();
        ledger.pause(slot().job(), Some(at(LEASE)), &audit(), start());
        assert_eq!(ledger.claim(&request(1), at(LEASE - TICK)), Claim::Paused { remaining: Some(TICK) });
        assert_eq!(ledger.resume(slot().job(), &audit(), at(LEASE)), Intervention::Unchanged);
        assert!(matches!(ledger.claim(&request(1), at(LEASE)), Claim::Claimed { .. }));
    }

    #[test]
    fn a_slot_is_skipped_when_a_pause_touched_it_and_nothing_ran() {
        let mut ledger = ledger();
        let next = Slot::parse("job", "2026-11-21T15Z", "2026-11-21T16Z").unwrap();
        let after = Slot::parse("job", "2026-11-21T16Z", "2026-11-21T17Z").unwrap();
        ledger.pause(slot().job(), None, &audit(), slot().end() - TICK);
        ledger.resume(slot().job(), &audit(), after.start());
        let mut verdict = |slot: &Slot| ledger.close(slot, 3, &node("a"), slot.end() + DAY);
        assert_eq!(verdict(&slot()), Closing::First(Verdict::Skipped), "from its last moment on");
        assert_eq!(verdict(&next), Closing::First(Verdict::Skipped));
        assert_eq!(verdict(&after), Closing::First(Verdict::Missed), "until its first moment");
    }
}

/// How long things are kept.
mod retention {
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
}

/// Rules of the ledger that no answer of a store shows: hints, snapshots, and arguments that make no sense.
mod rules {
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
}
