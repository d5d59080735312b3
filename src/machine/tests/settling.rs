//! After the command: what is recorded, and what is sent again.

use super::*;
use crate::machine::slot::Phase;
use crate::slot::{Outcome, OutputLoss, OutputTail, Overlap, RunRecord, Standstill};

fn completed(bench: &mut Bench) -> (Lease, RunRecord, Duration) {
    match bench.action() {
        Action::Complete { lease, run, done_ttl } => (lease, run, done_ttl),
        action => panic!("not a completion: {action:?}"),
    }
}

fn failed(bench: &mut Bench) -> (RunRecord, Duration) {
    match bench.action() {
        Action::Fail { run, retry_after, .. } => (run, retry_after),
        action => panic!("not a failure: {action:?}"),
    }
}

#[test]
fn a_success_is_recorded_with_its_times_and_ends_the_slot() {
    let mut bench = Bench::running(Policy::default());
    bench.pass(seconds(7));
    bench.exits(0);
    let (lease, run, done_ttl) = completed(&mut bench);
    assert_eq!((lease.attempt, run.outcome, run.exit_code), (1, Some(Outcome::Success), Some(0)));
    assert_eq!(
        (run.duration_ms, run.started_at, run.ended_at),
        (Some(7_000), Some(slot().start()), Some(bench.now().wall))
    );
    assert_eq!(done_ttl, seconds(7_200));
    bench.settlement(Ok(Settlement::Recorded));
    assert_eq!(bench.machine.ended(), Some(End::Done));
}

#[test]
fn a_guarded_run_that_nothing_disturbs_costs_one_claim_and_one_completion() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(0);
    completed(&mut bench);
    bench.settlement(Ok(Settlement::Recorded));
    bench.silent();
}

#[test]
fn a_success_that_cannot_be_recorded_is_tried_again_and_renewed_meanwhile() {
    let mut bench = Bench::running(Policy::default());
    bench.exits(0);
    completed(&mut bench);
    let mut renewals = 0;
    for _ in 0..12 {
        bench.settlement(Err(error(Applied::Maybe)));
        bench.until_timer();
        match bench.action() {
            Action::Complete { .. } => {}
            Action::Renew { .. } => {
                renewals += 1;
                bench.renewal(Ok(Renewal::Renewed));
                bench.until_timer();
                completed(&mut bench);
            }
            action => panic!("{action:?}"),
        }
    }
    assert!(renewals >= 1);
    bench.settlement(Ok(Settlement::Recorded));
    assert_eq!(bench.machine.ended(), Some(End::Done));
}

#[test]
fn a_success_is_recorded_even_after_the_lease_was_lost() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    bench.exits(0);
    completed(&mut bench);
    bench.settlement(Ok(Settlement::Overtaken { by: other() }));
    assert_eq!(bench.machine.ended(), Some(End::Done));
    assert!(bench.told(|event| matches!(event, Event::Overtaken { attempt: 1, unstarted: false, .. })));
}

#[test]
fn the_end_of_a_command_whose_keeper_stood_still_is_recorded_by_its_bounds() {
    let mut bench = Bench::running(Policy { timeout: Some(seconds(5)), ..Policy::default() });
    bench.pass(seconds(1));
    let seen = bench.now().mono;
    bench.pause(seconds(8));
    // The node looks at its timers before it learns of the exit.
    bench.machine.handle_timeout(bench.now());
    assert_eq!(bench.action(), Action::Terminate);
    let standstill = Some(Standstill { seen, cpu: Duration::from_millis(20) });
    let ended = Some(bench.now().mono);
    bench.machine.handle_exit(bench.now(), Exit { ended, standstill, ..exit(0) });
    let (_, run, _) = completed(&mut bench);
    let second = |span| Some(crate::clock::later(slot().start(), seconds(span)));
    assert_eq!(run.outcome, Some(Outcome::Success), "a stop that came after the end has stopped nothing");
    assert_eq!((run.ended_after, run.ended_at, run.duration_ms, run.cpu_ms), (second(1), second(9), None, Some(20)));
    let bounds = second(1).zip(second(9));
    assert!(bench.told(|event| matches!(event, Event::RunEnded { ended_between, .. } if *ended_between == bounds)));
}

