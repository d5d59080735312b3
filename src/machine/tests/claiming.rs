//! Looking and waiting: each answer to a claim, deadlines.

use super::*;
use crate::job::OnStoreError;
use crate::slot::Audit;

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
fn the_command_is_told_the_stores_own_number_of_the_grant() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    let at = slot().start();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: Some(41) }));
    assert_eq!(bench.spawned().fence_revision, Some(41));
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
    let wait = wait_after(Claim::Blocked { key: older.key(), by: other(), remaining: seconds(5) });
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
        Claim::Blocked { key: older.key(), by: other(), remaining },
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
fn a_waiting_node_looks_once_after_the_end_of_the_slot_and_hears_that_it_is_over() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    bench.machine.handle_claim(bench.now(), held(seconds(7_200)));
    let wait = bench.until_timer();
    assert!(wait > seconds(3_600) && wait < seconds(3_601), "{wait:?}");
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Closed));
    assert_eq!(bench.machine.ended(), Some(End::Closed));
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

/// The claim was applied, its answer lost, and the slot is over when the store is heard again.
#[test]
fn a_grant_that_is_heard_of_after_the_slots_end_is_given_back_unstarted() {
    let (mut bench, first) = Bench::at_tick(Policy::default());
    while bench.now().wall < slot().end() + chrono::TimeDelta::seconds(3) {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        bench.until_timer();
        assert_eq!(bench.claim().token, first.token);
    }
    bench.machine.handle_claim(bench.now(), granted(1));
    assert!(matches!(bench.action(), Action::GiveBack { .. }));
    bench.release(Ok(Release::Released));
    bench.until_timer();
    bench.claim();
    bench.machine.handle_claim(bench.now(), Ok(Claim::Closed));
    assert_eq!(bench.machine.ended(), Some(End::Closed));
}

/// The store was away for most of the slot, and granted the claim just now.
#[test]
fn a_grant_late_in_the_slot_is_run_however_long_the_store_was_away() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    while bench.now().wall < slot().end() - chrono::TimeDelta::seconds(60) {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        bench.until_timer();
        bench.claim();
    }
    let at = bench.now().wall;
    bench.machine.handle_claim(bench.now(), Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: None }));
    bench.spawned();
}

#[test]
fn a_node_that_may_hold_a_lease_unknowingly_asks_each_second() {
    let (mut bench, _) = Bench::at_tick(Policy::default());
    for _ in 0..20 {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        assert!(bench.until_timer() <= Duration::from_millis(1_250));
        bench.claim();
    }
    assert!(bench.machine.maybe_held());
    bench.machine.handle_claim(bench.now(), held(TTL));
    assert!(!bench.machine.maybe_held());
}

/// What nobody will use is not to last longer because somebody asks whether it is there.
#[test]
fn a_claim_that_can_only_be_given_back_asks_for_a_short_lease() {
    let policy = Policy { lease_ttl: TTL, ..Policy::default() };
    let (mut bench, first) = Bench::at_tick(policy);
    assert_eq!(first.lease_ttl, TTL);
    let mut last = first;
    while bench.now().wall < slot().end() + chrono::TimeDelta::seconds(3) {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        bench.until_timer();
        last = bench.claim();
        let over = bench.now().wall >= slot().end();
        assert_eq!(last.lease_ttl, if over { seconds(2) } else { TTL }, "{:?}", bench.now());
    }
    // By the store's clock the slot is not over after all: nothing is started under so short a lease.
    let at = slot().end() - chrono::TimeDelta::minutes(1) + chrono::TimeDelta::milliseconds(1);
    bench.pause(Duration::from_millis(10));
    let late = Duration::from_secs(58 * 60);
    bench.machine.handle_clock_set(Now { wall: crate::clock::earlier(bench.now().wall, late), ..bench.now() });
    bench.machine.handle_claim(bench.now(), Ok(Claim::Claimed { attempt: 1, used: 1, at, revision: None }));
    assert!(bench.machine.maybe_held());
    bench.until_timer();
    let again = bench.claim();
    assert_eq!((again.token, again.lease_ttl), (last.token, TTL));
}

#[test]
fn what_may_be_held_is_asked_about_in_a_drain_until_the_last_lease_that_was_asked_for_would_have_lapsed() {
    let (mut bench, first) = Bench::at_tick(Policy { lease_ttl: TTL, ..Policy::default() });
    let begun = bench.now().mono;
    while bench.now().mono.since(begun) < TTL * 2 {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        bench.until_timer();
        assert_eq!(bench.claim().lease_ttl, TTL);
    }
    let last = bench.now().mono;
    bench.machine.handle_shutdown(bench.now(), seconds(3_600));
    while bench.machine.ended().is_none() {
        bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
        if bench.machine.ended().is_none() {
            bench.until_timer();
            let asked = bench.claim();
            assert_eq!((asked.token, asked.lease_ttl), (first.token, seconds(2)));
        }
    }
    let asked_for = bench.now().mono.since(last);
    assert!(asked_for >= TTL && asked_for < TTL + seconds(3), "{asked_for:?}");
}

