//! Looking and waiting: each answer to a claim, wake-ups, store errors.

use super::*;
use crate::job::OnStoreError;

fn wait_after(reply: Claim) -> Duration {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(reply));
    bench.silent();
    let wait = bench.until_timer();
    bench.claim();
    wait
}

#[test]
fn a_tick_claims_at_once_with_the_seed_as_its_token() {
    let (_, request) = Bench::at_tick(Policy::default());
    assert_eq!((request.token, request.trigger, request.max_attempts), (Token::from_bits(42), Trigger::Schedule, 3));
}

#[test]
fn a_grant_starts_the_command_with_its_fence_and_deadline() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), granted(1));
    let context = bench.spawned();
    assert_eq!((context.attempt, context.fence, context.lease_held), (1, slot().fence(1), true));
    assert_eq!(context.deadline, Some(slot().start() + chrono::TimeDelta::minutes(30)));
    assert!(bench.machine.is_holding());
}

#[test]
fn the_command_is_not_told_its_token() {
    let (mut bench, request) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), granted(1));
    let context = bench.spawned();
    assert!(!request.token.to_string().contains(&context.run_id));
}

#[test]
fn done_closed_and_exhausted_end_the_slot_here_and_ask_nothing_more() {
    let answers = [
        (Claim::Done(done_by(other())), End::Done),
        (Claim::Closed, End::Closed),
        (Claim::Exhausted { used: 3 }, End::Exhausted),
    ];
    for (answer, end) in answers {
        let (mut bench, _) = Bench::at_tick(Policy::default());
        bench.machine.handle_claim(bench.now(), Ok(answer));
        assert_eq!(bench.machine.ended(), Some(end));
        assert_eq!(bench.machine.poll_timeout(), None);
        bench.silent();
    }
}

#[test]
fn a_held_slot_is_looked_at_when_the_lease_lapses_and_at_most_a_quarter_second_later() {
    let wait = wait_after(Claim::Held { by: other(), remaining: seconds(30) });
    assert!(wait >= seconds(30) && wait <= seconds(30) + Duration::from_millis(250), "{wait:?}");
}

#[test]
fn a_backoff_is_waited_out_and_the_look_comes_within_50_ms() {
    let wait = wait_after(Claim::Backoff { remaining: seconds(10) });
    assert!(wait >= seconds(10) && wait <= seconds(10) + Duration::from_millis(50), "{wait:?}");
}

#[test]
fn an_older_run_is_waited_out() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let wait = wait_after(Claim::Blocked { slot: older, by: other(), remaining: seconds(5) });
    assert!(wait >= seconds(5) && wait < seconds(6), "{wait:?}");
}

#[test]
fn a_pause_without_end_is_looked_at_once_per_lease_ttl() {
    let wait = wait_after(Claim::Paused { remaining: None });
    assert!(wait >= TTL && wait < TTL + seconds(1), "{wait:?}");
}

#[test]
fn a_claim_that_the_store_calls_early_is_repeated_when_the_slot_begins_by_the_stores_clock() {
    let wait = wait_after(Claim::Early { remaining: seconds(3_600) });
    assert_eq!(wait, seconds(3_600) + Duration::from_millis(1));
}

#[test]
fn the_time_that_remains_runs_on_while_the_answer_lies_unread() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let remaining = seconds(40);
    for answer in [
        Claim::Early { remaining },
        Claim::Held { by: other(), remaining },
        Claim::Backoff { remaining },
        Claim::Blocked { slot: older, by: other(), remaining },
    ] {
        let (mut bench, _) = Bench::at_tick(Policy::default());
        bench.clock.advance(seconds(30));
        bench.machine.handle_claim(bench.now(), Ok(answer.clone()));
        let wait = bench.until_timer();
        assert!(wait >= seconds(10) && wait < seconds(11), "{answer:?}: {wait:?}");
    }
}

#[test]
fn a_node_whose_clock_is_ahead_does_not_think_the_slot_over_when_the_store_says_it_has_not_begun() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), Ok(Claim::Early { remaining: seconds(3_600) }));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), held(seconds(50)));
    let wait = bench.until_timer();
    assert!(wait >= seconds(50), "{wait:?}");
    bench.claim();
}

#[test]
fn a_node_whose_clock_is_put_right_does_not_give_up_a_slot_that_is_not_over() {
    // It is 14:00, and the node's clock shows 14:59.
    let clock = ManualClock::at("2026-11-21T14:59:00Z".parse().unwrap());
    let mut machine = SlotMachine::new(assignment(Policy::default()), clock.now());
    clock.step_wall(slot().start());
    machine.handle_clock_set(clock.now());
    clock.advance(seconds(600));
    machine.handle_claim(clock.now(), Err(error(Applied::No)));
    assert_eq!(machine.ended(), None);
}