#[test]
fn two_runs_are_said_to_have_overlapped_only_where_their_records_allow_it() {
    for (claimed, started, overlap) in
        [(3, None, Overlap::No), (2, None, Overlap::Possible), (0, Some(0), Overlap::Sure)]
    {
        let mut bench = Bench::running(Policy::default());
        bench.pass(seconds(1));
        bench.pause(Duration::from_millis(500));
        bench.exits(0);
        let (lease, _, _) = completed(&mut bench);
        let second = |span| crate::clock::later(slot().start(), seconds(span));
        let lease = Lease { attempt: 2, token: Token::from_bits(9), claimed_at: second(claimed), ..lease };
        let other_run = RunRecord { started_at: started.map(second), ..RunRecord::begun(&lease) };
        bench.machine.note_overtaker(other_run);
        bench.settlement(Ok(Settlement::Overtaken { by: other() }));
        let is_so = |event: &Event| matches!(event, Event::Overtaken { overlap: told, .. } if *told == overlap);
        assert!(bench.told(is_so), "{overlap:?}");
    }
}

#[test]
fn a_command_that_ended_while_its_lease_was_trusted_puts_no_lease_in_doubt() {
    let mut bench = Bench::running(Policy::default());
    let ended = Some(bench.now().mono + seconds(1));
    bench.pause(TTL * 3);
    bench.machine.handle_exit(bench.now(), Exit { ended, ..exit(0) });
    completed(&mut bench);
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    bench.settlement(Ok(Settlement::Overtaken { by: other() }));
    assert!(!bench.told(|event| matches!(event, Event::LeaseInDoubt { .. } | Event::LeaseLost { .. })));
}

#[test]
fn a_completion_whose_answer_was_lost_is_no_lost_lease() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    bench.renew();
    bench.exits(0);
    completed(&mut bench);
    let own = Holder { node: NodeName::new("a").unwrap(), attempt: 1 };
    bench.renewal(Ok(Renewal::Done(done_by(own))));
    assert!(!bench.told(|event| matches!(event, Event::LeaseLost { .. })));
}

fn done_under(token: Token) -> Result<Renewal, StoreError> {
    let by = Holder { node: NodeName::new("a").unwrap(), attempt: 1 };
    Ok(Renewal::Done(DoneMark { token: Some(token), ..done_by(by) }))
}

#[test]
fn a_renewal_that_finds_the_own_done_marker_repeats_an_unanswered_completion_at_once() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    let (lease, _) = bench.renew();
    bench.exits(0);
    completed(&mut bench);
    let silent = StoreError::new(ErrorKind::Timeout, Applied::Maybe, Op::Complete, "redis://x", "no answer");
    bench.settlement(Err(silent));
    bench.renewal(done_under(lease.token));
    completed(&mut bench);
    bench.settlement(Ok(Settlement::Recorded));
    assert_eq!(bench.machine.ended(), Some(End::Done));
    bench.silent();
}

#[test]
fn an_own_done_marker_hides_no_attempt_that_ran_after_an_unlock() {
    let mut bench = Bench::running(Policy::default());
    bench.until_timer();
    let (lease, _) = bench.renew();
    bench.exits(0);
    completed(&mut bench);
    bench.renewal(done_under(lease.token));
    assert_eq!(bench.machine.ended(), None, "the answer to the completion is still open");
    bench.settlement(Ok(Settlement::Overtaken { by: other() }));
    assert!(bench.told(|event| matches!(event, Event::Overtaken { attempt: 1, .. })));
}

