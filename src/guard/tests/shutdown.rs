//! Draining, in every phase.

use super::*;
use crate::slot::Outcome;

const DRAIN: Duration = Duration::from_secs(30);

fn shut_down(bench: &mut Bench) {
    bench.machine.handle_shutdown(bench.now(), DRAIN);
}

fn given_back(bench: &mut Bench) -> crate::slot::RunRecord {
    match bench.action() {
        Action::GiveBack { run, .. } => run,
        action => panic!("not given back: {action:?}"),
    }
}

#[test]
fn a_waiting_slot_is_left_at_once() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    shut_down(&mut bench);
    assert_eq!(bench.machine.ended(), Some(End::Left));
}

#[test]
fn a_grant_that_comes_after_the_shutdown_began_is_given_back_unstarted() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    shut_down(&mut bench);
    bench.machine.handle_claim(bench.now(), granted(1));
    let run = given_back(&mut bench);
    assert_eq!((run.outcome, run.started_at, run.exit_code), (Some(Outcome::GivenBack), None, None));
    bench.release(Ok(Release::Released));
    assert_eq!(bench.machine.ended(), Some(End::Left));
}

#[test]
fn a_claim_that_may_have_been_applied_is_found_out_before_leaving() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    shut_down(&mut bench);
    assert_eq!(bench.claim().token, first.token);
    bench.machine.handle_claim(bench.now(), granted(1));
    given_back(&mut bench);
}

#[test]
fn a_silent_store_is_asked_until_the_lease_would_have_lapsed_and_not_for_the_whole_drain() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    leaves_once_the_lease_would_have_lapsed(&mut bench);
}

#[test]
fn so_it_is_by_a_clock_that_was_put_right_and_has_the_slot_begin_later() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.clock.step_wall(slot().start() - chrono::TimeDelta::seconds(7_200));
    bench.machine.handle_clock_set(bench.now());
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    leaves_once_the_lease_would_have_lapsed(&mut bench);
}

fn leaves_once_the_lease_would_have_lapsed(bench: &mut Bench) {
    bench.machine.handle_shutdown(bench.now(), seconds(3_600));
    let mut waited = Duration::ZERO;
    loop {
        bench.claim();
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        if bench.machine.ended().is_some() {
            break;
        }
        waited += bench.until_timer();
    }
    assert_eq!(bench.machine.ended(), Some(End::Left));
    assert!(waited >= TTL && waited < TTL + seconds(7), "{waited:?}");
}

#[test]
fn a_claim_that_was_not_applied_is_not_repeated_at_shutdown() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    shut_down(&mut bench);
    bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
    assert_eq!(bench.machine.ended(), Some(End::Left));
}

#[test]
fn a_command_that_ends_within_the_drain_counts_as_always() {
    let mut bench = Bench::running(Policy::default());
    shut_down(&mut bench);
    bench.silent();
    bench.pass(seconds(10));
    bench.exits(0);
    assert!(matches!(bench.action(), Action::Complete { .. }));
    bench.settlement(Ok(Settlement::Recorded));
    assert_eq!(bench.machine.ended(), Some(End::Done));
}

#[test]
fn a_failure_within_the_drain_is_recorded_and_left_to_the_others() {
    let mut bench = Bench::running(Policy::default());
    shut_down(&mut bench);
    bench.exits(1);
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    assert_eq!(bench.machine.ended(), Some(End::Left));
}

#[test]
fn after_the_drain_the_command_is_stopped_and_its_attempt_given_back() {
    let mut bench = Bench::running(Policy { kill_after: seconds(4), ..Policy::default() });
    shut_down(&mut bench);
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.until_timer(), seconds(10));
    assert_eq!(bench.action(), Action::Terminate);
    assert_eq!(bench.until_timer(), seconds(4));
    assert_eq!(bench.action(), Action::Kill);
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::Signal(9), ..exit(0) });
    assert_eq!(given_back(&mut bench).outcome, Some(Outcome::GivenBack));
}

#[test]
fn a_second_shutdown_with_no_drain_stops_at_once() {
    let mut bench = Bench::running(Policy::default());
    shut_down(&mut bench);
    bench.machine.handle_shutdown(bench.now(), Duration::ZERO);
    assert_eq!(bench.action(), Action::Terminate);
}

#[test]
fn a_last_attempt_that_was_drained_is_refunded_and_not_told_as_used_up() {
    let mut bench = Bench::running(Policy { max_attempts: 1, ..Policy::default() });
    bench.machine.handle_shutdown(bench.now(), Duration::ZERO);
    assert_eq!(bench.action(), Action::Terminate);
    bench.exits(0);
    given_back(&mut bench);
    bench.release(Ok(Release::Released));
    assert_eq!(bench.machine.ended(), Some(End::Left));
    assert!(!bench.told(|event| matches!(event, Event::AttemptsUsedUp { .. })));
}

/// A job whose file has changed is told to leave, and its run goes on: by the new file there may be attempts left.
#[test]
fn who_is_told_to_leave_does_not_say_that_the_slot_is_over_for_want_of_attempts() {
    let once = || Policy { max_attempts: 1, ..Policy::default() };
    let mut bench = Bench::running(once());
    shut_down(&mut bench);
    bench.exits(1);
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    assert!(bench.told(|event| matches!(event, Event::AttemptsUsedUp { .. })));
    assert_eq!(bench.machine.ended(), Some(End::Left));
    let (mut claiming, _) = Bench::at_tick(once());
    shut_down(&mut claiming);
    claiming.machine.handle_claim(claiming.now(), Ok(Claim::Exhausted { used: 1 }));
    assert_eq!(claiming.machine.ended(), Some(End::Left));
}
