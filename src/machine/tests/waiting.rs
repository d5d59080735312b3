//! While a slot is waited for: wake-ups, hints that were lost, and a look that waits for its turn, with what ends that wait and what
//! does not wait. Draining, in every phase.

use super::*;
use crate::slot::Outcome;

#[test]
fn a_release_wakes_a_waiting_node_at_once() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.wake(WakeKind::Released);
    assert_eq!(bench.until_timer(), Duration::ZERO);
    assert_eq!(bench.claim().trigger, Trigger::Retry);
}

#[test]
fn a_done_message_ends_the_wait_without_asking_the_store() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.wake(WakeKind::Done);
    assert_eq!(bench.machine.ended(), Some(End::Done));
    bench.silent();
}

#[test]
fn a_message_about_another_job_changes_nothing() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    let timer = bench.machine.poll_timeout();
    let stranger = crate::job::JobName::new("stranger").unwrap();
    for wake in [Wake::Slot { job: stranger.clone(), key: slot().key(), what: WakeKind::Done }, Wake::Job(stranger)] {
        bench.machine.handle_wake(bench.now(), &wake);
    }
    assert_eq!(bench.machine.poll_timeout(), timer);
}

#[test]
fn the_end_of_an_older_run_wakes_only_who_waits_for_it() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let wake = Wake::Slot { job: older.job().clone(), key: older.key(), what: WakeKind::Done };
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Blocked { key: older.key(), by: other(), remaining: TTL }));
    bench.machine.handle_wake(bench.now(), &wake);
    assert!(bench.until_timer() <= Duration::from_millis(50));
    bench.claim();
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.machine.handle_wake(bench.now(), &wake);
    assert!(bench.until_timer() >= TTL);
}

#[test]
fn after_lost_hints_who_waits_for_nobody_looks_within_a_second() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: TTL }));
    bench.machine.handle_wake(bench.now(), &Wake::Resync);
    assert!(bench.until_timer() <= seconds(1));
    bench.claim();
}

#[test]
fn after_lost_hints_the_holder_is_first_at_a_store_that_may_have_forgotten_it() {
    let mut holder = Bench::running(Policy::default());
    holder.machine.handle_wake(holder.now(), &Wake::Resync);
    assert!(matches!(holder.action(), Action::Renew { .. }));
    let (mut waiter, _) = Bench::at_tick(Policy::default());
    waiter.machine.handle_claim(waiter.now(), held(TTL));
    waiter.machine.handle_wake(waiter.now(), &Wake::Resync);
    let wait = waiter.until_timer();
    assert!(wait >= TTL / 3 + TTL / 10 && wait <= TTL / 3 + TTL / 10 + seconds(1), "{wait:?}");
    waiter.claim();
}

#[test]
fn a_hint_that_comes_while_a_claim_is_on_its_way_is_not_forgotten() {
    for (what, end) in [(WakeKind::Done, Some(End::Done)), (WakeKind::Released, None)] {
        let (mut bench, _) = Bench::at_tick(Policy::default());
        bench.wake(what);
        bench.machine.handle_claim(bench.now(), held(TTL));
        assert_eq!(bench.machine.ended(), end);
        if end.is_none() {
            assert_eq!(bench.until_timer(), Duration::ZERO);
            bench.claim();
        }
    }
}

/// A machine at its tick that has asked for nothing yet.
fn waiting(policy: Policy) -> (SlotMachine, ManualClock) {
    let clock = ManualClock::at(slot().start());
    (SlotMachine::waiting(assignment(policy), clock.now()), clock)
}

#[test]
fn a_slot_that_waits_for_its_turn_asks_for_nothing_and_trusts_a_lease_from_when_it_asked() {
    let (mut machine, clock) = waiting(Policy::default());
    assert!(machine.is_waiting() && machine.poll_action().is_none());
    assert_eq!(machine.poll_timeout(), Some(clock.now().mono));
    clock.advance(seconds(300));
    machine.handle_timeout(clock.now());
    assert!(matches!(machine.poll_action(), Some(Action::Claim(_))) && !machine.is_waiting());
    clock.advance(seconds(1));
    machine.handle_claim(clock.now(), granted(1));
    assert!(matches!(machine.poll_action(), Some(Action::Spawn(_))), "five minutes in a queue cost no trust");
}

#[test]
fn a_slot_that_did_not_get_its_turn_is_shed_at_its_end_or_its_start_deadline_and_not_before() {
    let deadline = Policy { start_deadline: Some(seconds(60)), ..Policy::default() };
    for (policy, until) in [(Policy::default(), 3_600), (deadline, 60)] {
        let (mut machine, clock) = waiting(policy);
        let since = clock.now().mono;
        assert_eq!(machine.worth_until(), Some(since + seconds(until)));
        clock.advance(seconds(until - 1));
        machine.handle_shed(clock.now(), since);
        assert_eq!(machine.ended(), None);
        clock.advance(seconds(1));
        machine.handle_shed(clock.now(), since);
        assert_eq!((machine.ended(), machine.poll_event()), (Some(End::Shed), Some(Event::Shed)));
    }
}

#[test]
fn a_slot_that_became_due_no_sooner_than_its_end_or_its_start_deadline_is_not_shed() {
    let deadline = Policy { start_deadline: Some(seconds(60)), ..Policy::default() };
    for (policy, until, end) in [(Policy::default(), 3_600, End::Unknown), (deadline, 60, End::TooLate)] {
        let (mut machine, clock) = waiting(policy);
        clock.advance(seconds(until));
        machine.handle_shed(clock.now(), clock.now().mono);
        assert_eq!(machine.ended(), Some(end));
        assert_ne!(machine.poll_event(), Some(Event::Shed));
    }
}

#[test]
fn a_claim_that_may_have_been_applied_waits_for_no_turn_and_is_never_shed() {
    let (mut machine, clock) = waiting(Policy::default());
    machine.handle_timeout(clock.now());
    machine.handle_claim(clock.now(), Err(error(Applied::Maybe)));
    assert!(!machine.is_waiting());
    let since = clock.now().mono;
    clock.advance(seconds(3_600));
    machine.handle_shed(clock.now(), since);
    assert_eq!(machine.ended(), None);
}

#[test]
fn a_slot_that_another_node_did_meanwhile_leaves_the_queue() {
    let (mut machine, clock) = waiting(Policy::default());
    let done = Wake::Slot { job: slot().job().clone(), key: slot().key(), what: WakeKind::Done };
    machine.handle_wake(clock.now(), &done);
    assert_eq!(machine.ended(), Some(End::Done));
}

#[test]
fn a_slot_of_the_past_is_never_shed() {
    let past = Assignment { past: true, ..assignment(Policy::default()) };
    let clock = ManualClock::at(slot().end());
    let mut machine = SlotMachine::waiting(past, clock.now());
    machine.handle_shed(clock.now(), clock.now().mono);
    assert_eq!((machine.worth_until(), machine.ended()), (None, None));
}

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