fn refused() -> StoreError {
    StoreError::new(ErrorKind::Content, Applied::No, Op::Complete, "redis://x", "the record is too large")
}

/// A machine whose command ends with this code and this output.
fn ended_with(code: i32, output: &str) -> Bench {
    let mut bench = Bench::running(Policy::default());
    let output = OutputTail { text: output.to_owned(), dropped_bytes: 7, loss: None };
    let exit = Exit { output, note: Some("left a process behind".to_owned()), ..exit(code) };
    bench.machine.handle_exit(bench.now(), exit);
    bench
}

#[test]
fn an_end_whose_content_the_store_refuses_is_sent_again_at_once_without_the_output_and_then_without_the_message() {
    let mut bench = ended_with(0, "well\n");
    assert_eq!(completed(&mut bench).1.output.map(|output| output.text), Some("well\n".to_owned()));
    bench.settlement(Err(refused()));
    assert_eq!(bench.until_timer(), Duration::ZERO);
    let (_, run, _) = completed(&mut bench);
    let lost = OutputTail { text: String::new(), dropped_bytes: 12, loss: Some(OutputLoss::Refused) };
    assert_eq!((run.output, run.message.as_deref()), (Some(lost.clone()), Some("left a process behind")));
    bench.settlement(Err(refused()));
    assert_eq!(bench.until_timer(), Duration::ZERO);
    let (_, run, _) = completed(&mut bench);
    assert_eq!(run.output, Some(lost));
    assert_eq!(run.message.as_deref(), Some("the store refused the message of this run"));
    // What is refused even so is as any other error.
    bench.settlement(Err(refused()));
    assert!(bench.until_timer() > Duration::ZERO);
    completed(&mut bench);
    bench.settlement(Ok(Settlement::Recorded));
    assert_eq!(bench.machine.ended(), Some(End::Done));
}

#[test]
fn a_failure_whose_content_the_store_refuses_is_recorded_without_its_output() {
    let mut bench = ended_with(3, "no route\n");
    failed(&mut bench);
    bench.release(Err(refused()));
    assert_eq!(bench.until_timer(), Duration::ZERO);
    let (run, _) = failed(&mut bench);
    assert_eq!((run.exit_code, run.output.and_then(|output| output.loss)), (Some(3), Some(OutputLoss::Refused)));
}

#[test]
fn a_long_output_is_sent_once_where_no_answer_comes_and_a_short_one_again() {
    for (length, loss) in [(4_096, None), (4_097, Some(OutputLoss::Unanswered))] {
        for code in [0, 1] {
            let mut bench = ended_with(code, &"x".repeat(length));
            let sent = |bench: &mut Bench| match code {
                0 => completed(bench).1.output,
                _ => failed(bench).0.output,
            };
            assert_eq!(sent(&mut bench).and_then(|output| output.loss), None);
            match code {
                0 => bench.settlement(Err(error(Applied::Maybe))),
                _ => bench.release(Err(error(Applied::Maybe))),
            }
            bench.until_timer();
            assert_eq!(sent(&mut bench).and_then(|output| output.loss), loss, "{length} {code}");
        }
    }
}

#[test]
fn an_output_that_was_never_sent_is_kept() {
    let mut bench = ended_with(0, &"x".repeat(100_000));
    completed(&mut bench);
    bench.settlement(Err(error(Applied::No)));
    bench.until_timer();
    assert_eq!(completed(&mut bench).1.output.map(|output| output.text.len()), Some(100_000));
}

