//! What is tried again: a failed attempt, and who waits for how long after it; a claim that the store does not answer, what is asked
//! again, how often, and when a slot is given up.

use super::*;
use crate::job::{Backoff, OnStoreError, RetryPolicy};

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

/// Has failed, and hears of it.
fn failed_and_heard(policy: Policy) -> Bench {
    let (mut bench, _) = Bench::at_tick(policy);
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    bench.wake(WakeKind::Released);
    bench
}

#[test]
fn the_failing_node_looks_after_the_others_whether_an_operator_ended_the_wait() {
    let mut bench = failed_and_heard(Policy::default());
    assert_eq!(bench.until_timer(), Duration::from_millis(2_500), "so long after the others");
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(2));
    assert_eq!(bench.spawned().attempt, 2);
}

#[test]
fn the_failing_node_does_not_run_because_of_its_own_message() {
    let mut bench = failed_and_heard(Policy::default());
    bench.machine.handle_wake(bench.now(), &Wake::Resync);
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: Duration::from_millis(7_500) }));
    assert_eq!(bench.until_timer(), seconds(10), "it still waits longer than the others");
    assert_eq!(bench.claim().trigger, Trigger::Retry);
}

#[test]
fn who_failed_and_then_another_has_the_next_retry_with_everybody() {
    let mut bench = failed_and_heard(Policy::default());
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: Duration::from_millis(7_500) }));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: seconds(9) }));
    let wait = bench.until_timer();
    assert!(wait >= seconds(9) && wait < Duration::from_millis(9_100), "{wait:?}");
}

#[test]
fn the_failing_node_is_behind_the_others_after_a_pause_too() {
    let mut bench = failed_and_heard(Policy::default());
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Paused { remaining: Some(seconds(1)) }));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: Duration::from_millis(6_400) }));
    let wait = bench.until_timer();
    assert!(
        wait > Duration::from_millis(8_900),
        "longer than the others, by what it waits more than they do: {wait:?}"
    );
}

#[test]
fn the_failing_node_does_not_look_where_that_could_take_the_retry_from_another() {
    let retry = RetryPolicy { delay: Duration::from_millis(400), ..Policy::default().retry };
    let mut bench = failed_and_heard(Policy { retry, ..Policy::default() });
    assert_eq!(bench.until_timer(), Duration::from_millis(650));
}

#[test]
fn the_failing_node_looks_by_its_timer_where_the_store_tells_of_nothing() {
    let retry = RetryPolicy { delay: seconds(60), ..Policy::default().retry };
    let poll = Some(seconds(1));
    let (mut bench, _) = Bench::with(Assignment { poll, ..assignment(Policy { retry, ..Policy::default() }) });
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Released));
    let mut waits = Vec::new();
    for remaining in [50, 40, 30, 20, 10, 5] {
        waits.push(bench.until_timer().as_secs());
        bench.claim();
        bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: seconds(remaining) }));
    }
    assert_eq!(waits, [10, 10, 10, 10, 10, 15]);
}

#[test]
fn who_was_overtaken_does_not_look_because_of_its_own_message() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    fail_as(&mut bench, 1);
    bench.release(Ok(Release::Overtaken { by: other() }));
    let timer = bench.machine.poll_timeout();
    bench.wake(WakeKind::Released);
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
    assert!(bench.told(|event| matches!(event, Event::Overtaken { unstarted: false, .. })));
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

#[test]
fn who_knows_of_a_holder_gives_it_a_second_after_a_store_error() {
    for applied in [Applied::No, Applied::Maybe] {
        let (mut bench, _) = Bench::at_tick(Policy::default());
        bench.machine.handle_claim(bench.now(), held(TTL));
        bench.until_timer();
        bench.claim();
        bench.machine.handle_claim(bench.now(), Err(error(applied)));
        assert!(bench.until_timer() >= seconds(1));
    }
}

#[test]
fn an_error_never_starts_the_command_and_keeps_the_token() {
    for applied in [Applied::No, Applied::Maybe] {
        let (mut bench, first) = Bench::at_tick(Policy::default());
        bench.machine.handle_claim(bench.now(), Err(error(applied)));
        bench.silent();
        assert!(!bench.machine.is_holding());
        let wait = bench.until_timer();
        assert!(wait >= Duration::from_millis(100) && wait <= Duration::from_millis(125), "{wait:?}");
        assert_eq!(bench.claim().token, first.token, "the same claim must be repeated");
    }
}

