//! A store that does not answer a claim: what is asked again, how often, and when a slot is given up.

use super::*;
use crate::job::OnStoreError;

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