#[test]
fn a_completion_is_tried_long_after_the_end_and_then_given_up_with_an_event() {
    let mut bench = Bench::running(Policy::default());
    bench.exits(0);
    completed(&mut bench);
    bench.settlement(Err(error(Applied::No)));
    while bench.machine.ended().is_none() {
        bench.until_timer();
        match bench.machine.poll_action() {
            Some(Action::Renew { .. }) => bench.renewal(Err(error(Applied::No))),
            Some(Action::Complete { .. }) => bench.settlement(Err(error(Applied::No))),
            Some(action) => panic!("{action:?}"),
            None => {}
        }
    }
    assert_eq!(bench.machine.ended(), Some(End::Unrecorded));
    assert!(bench.now().wall >= slot().end() + chrono::TimeDelta::hours(2));
    assert!(bench.told(|event| matches!(event, Event::SettlementGivenUp { attempt: 1, outcome: Outcome::Success })));
}

#[test]
fn an_end_that_the_store_need_not_be_told_any_more_is_given_up_with_an_event_and_a_run_that_goes_on_is_not() {
    let mut bench = Bench::running(Policy::default());
    bench.machine.handle_impatience();
    assert_eq!(bench.machine.ended(), None);
    bench.exits(0);
    completed(&mut bench);
    bench.machine.handle_impatience();
    assert_eq!(bench.machine.ended(), Some(End::Unrecorded));
    assert!(bench.told(|event| matches!(event, Event::SettlementGivenUp { attempt: 1, outcome: Outcome::Success })));
}

#[test]
fn an_error_is_told_again_after_any_answer() {
    let mut bench = Bench::running(Policy::default());
    let told = |bench: &mut Bench| bench.told(|event| matches!(event, Event::StoreFailed { .. }));
    bench.until_timer();
    bench.renew();
    bench.renewal(Err(error(Applied::Maybe)));
    assert!(told(&mut bench));
    bench.until_timer();
    bench.renew();
    bench.renewal(Ok(Renewal::Lost { to: Some(other()) }));
    assert!(!told(&mut bench));
    bench.exits(0);
    completed(&mut bench);
    bench.settlement(Err(error(Applied::Maybe)));
    assert!(told(&mut bench), "the store failed once more");
}

