//! When things end, to the millisecond.

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
    let done = DoneMark { by: Holder { node: node("a"), attempt: 1 }, at: start() };
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
