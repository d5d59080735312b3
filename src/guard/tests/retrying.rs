//! After a failed attempt: who waits for how long.

use super::*;
use crate::job::{Backoff, RetryPolicy};

/// Fails as the attempt with this number; answers the wait that everybody is told to keep.
fn fail_as(bench: &mut Bench, attempt: u32) -> Duration {
    bench.machine.handle_claim(bench.now(), granted(attempt));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(1);
    match bench.action() {
        Action::Fail { retry_after, .. } => retry_after,
        action => panic!("{action:?}"),
    }
}

#[test]
fn the_failing_node_waits_longer_than_the_others() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    assert_eq!(fail_as(&mut bench, 1), seconds(10));
    bench.release(Ok(Release::Released));
    assert_eq!(bench.until_timer(), Duration::from_millis(12_500));
    assert_eq!(bench.claim().trigger, Trigger::Retry);
}

#[test]
fn the_failing_node_does_not_run_because_of_its_own_message() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    let timer = bench.machine.poll_timeout();
    bench.wake(WakeKind::Released);
    bench.machine.handle_wake(bench.now(), &Wake::Resync);
    assert_eq!(bench.machine.poll_timeout(), timer);
}

#[test]
fn the_failing_node_hears_that_another_has_done_it() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    bench.wake(WakeKind::Done);
    assert_eq!(bench.machine.ended(), Some(End::Done));
}

#[test]
fn waits_grow_with_exponential_backoff() {
    let retry = RetryPolicy { delay: seconds(10), backoff: Backoff::Exponential, max_delay: seconds(25) };
    let (mut bench, _) = Bench::at_tick(Policy { retry, max_attempts: 9, ..Policy::default() });
    let mut waits = Vec::new();
    for attempt in 1..=4 {
        waits.push(fail_as(&mut bench, attempt).as_secs());
        bench.release(Ok(Release::Released));
        bench.until_timer();
        bench.claim();
    }
    assert_eq!(waits, [10, 20, 25, 25]);
}

#[test]
fn the_last_attempt_ends_the_slot_without_a_wait_and_says_so() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    assert_eq!(fail_as(&mut bench, 3), Duration::ZERO);
    bench.release(Ok(Release::Released));
    assert_eq!(bench.machine.ended(), Some(End::Exhausted));
    assert!(bench.told(|event| *event == Event::AttemptsUsedUp { used: 3 }));
}

#[test]
fn a_failure_recorded_after_another_took_over_waits_for_the_other() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    fail_as(&mut bench, 3);
    bench.release(Ok(Release::Overtaken { by: Holder { attempt: 4, ..other() } }));
    assert!(bench.told(|event| matches!(event, Event::Overtaken { .. })));
    assert_eq!(bench.machine.ended(), None);
    bench.until_timer();
    bench.claim();
}

#[test]
fn a_later_attempt_is_a_retry_whoever_made_the_first() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), granted(2));
    assert_eq!(bench.spawned().trigger, Trigger::Retry);
}

#[test]
fn a_manual_run_stays_manual() {
    let (mut bench, _) = Bench::with(Assignment { trigger: Trigger::Manual, ..assignment(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(2));
    assert_eq!(bench.spawned().trigger, Trigger::Manual);
}

#[test]
fn a_wait_that_would_end_after_the_slot_is_cut_where_the_slot_is_over_by_any_clock() {
    let retry = RetryPolicy { delay: seconds(86_400), ..Policy::default().retry };
    let (mut bench, _) = Bench::at_tick(Policy { retry, ..Policy::default() });
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    // Cut at the end itself, a node whose clock is ahead would look while the others wait, and could have the retry.
    assert_eq!(bench.until_timer(), seconds(3_602));
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Closed));
    assert_eq!(bench.machine.ended(), Some(End::Closed));
}

#[test]
fn the_person_who_asked_is_named_until_the_first_grant_and_not_for_the_attempts_after_it() {
    let audit = crate::slot::Audit {
        verb: "trigger".to_owned(),
        who: "alice".to_owned(),
        host: "ops-1".to_owned(),
        why: String::new(),
        at: slot().start(),
    };
    let (mut bench, first) = Bench::with(Assignment { audit: Some(audit.clone()), ..assignment(Policy::default()) });
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    bench.until_timer();
    let again = bench.claim();
    assert_eq!((first.audit.as_ref(), again.audit), (Some(&audit), Some(audit.clone())));
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    bench.until_timer();
    assert_eq!(bench.claim().audit, None);
}