#[test]
fn any_other_exit_code_is_a_failure_unless_the_job_calls_it_success() {
    let mut bench = Bench::running(Policy::default());
    bench.exits(3);
    let (run, _) = failed(&mut bench);
    assert_eq!((run.outcome, run.exit_code), (Some(Outcome::Failure), Some(3)));

    let (mut bench, _) = Bench::with(Assignment { success_codes: vec![0, 3], ..assignment(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(3);
    completed(&mut bench);
}

#[test]
fn lost_output_is_a_failure_whichever_exit_codes_mean_success() {
    let (mut bench, _) = Bench::with(Assignment { success_codes: vec![0, 74], ..assignment(Policy::default()) });
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::OutputLost, ..exit(0) });
    let (run, _) = failed(&mut bench);
    assert_eq!((run.outcome, run.exit_code), (Some(Outcome::Failure), Some(74)));
}

#[test]
fn a_signal_that_cronward_did_not_send_is_recorded_as_killed() {
    let mut bench = Bench::running(Policy::default());
    bench.machine.handle_exit(bench.now(), Exit { status: ExitStatus::Signal(11), ..exit(0) });
    let (run, _) = failed(&mut bench);
    assert_eq!((run.outcome, run.signal, run.exit_code), (Some(Outcome::Killed), Some(11), None));
}

#[test]
fn a_command_that_does_not_exist_is_a_failed_attempt_with_127() {
    let mut bench = Bench::running(Policy::default());
    let status = ExitStatus::NotStarted { code: 127, message: "no such program: push".to_owned() };
    bench.machine.handle_exit(bench.now(), Exit { status, ..exit(0) });
    let (run, _) = failed(&mut bench);
    assert_eq!((run.outcome, run.exit_code), (Some(Outcome::Failure), Some(127)));
    assert_eq!(run.message.as_deref(), Some("no such program: push"));
}

fn lacks_resources() -> Exit {
    Exit { status: ExitStatus::NoResources { message: "no descriptor is free".to_owned() }, ..exit(0) }
}

#[test]
fn a_start_that_lacks_a_resource_gives_its_only_attempt_back_and_is_tried_again_ever_later() {
    let mut bench = Bench::running(Policy { max_attempts: 1, ..Policy::default() });
    for wait in [1, 2, 4] {
        bench.machine.handle_exit(bench.now(), lacks_resources());
        let Action::GiveBack { run, .. } = bench.action() else { panic!("it is given back") };
        assert_eq!((run.outcome, run.exit_code, run.started_at), (Some(Outcome::GivenBack), Some(126), None));
        assert_eq!(run.message.as_deref(), Some("no descriptor is free"));
        let before = bench.now().mono;
        bench.release(Ok(Release::Released));
        bench.until_timer();
        assert_eq!(bench.now().mono.since(before).as_secs(), wait);
        bench.claim();
        bench.machine.handle_claim(bench.now(), granted(1));
        bench.spawned();
        bench.machine.handle_started(bench.now());
    }
    bench.exits(0);
    completed(&mut bench);
}

#[test]
fn a_start_that_lacks_a_resource_and_has_no_guard_is_a_failure() {
    let mut bench = Bench::running(Policy::default());
    let Phase::Running(hold) = &mut bench.machine.phase else { panic!("it runs") };
    hold.guarded = false;
    bench.machine.handle_exit(bench.now(), lacks_resources());
    assert_eq!(failed(&mut bench).0.outcome, Some(Outcome::Failure));
}

#[test]
fn a_failure_is_not_renewed_while_it_cannot_be_recorded() {
    let mut bench = Bench::running(Policy::default());
    bench.exits(1);
    failed(&mut bench);
    for _ in 0..20 {
        bench.release(Err(error(Applied::Maybe)));
        bench.until_timer();
        failed(&mut bench);
    }
}

#[test]
fn a_slot_that_was_over_is_run_once_for_each_request_of_a_person() {
    let (mut bench, _) = Bench::with(Assignment { past: true, ..assignment(Policy::default()) });
    let at = slot().end() + chrono::TimeDelta::hours(3);
    bench.pause((at - slot().start()).to_std().unwrap());
    let claimed = || Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: None });
    bench.machine.handle_claim(bench.now(), claimed());
    // The answer was three hours on its way: it is asked for again, as the same claim.
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), claimed());
    bench.spawned();
    assert!(bench.told(|event| matches!(event, Event::Granted { past: true, .. })), "the journal says so");
    bench.machine.handle_started(bench.now());
    bench.exits(1);
    failed(&mut bench);
    bench.release(Ok(Release::Released));
    assert_eq!(
        bench.machine.ended(),
        Some(End::Closed),
        "there are attempts left, and nobody has asked for another one"
    );
}

#[test]
fn a_success_of_a_slot_that_was_over_before_is_renewed_while_it_cannot_be_recorded() {
    let (mut bench, request) = Bench::with(Assignment { past: true, ..assignment(Policy::default()) });
    assert!(request.past, "the store is asked for the past");
    let at = slot().end() + chrono::TimeDelta::hours(3);
    bench.pause((at - slot().start()).to_std().unwrap());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: None }));
    // The answer was three hours on its way: it is asked for again, as the same claim.
    bench.until_timer();
    assert_eq!(bench.claim().token, request.token);
    bench.machine.handle_claim(bench.now(), Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: None }));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(0);
    completed(&mut bench);
    let mut renewals = 0;
    while renewals < 3 {
        bench.until_timer();
        match bench.machine.poll_action() {
            Some(Action::Renew { lease, .. }) => {
                renewals += 1;
                bench.renewing = lease.token;
                bench.renewal(Ok(Renewal::Renewed));
            }
            Some(Action::Complete { .. }) => bench.settlement(Err(error(Applied::No))),
            Some(action) => panic!("{action:?}"),
            None => {}
        }
        if bench.machine.poll_timeout().is_none() {
            bench.settlement(Err(error(Applied::No)));
        }
    }
}