#[test]
fn a_grant_tells_when_the_slot_ends() {
    let clock = ManualClock::at("2026-11-21T14:59:00Z".parse().unwrap());
    let mut machine = SlotMachine::new(assignment(Policy::default()), clock.now());
    machine.handle_claim(clock.now(), granted(1));
    machine.handle_started(clock.now());
    machine.handle_exit(clock.now(), exit(1));
    machine.handle_release(clock.now(), Ok(Release::Released));
    // Its own failure is waited out, though the slot would be over by its clock.
    let wait = machine.poll_timeout().unwrap().since(clock.now().mono);
    clock.advance(wait);
    while machine.poll_action().is_some() {}
    machine.handle_timeout(clock.now());
    clock.advance(seconds(600));
    machine.handle_claim(clock.now(), Err(error(Applied::No)));
    assert_eq!(machine.ended(), None);
}

#[test]
fn without_wake_ups_a_waiting_node_polls() {
    let poll = Some(Duration::from_millis(250));
    let (mut bench, _) = Bench::with(Assignment { poll, ..assignment(Policy::default()) });
    bench.machine.handle_claim(bench.now(), held(seconds(30)));
    assert_eq!(bench.until_timer(), Duration::from_millis(250));
    bench.claim();
}

#[test]
fn a_waiting_node_looks_once_at_the_end_of_the_slot_and_hears_that_it_is_over() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(seconds(7_200)));
    assert_eq!(bench.until_timer(), seconds(3_600));
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Closed));
    assert_eq!(bench.machine.ended(), Some(End::Closed));
}

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
    bench.machine.handle_claim(bench.now(), Ok(Claim::Blocked { slot: older, by: other(), remaining: TTL }));
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
fn the_token_stays_until_it_is_granted_because_an_earlier_send_may_still_arrive() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(TTL));
    bench.until_timer();
    assert_eq!(bench.claim().token, first.token);
    bench.machine.handle_claim(bench.now(), granted(2));
    bench.spawned();
    bench.machine.handle_started(bench.now());
    bench.exits(1);
    assert!(matches!(bench.action(), Action::Fail { .. }));
    bench.release(Ok(Release::Released));
    bench.until_timer();
    assert_ne!(bench.claim().token, first.token, "another claim, another token");
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

#[test]
fn a_start_deadline_counts_by_the_stores_clock_where_this_nodes_is_ahead() {
    let policy = Policy { start_deadline: Some(seconds(60)), ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    bench.machine.handle_claim(bench.now(), Ok(Claim::Early { remaining: seconds(3_600) }));
    bench.until_timer();
    bench.claim();
}

#[test]
fn a_grant_after_the_start_deadline_is_given_back_unstarted() {
    let policy = Policy { start_deadline: Some(seconds(1)), ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    while bench.now().wall < slot().start() + chrono::TimeDelta::seconds(2) {
        bench.until_timer();
        bench.claim();
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    }
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), granted(1));
    assert!(matches!(bench.action(), Action::GiveBack { .. }));
    bench.release(Ok(Release::Released));
    bench.until_timer();
    assert_eq!(bench.machine.ended(), Some(End::TooLate));
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

#[test]
fn a_store_that_is_away_past_the_end_is_given_up_one_lease_later() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    while bench.machine.ended().is_none() {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::No)));
        if bench.machine.ended().is_none() {
            bench.until_timer();
            bench.claim();
        }
    }
    assert_eq!(bench.machine.ended(), Some(End::Unknown));
    let over = bench.now().wall - slot().end();
    assert!(over >= chrono::TimeDelta::seconds(60) && over < chrono::TimeDelta::seconds(70), "{over}");
}

#[test]
fn a_grant_that_arrives_after_its_trust_is_asked_for_again_with_the_same_token() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    bench.pause(TTL);
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.silent();
    assert!(!bench.machine.is_holding());
    bench.until_timer();
    assert_eq!(bench.claim().token, first.token);
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
    let claim = Claim::Claimed { attempt: 1, used: 1, at: granted_at };
    bench.machine.handle_claim(bench.now(), Ok(claim));
    assert_eq!(bench.spawned().attempt, 1);
    bench.machine.handle_started(bench.now());
    assert_eq!(bench.until_timer(), TTL / 3);
    let (lease, _) = bench.renew();
    assert_eq!((lease.token, lease.claimed_at), (first.token, granted_at), "trust counts from the last send");
}

#[test]
fn a_token_whose_run_has_an_end_is_not_asked_with_again() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    let waiting = Claim::Backoff { remaining: Duration::from_millis(1) };
    bench.machine.handle_claim(bench.now(), Ok(waiting));
    bench.until_timer();
    assert_eq!(bench.claim().token, first.token, "somebody's wait says nothing of this token");
    bench.machine.handle_claim(bench.now(), Ok(Claim::Backoff { remaining: Duration::ZERO }));
    bench.until_timer();
    assert_ne!(bench.claim().token, first.token);
}

#[test]
fn nothing_is_started_after_the_start_deadline() {
    let policy = Policy { start_deadline: Some(seconds(20)), ..Policy::default() };
    let (mut bench, _) = Bench::at_tick(policy);
    bench.machine.handle_claim(bench.now(), held(seconds(30)));
    bench.until_timer();
    bench.silent();
    assert_eq!(bench.machine.ended(), Some(End::TooLate));
    assert!(bench.told(|event| *event == Event::StartDeadlinePassed));
}

#[test]
fn a_second_answer_to_one_claim_is_ignored() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.spawned();
    bench.machine.handle_claim(bench.now(), granted(1));
    bench.silent();
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
