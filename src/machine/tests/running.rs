//! While the command runs: renewing, doubt, loss, timeout.

use super::*;
use crate::job::OnLost;

fn kill() -> Policy {
    Policy { on_lost: OnLost::Kill, kill_after: seconds(5), ..Policy::default() }
}

fn unreachable_store() -> Result<Renewal, StoreError> {
    Err(error(Applied::Maybe))
}

#[test]
fn a_running_slot_is_renewed_at_a_third_of_its_ttl_within_what_is_left_of_the_trust() {
    let mut bench = Bench::running(Policy::default());
    assert_eq!(bench.until_timer(), seconds(20));
    let (lease, within) = bench.renew();
    assert_eq!((lease.attempt, within), (1, seconds(38)));
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.until_timer(), seconds(20));
    bench.renew();
}

#[test]
fn trust_counts_from_when_the_renewal_was_sent_not_from_its_answer() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.pause(seconds(15));
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.until_timer(), seconds(5));
    assert_eq!(bench.renew().1, seconds(38));
}

#[test]
fn a_failed_renewal_is_repeated_soon_and_the_command_goes_on() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(unreachable_store());
    bench.silent();
    assert_eq!(bench.until_timer(), seconds(1));
    bench.renew();
}

#[test]
fn a_lease_that_was_not_renewed_in_time_is_in_doubt_and_with_continue_the_command_goes_on() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.pass(seconds(38));
    assert!(bench.told(|event| *event == Event::LeaseInDoubt { attempt: 1, killing: false, ended: false }));
    bench.silent();
    bench.renewal(Ok(Renewal::Renewed));
    // The answer was to a request so old that its window is over as well: asked again at once.
    bench.renew();
}

#[test]
fn with_kill_the_command_is_dead_before_its_lease_can_be_anothers() {
    let mut bench = Bench::running(kill());
    bench.until_timer();
    bench.renew();
    // The store never answers. Trust ends 58 s after the claim was sent; TERM comes 5 s before that.
    bench.pass(seconds(32));
    bench.silent();
    bench.pass(seconds(1));
    assert_eq!(bench.action(), Action::Terminate);
    bench.pass(seconds(5));
    assert_eq!(bench.action(), Action::Kill);
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::Signal(9), ..exit(0) });
    match bench.action() {
        Action::Fail { run, .. } => assert_eq!(run.outcome, Some(crate::slot::Outcome::LostLease)),
        action => panic!("{action:?}"),
    }
}

#[test]
fn a_lost_lease_is_told_and_with_continue_the_command_goes_on_without_renewing() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    assert!(bench.told(|event| matches!(event, Event::LeaseLost { attempt: 1, to: Some(_), killing: false, .. })));
    bench.pass(seconds(600));
    bench.silent();
}

#[test]
fn a_lost_lease_with_kill_kills_at_once() {
    let mut bench = Bench::running(kill());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: None }));
    assert_eq!(bench.action(), Action::Terminate);
    assert_eq!(bench.action(), Action::Kill);
}

#[test]
fn a_lease_lost_while_the_command_is_being_started_kills_it_once_it_is_there() {
    let (mut bench, _) = Bench::at_tick(kill());
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    bench.silent();
    bench.machine.handle_started(bench.now());
    assert_eq!(bench.action(), Action::Terminate);
    assert_eq!(bench.action(), Action::Kill);
}

#[test]
fn a_slot_done_by_another_while_running_counts_as_lost() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Done(done_by(other()))));
    assert!(bench.told(|event| matches!(event, Event::LeaseLost { to: Some(_), .. })));
}

#[test]
fn a_restored_lease_is_told_and_goes_on_as_before() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Restored));
    assert!(bench.told(|event| *event == Event::LeaseRestored { attempt: 1 }));
    assert_eq!(bench.until_timer(), seconds(20));
}

