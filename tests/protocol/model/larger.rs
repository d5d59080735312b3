//! Larger worlds, some minutes each. They are left out of an ordinary run, by name, and run by `make model-long`.

use cronward::job::OnLost;

use super::check::holds;
use super::locked;
use super::properties::{
    AFTER_WAIT, ENDED_BY_PAUSE, EXHAUSTED, IN_VAIN, LATE_COPY, LOCKS_LOST, LOST_REPLY, OVERLAP, OWN_ENTRY, RESTORED,
    RETRY, TAKEOVER,
};
use super::rivals::{Locks, ONE, RIVAL};
use super::setup::{Faults, NONE, Pace, Setup};

fn stalling(faults: Faults) -> Setup {
    Setup::small(Pace::Stalling, faults)
}

fn short(faults: Faults) -> Setup {
    Setup { end: 3, horizon: 3, ..stalling(faults) }
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_crash_and_messages_that_stall_in_a_longer_slot() {
    let faults = Faults { crashes: 1, ..NONE };
    holds("long: stalls, a crash", stalling(faults), &[RETRY, EXHAUSTED, TAKEOVER, OVERLAP]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_kill_in_a_longer_slot_no_two_commands_run_at_once() {
    let kill = Setup { on_lost: OnLost::Kill, ..Setup::small(Pace::Responsive, NONE) };
    holds("long: kill", kill, &[RETRY, EXHAUSTED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_copy_and_messages_that_stall() {
    holds("long: stalls, a copy", stalling(Faults { copies: 1, ..NONE }), &[RETRY, EXHAUSTED, OVERLAP]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_loss_and_a_copy() {
    let setup = Setup { horizon: 5, ..Setup::small(Pace::Prompt, Faults { losses: 1, copies: 1, ..NONE }) };
    holds("long: a loss, a copy", setup, &[RETRY, EXHAUSTED, LOST_REPLY]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_store_that_forgets_and_messages_that_stall() {
    holds("long: stalls, a wipe", short(Faults { wipes: 1, ..NONE }), &[RETRY, EXHAUSTED, RESTORED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_loss_and_messages_that_stall() {
    holds("long: stalls, a loss", short(Faults { losses: 1, ..NONE }), &[RETRY, EXHAUSTED, LOST_REPLY]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_kill_and_a_loss_no_two_commands_run_at_once() {
    let faults = Faults { losses: 1, ..NONE };
    let kill = Setup { on_lost: OnLost::Kill, end: 3, horizon: 4, ..Setup::small(Pace::Responsive, faults) };
    holds("long: kill, a loss", kill, &[RETRY, EXHAUSTED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_crash_a_restart_and_a_store_that_forgets() {
    let faults = Faults { crashes: 1, restarts: 1, wipes: 1, ..NONE };
    let setup = Setup::small(Pace::Prompt, faults);
    holds("long: a crash, a restart, a wipe", setup, &[RETRY, EXHAUSTED, TAKEOVER, RESTORED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_three_nodes_a_crash_and_a_loss() {
    let faults = Faults { crashes: 1, losses: 1, ..NONE };
    let setup = Setup { nodes: 3, ..Setup::small(Pace::Prompt, faults) };
    holds("long: three nodes", setup, &[RETRY, EXHAUSTED, TAKEOVER]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_and_every_order_around_a_crash() {
    let all = Locks { every_order: true, ..ONE };
    let crash = locked(Pace::Prompt, Faults { crashes: 1, ..NONE }, all);
    holds("long: a lock, a crash, every order", Setup { end: 3, horizon: 3, ..crash }, &[AFTER_WAIT, IN_VAIN, RETRY]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_a_loss_and_a_crash() {
    let both = locked(Pace::Prompt, Faults { losses: 1, crashes: 1, ..NONE }, ONE);
    let short = Setup { end: 3, horizon: 3, ..both };
    holds("long: a lock, a loss, a crash", short, &[AFTER_WAIT, IN_VAIN, LATE_COPY, TAKEOVER]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_and_messages_that_stall_for_longer() {
    let stalls = Setup { nodes: 1, ttl: 1, end: 2, horizon: 2, ..locked(Pace::Stalling, NONE, RIVAL) };
    holds("long: a lock, stalls", stalls, &[AFTER_WAIT, OVERLAP, LOCKS_LOST]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_and_a_store_that_forgets() {
    let wipe = locked(Pace::Prompt, Faults { wipes: 1, ..NONE }, ONE);
    holds("long: a lock, a wipe", wipe, &[AFTER_WAIT, RESTORED]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_an_operator_who_unlocks_resets_and_marks_done_in_larger_worlds() {
    let verb = Faults { verbs: 1, ..NONE };
    holds("long: stalls, a verb", short(verb), &[RETRY]);
    let two = Setup::small(Pace::Prompt, Faults { verbs: 2, losses: 1, ..NONE });
    holds("long: two verbs, a loss", Setup { end: 3, ..two }, &[RETRY, LOST_REPLY]);
    let lock = |faults| Setup { end: 3, horizon: 3, ..locked(Pace::Prompt, faults, ONE) };
    holds("long: a lock, a verb, a loss", lock(Faults { losses: 1, ..verb }), &[AFTER_WAIT, LATE_COPY]);
    holds("long: a lock, a verb, a crash", lock(Faults { crashes: 1, ..verb }), &[AFTER_WAIT]);
    holds("long: a lock, a verb, a pause", lock(Faults { pauses: 1, ..verb }), &[AFTER_WAIT, ENDED_BY_PAUSE]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_an_operator_who_pauses_the_job_and_messages_that_stall() {
    holds("long: stalls, a pause", short(Faults { pauses: 1, ..NONE }), &[RETRY]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_and_an_operator_who_pauses_the_job() {
    let short = Setup { end: 3, horizon: 3, ..locked(Pace::Prompt, Faults { pauses: 1, ..NONE }, ONE) };
    let every_order = Setup { locks: Some(Locks { every_order: true, ..ONE }), ..short };
    holds("long: a lock, a pause, every order", every_order, &[AFTER_WAIT, ENDED_BY_PAUSE]);
    let loss = Setup { faults: Faults { pauses: 1, losses: 1, ..NONE }, ..short };
    holds("long: a lock, a pause, a loss", loss, &[AFTER_WAIT, ENDED_BY_PAUSE]);
    let crash = Setup { faults: Faults { pauses: 1, crashes: 1, ..NONE }, ..short };
    holds("long: a lock, a pause, a crash", crash, &[AFTER_WAIT, ENDED_BY_PAUSE]);
}

#[test]
#[ignore = "minutes: make model-long"]
fn with_a_lock_and_wake_ups() {
    let wakes = Setup { wakes: true, ..locked(Pace::Prompt, NONE, ONE) };
    holds("long: a lock, wake-ups", wakes, &[AFTER_WAIT, IN_VAIN, RETRY]);
}

/// The entry of the attempt that died holds in one lock, where a stranger waits behind it, and waits in the other: whoever comes next
/// would wait for its own, and asks later.
#[test]
#[ignore = "minutes: make model-long"]
fn with_two_locks_a_crash_and_a_restart() {
    let two = Locks { count: 2, rivals: 1, ..ONE };
    let restart = locked(Pace::Prompt, Faults { crashes: 1, restarts: 1, ..NONE }, two);
    let short = Setup { end: 3, horizon: 3, ..restart };
    holds("long: two locks, a crash, a restart", short, &[AFTER_WAIT, OWN_ENTRY, TAKEOVER]);
}