#[test]
fn errors_are_retried_ever_more_slowly_but_at_least_every_few_seconds_and_told_once() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        longest = longest.max(bench.until_timer());
        bench.claim();
    }
    assert!(longest > seconds(4) && longest <= Duration::from_millis(6_250), "{longest:?}");
    let told = bench.events().iter().filter(|event| matches!(event, Event::StoreFailed { .. })).count();
    assert_eq!(told, 1);
}

#[test]
fn a_store_that_comes_back_within_the_slot_gets_the_claim() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
}

/// Until when a store is asked whose every answer is this error, after the slot's end.
fn given_up_after(assignment: Assignment, applied: Applied) -> i64 {
    let (mut bench, _) = Bench::with(assignment);
    while bench.machine.ended().is_none() {
        bench.machine.handle_claim(bench.now(), Err(error(applied)));
        if bench.machine.ended().is_none() {
            bench.until_timer();
            if bench.machine.ended().is_none() {
                bench.claim();
            }
        }
    }
    assert_eq!(bench.machine.ended(), Some(End::Unknown));
    (bench.now().wall - slot().end()).num_milliseconds()
}

#[test]
fn a_slot_that_was_not_claimed_is_given_up_at_its_end_when_the_store_is_away() {
    assert_eq!(given_up_after(assignment(Policy::default()), Applied::No), 0);
}

#[test]
fn a_slot_that_may_be_held_is_asked_about_until_its_lease_would_have_lapsed() {
    assert_eq!(given_up_after(assignment(Policy::default()), Applied::Maybe), 60_000);
}

#[test]
fn a_slot_of_the_past_that_a_person_asked_for_is_asked_about_for_as_long() {
    let past = Assignment { past: true, ..assignment(Policy::default()) };
    assert_eq!(given_up_after(past, Applied::No), 60_000);
}

#[test]
fn a_claim_that_was_not_heard_of_until_its_lease_had_lapsed_starts_as_the_same_attempt() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    let granted_at = bench.now().wall;
    while bench.now().wall - granted_at < chrono::TimeDelta::from_std(TTL * 2).unwrap() {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        bench.silent();
        bench.until_timer();
        assert_eq!(bench.claim().token, first.token);
    }
    let claim = Claim::Claimed { attempt: 1, used: 1, at: granted_at, revision: None };
    bench.machine.handle_claim(bench.now(), Ok(claim));
    assert_eq!(bench.spawned().attempt, 1);
    bench.machine.handle_started(bench.now());
    assert_eq!(bench.until_timer(), TTL / 3);
    let (lease, _) = bench.renew();
    assert_eq!((lease.token, lease.claimed_at), (first.token, granted_at), "trust counts from the last send");
}

#[test]
fn a_node_whose_clock_is_put_right_runs_nothing_without_a_guard_before_the_slot_has_begun() {
    let policy = Policy { on_store_error: OnStoreError::Run, ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    // It is ten minutes earlier than the node thought.
    bench.clock.step_wall(slot().start() - chrono::TimeDelta::seconds(600));
    bench.machine.handle_clock_set(bench.now());
    loop {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        match bench.machine.poll_action() {
            Some(Action::Spawn(_)) => break,
            Some(action) => panic!("{action:?}"),
            None => bench.until_timer(),
        };
        bench.claim();
    }
    let waited = bench.now().wall - slot().start();
    assert!(waited >= chrono::TimeDelta::seconds(60) && waited < chrono::TimeDelta::seconds(90), "{waited}");
}

#[test]
fn with_on_store_error_run_the_command_runs_once_without_a_guard_after_one_lease_ttl_and_loudly() {
    let policy = Policy { on_store_error: OnStoreError::Run, ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    let context = loop {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        match bench.machine.poll_action() {
            Some(Action::Spawn(context)) => break context,
            Some(action) => panic!("{action:?}"),
            None => bench.until_timer(),
        };
        bench.claim();
    };
    assert_eq!((context.attempt, context.lease_held), (0, false));
    let waited = bench.now().wall - slot().start();
    assert!(waited >= chrono::TimeDelta::seconds(60) && waited < chrono::TimeDelta::seconds(70), "{waited}");
    assert!(bench.told(|event| matches!(event, Event::RunStarted { guarded: false, .. })));
    // It fails; the store is still away: there is no second unguarded run.
    bench.machine.handle_started(bench.now());
    bench.exits(1);
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Expired));
    bench.until_timer();
    for _ in 0..100 {
        bench.claim();
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        bench.until_timer();
    }
    bench.claim();
}