#[test]
fn a_node_that_stood_still_past_its_lease_doubts_it_and_asks_before_anything_else() {
    let mut bench = Bench::running(Policy::default());
    bench.pause(TTL * 3);
    bench.machine.handle_timeout(bench.now());
    assert!(bench.told(|event| matches!(event, Event::LeaseInDoubt { .. })));
    let (_, within) = bench.renew();
    assert_eq!(within, TTL / 3);
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    assert!(bench.told(|event| matches!(event, Event::LeaseLost { .. })));
    bench.silent();
}

#[test]
fn a_run_that_outlasts_its_timeout_gets_term_and_after_kill_after_kill() {
    let policy = Policy { timeout: Some(seconds(10)), kill_after: seconds(3), ..Policy::default() };
    let mut bench = Bench::running(policy);
    assert_eq!(bench.until_timer(), seconds(10));
    assert_eq!(bench.action(), Action::Terminate);
    assert_eq!(bench.until_timer(), seconds(3));
    assert_eq!(bench.action(), Action::Kill);
    assert_eq!(bench.until_timer(), seconds(7), "the lease is renewed while the command dies");
    bench.renew();
    bench.exits(0);
    match bench.action() {
        Action::Fail { run, .. } => assert_eq!(run.outcome, Some(crate::slot::Outcome::Timeout)),
        action => panic!("{action:?}"),
    }
}

#[test]
fn the_timeout_counts_from_the_start_of_the_command_not_from_the_claim() {
    let policy = Policy { timeout: Some(seconds(10)), ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.pass(seconds(15));
    bench.machine.handle_started(bench.now());
    bench.silent();
    assert_eq!(bench.until_timer(), seconds(5), "the renewal at a third of the TTL");
    bench.renew();
    assert_eq!(bench.until_timer(), seconds(5));
    assert_eq!(bench.action(), Action::Terminate);
}

#[test]
fn a_run_without_a_timeout_may_last() {
    let mut bench = Bench::running(Policy { timeout: None, ..Policy::default() });
    for _ in 0..1_000 {
        bench.until_timer();
        bench.renew();
        bench.renewal(Ok(Renewal::Renewed));
    }
    bench.silent();
}

#[test]
fn a_replaced_run_is_stopped_and_recorded_as_killed() {
    let mut bench = Bench::running(Policy { kill_after: seconds(3), ..Policy::default() });
    bench.machine.handle_replaced(bench.now());
    assert_eq!(bench.action(), Action::Terminate);
    bench.until_timer();
    assert_eq!(bench.action(), Action::Kill);
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::Signal(9), ..exit(0) });
    match bench.action() {
        Action::Fail { run, .. } => assert_eq!(run.outcome, Some(crate::slot::Outcome::Killed)),
        action => panic!("{action:?}"),
    }
}

#[test]
fn a_node_that_stood_still_past_its_lease_doubts_it_though_the_command_has_ended_meanwhile() {
    let mut bench = Bench::running(Policy::default());
    bench.pause(TTL * 3);
    bench.exits(1);
    assert!(bench.told(|event| *event == Event::LeaseInDoubt { attempt: 1, killing: false, ended: true }));
}

#[test]
fn an_answer_to_the_renewal_of_an_attempt_that_has_ended_is_not_the_next_ones() {
    let mut bench = Bench::running(Policy { lease_ttl: TTL, ..Policy::default() });
    bench.pass(TTL / 3);
    bench.machine.handle_timeout(bench.now());
    let (old, _) = bench.renew();
    bench.exits(1);
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(2));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.until_timer();
    bench.renew();
    bench.machine.handle_renewal(bench.now(), old.token, Ok(Renewal::Lost { to: None }));
    assert!(!bench.told(|event| matches!(event, Event::LeaseLost { .. })));
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.until_timer(), TTL / 3);
    bench.renew();
}

#[test]
fn an_answer_to_no_renewal_is_ignored() {
    let mut bench = Bench::running(kill());
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    bench.silent();
    assert!(!bench.told(|event| matches!(event, Event::LeaseLost { .. })));
}

