//! A look that waits for its turn: what ends the wait, and what does not wait.

use super::*;

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
