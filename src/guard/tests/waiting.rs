//! While a slot is waited for: wake-ups, hints that were lost, and a look that waits for its turn, with what ends that wait and what
//! does not wait.

use super::*;

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