fn outcome(bench: &mut Bench) -> crate::slot::Outcome {
    match bench.action() {
        Action::Fail { run, .. } | Action::Complete { run, .. } | Action::GiveBack { run, .. } => run.outcome.unwrap(),
        action => panic!("not a settlement: {action:?}"),
    }
}

#[test]
fn a_command_that_ended_in_time_has_succeeded_however_late_its_node_learns_of_it() {
    let policy = Policy { timeout: Some(seconds(10)), kill_after: seconds(3), ..Policy::default() };
    let mut bench = Bench::running(policy);
    let ended = bench.now().mono + seconds(9);
    // The node stands still, and looks at its timers before it hears of the exit.
    bench.pause(seconds(15));
    bench.machine.handle_timeout(bench.now());
    assert_eq!(bench.action(), Action::Terminate);
    bench.machine.handle_exit(bench.now(), Exit { ended: Some(ended), ..exit(0) });
    match bench.action() {
        Action::Complete { run, .. } => {
            assert_eq!(run.duration_ms, Some(9_000));
            assert_eq!(run.ended_at, run.started_at.map(|started| crate::clock::later(started, seconds(9))));
        }
        action => panic!("{action:?}"),
    }
}

#[test]
fn a_command_that_ended_after_its_timeout_has_timed_out_whatever_its_code() {
    let mut bench = Bench::running(Policy { timeout: Some(seconds(10)), ..Policy::default() });
    bench.until_timer();
    assert_eq!(bench.action(), Action::Terminate);
    bench.pause(seconds(1));
    let ended = Some(bench.now().mono);
    bench.machine.handle_exit(bench.now(), Exit { ended, ..exit(0) });
    assert_eq!(outcome(&mut bench), crate::slot::Outcome::Timeout);
}

#[test]
fn a_keeper_that_stopped_the_command_while_its_node_stood_still_means_a_lost_lease() {
    let mut bench = Bench::running(kill());
    let lapsed = Some(bench.machine.lease_deadline().unwrap().stop_at);
    bench.pause(TTL * 3);
    let ended = lapsed.map(|at| at + seconds(1));
    bench.machine.handle_exit(bench.now(), Exit { ended, lapsed, ..exit(0) });
    assert!(bench.told(|event| *event == Event::LeaseInDoubt { attempt: 1, killing: true, ended: true }));
    assert_eq!(outcome(&mut bench), crate::slot::Outcome::LostLease);
}

#[test]
fn the_first_cause_of_a_stop_stays_whoever_has_it() {
    let policy = Policy { timeout: Some(seconds(10)), ..kill() };
    let mut bench = Bench::running(policy);
    bench.until_timer();
    assert_eq!(bench.action(), Action::Terminate);
    let lapsed = Some(bench.machine.lease_deadline().unwrap().stop_at);
    bench.pause(TTL * 3);
    let ended = lapsed.map(|at| at + seconds(1));
    bench.machine.handle_exit(bench.now(), Exit { ended, lapsed, ..exit(0) });
    assert_eq!(outcome(&mut bench), crate::slot::Outcome::Timeout);
}

#[test]
fn with_kill_there_is_a_deadline_for_the_command_and_each_renewal_moves_it_on() {
    let mut bench = Bench::running(kill());
    let first = bench.machine.lease_deadline().unwrap();
    assert_eq!((first.stop_at, first.kill_at), (bench.now().mono + seconds(53), bench.now().mono + seconds(58)));
    bench.until_timer();
    bench.renew();
    assert_eq!(bench.machine.lease_deadline(), Some(first), "it was asked for, and not answered");
    bench.renewal(Ok(Renewal::Renewed));
    assert_eq!(bench.machine.lease_deadline().unwrap().kill_at, first.kill_at + TTL / 3);
    bench.exits(0);
    assert_eq!(bench.machine.lease_deadline(), None);
}

#[test]
fn with_continue_there_is_no_deadline_for_the_command() {
    assert_eq!(Bench::running(Policy::default()).machine.lease_deadline(), None);
}