/// At the end itself it would be granted by a store whose clock is behind, and keep out the slot that begins then.
#[test]
fn the_last_look_at_a_slot_that_somebody_holds_comes_when_it_is_over_by_clocks_that_are_well() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let long = seconds(7_200);
    let blocked = Claim::Blocked { key: older.key(), by: other(), remaining: long };
    for answer in [Claim::Held { by: other(), remaining: long }, blocked, Claim::Paused { remaining: None }] {
        let poll = Some(seconds(7_200));
        let policy = Policy { lease_ttl: long, ..Policy::default() };
        let (mut bench, _) = Bench::with(Assignment { poll, ..assignment(policy) });
        bench.machine.handle_claim(bench.now(), Ok(answer));
        bench.until_timer();
        let after = bench.now().wall - slot().end();
        assert!((250..=500).contains(&after.num_milliseconds()), "{after}");
        bench.claim();
    }
}

/// Where the store is polled, or the lease of another slot lapses, just before the end. A retry is not put off: others wait for it.
#[test]
fn a_look_at_a_blocked_slot_that_would_come_just_before_the_end_is_put_off_until_after_it() {
    let older = Slot::parse("push", "2026-11-21T13Z", "2026-11-21T14Z").unwrap();
    let blocked = |remaining| Claim::Blocked { key: older.key(), by: other(), remaining };
    let is_put_off = |before: u64, answer: &dyn Fn(Duration) -> Claim| {
        let (mut bench, _) = Bench::at_tick(Policy { lease_ttl: seconds(7_200), ..Policy::default() });
        let left = crate::clock::between(bench.now().wall, slot().end());
        bench.machine.handle_claim(bench.now(), Ok(answer(left - Duration::from_millis(before))));
        bench.until_timer();
        bench.now().wall >= slot().end() + chrono::TimeDelta::milliseconds(250)
    };
    assert!(is_put_off(200, &blocked));
    assert!(!is_put_off(700, &blocked));
    assert!(!is_put_off(240, &|remaining| Claim::Backoff { remaining }));
}

/// A wait in which the node itself stood still says nothing of the store.
#[test]
fn where_the_node_stood_still_no_lease_lasts_longer_for_being_asked_about() {
    let (mut bench, _) = Bench::at_tick(Policy { lease_ttl: TTL, ..Policy::default() });
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    let lapses = bench.now().mono + TTL;
    bench.machine.handle_shutdown(bench.now(), seconds(3_600));
    bench.claim();
    bench.pause(seconds(30));
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    bench.until_timer();
    assert_eq!(bench.claim().lease_ttl, lapses.since(bench.now().mono));
}

/// Else the lease would be over before the grant could be given back, and the attempt would count.
#[test]
fn where_the_store_is_slow_the_short_lease_is_longer() {
    let (mut bench, _) = Bench::at_tick(Policy { lease_ttl: TTL, ..Policy::default() });
    bench.pause(seconds(5));
    bench.machine.handle_claim(bench.now(), Err(error(Applied::Maybe)));
    bench.machine.handle_shutdown(bench.now(), seconds(3_600));
    assert_eq!(bench.claim().lease_ttl, seconds(15));
}

#[test]
fn a_claim_whose_content_the_store_refuses_is_sent_again_without_the_reason_and_starts_no_run_without_a_guard() {
    let audit = Audit {
        verb: "trigger".to_owned(),
        who: "ann".to_owned(),
        host: "desk".to_owned(),
        why: "a reason that the store refuses".to_owned(),
        at: slot().start(),
    };
    let policy = Policy { on_store_error: OnStoreError::Run, lease_ttl: TTL, ..Policy::default() };
    let (mut bench, request) = Bench::with(Assignment { audit: Some(audit), ..assignment(policy) });
    assert!(request.audit.is_some_and(|audit| !audit.why.is_empty()));
    for _ in 0..50 {
        let refused = StoreError::new(ErrorKind::Content, Applied::No, Op::Claim, "redis://x", "too long");
        bench.machine.handle_claim(bench.now(), Err(refused));
        bench.until_timer();
        assert_eq!(bench.claim().audit.map(|audit| (audit.who, audit.why)), Some(("ann".to_owned(), String::new())));
    }
}
