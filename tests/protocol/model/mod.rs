//! Every history of a small cluster: two or three nodes, one slot, two attempts, and each order in which messages arrive,
//! are lost, are repeated and come late, nodes stall, die, come back and are shut down, leases lapse and the store forgets.
//! Each state that can be reached is visited, and the invariants of `docs/PROTOCOL.md` are asked of it.
//!
//! What runs is the real code: `machine::SlotMachine` on each node and `store::memory::Ledger` as the store. Their steps are
//! remembered, so that a state of the model is a few numbers (`memo`). What is modelled is the world around them: time in
//! whole ticks (`setup`), the network, the commands and the faults (`world`, `turn`). `judge` and `properties` say what must
//! hold, `controls` shows that each of it can be broken.
//!
//! The job may name locks, which strangers want too (`rivals`). With prompt messages what a node does about its locks then goes
//! before whatever else happens in its tick, save what a loss, a copy, a crash or a shutdown makes of it: in any order it would be
//! many times the states. Worlds without faults (`a lock`) and some of `larger` have every order.
//!
//! **What is left out**: older slots, `on_store_error = "run"`, timeouts of commands, clocks
//! that drift apart, a store that forgets a part. A command starts in the moment of its grant, or of the grant of its locks. Of jobs
//! that share locks one is modelled, and of locks those that are exclusive: the rules for others are visited in `locks`.
//!
//! The worlds here are small enough for every run; those of `larger` take minutes (`make model-long`). States are told apart
//! by 64 bits of their hash: the chance that among a million any is taken for another is below 1 in 10 million.

#![allow(
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the model counts in small numbers, and tells how long it took"
)]

mod check;
mod controls;
mod judge;
mod key;
mod larger;
mod locks;
mod memo;
mod node;
mod orders;
mod properties;
#[cfg(feature = "redis-redlock")]
mod redlock;
mod rivals;
mod setup;
mod store;
mod turn;
mod world;

use cronward::job::OnLost;

use self::check::holds;
use self::properties::{
    AFTER_WAIT, ALL_HELD, EARLY, ENDED_BY_PAUSE, EXHAUSTED, IN_VAIN, LATE_COPY, LOCKS_LOST, LOST_REPLY, OVERLAP,
    REFUND, RESTORED, RETRY, SKIPPED, TAKEOVER, WAITED,
};
use self::rivals::{Locks, ONE, RIVAL};
use self::setup::{Faults, NONE, Pace, Setup};

#[test]
fn with_nodes_and_messages_that_stall_for_any_time() {
    holds("stalls", Setup::small(Pace::Stalling, NONE), &[RETRY, EXHAUSTED, OVERLAP]);
}

#[test]
fn with_a_crash_and_messages_that_stall() {
    let setup = Setup { end: 3, horizon: 3, ..Setup::small(Pace::Stalling, Faults { crashes: 1, ..NONE }) };
    holds("stalls, a crash", setup, &[RETRY, EXHAUSTED]);
}

#[test]
fn with_requests_and_replies_that_are_lost_or_late() {
    let setup = Setup { horizon: 5, ..Setup::small(Pace::Prompt, Faults { losses: 1, ..NONE }) };
    holds("a loss", setup, &[RETRY, EXHAUSTED, LOST_REPLY]);
}

/// The claim is applied, its answer lost, and the slot over before it is asked about: the lease, which is longer than the slot, would
/// keep the job's next slot out.
#[test]
fn with_a_slot_that_is_shorter_than_a_lost_answer() {
    let setup = Setup { end: 1, ttl: 4, horizon: 6, ..Setup::small(Pace::Prompt, Faults { losses: 1, ..NONE }) };
    holds("a short slot and a loss", setup, &[LOST_REPLY, REFUND]);
}

#[test]
fn with_requests_that_arrive_twice() {
    let setup = Setup { horizon: 5, ..Setup::small(Pace::Prompt, Faults { copies: 1, ..NONE }) };
    holds("a copy", setup, &[RETRY, EXHAUSTED]);
}

#[test]
fn with_crashes_and_a_restart() {
    let faults = Faults { crashes: 2, restarts: 1, ..NONE };
    holds("crashes and a restart", Setup::small(Pace::Prompt, faults), &[RETRY, EXHAUSTED, TAKEOVER]);
}

#[test]
fn with_a_crash_and_a_store_that_forgets() {
    let faults = Faults { crashes: 1, wipes: 1, ..NONE };
    holds("a crash and a wipe", Setup::small(Pace::Prompt, faults), &[RETRY, EXHAUSTED, TAKEOVER, RESTORED]);
}

#[test]
fn with_shutdowns_and_a_lost_message() {
    let faults = Faults { shutdowns: 1, losses: 1, ..NONE };
    holds("shutdowns", Setup::small(Pace::Prompt, faults), &[RETRY, EXHAUSTED, REFUND, LOST_REPLY]);
}

#[test]
fn with_waits_between_attempts_and_wake_ups() {
    let faults = Faults { crashes: 1, losses: 1, ..NONE };
    let setup = Setup { retry: 1, wakes: true, horizon: 5, ..Setup::small(Pace::Prompt, faults) };
    holds("waits and wake-ups", setup, &[RETRY, EXHAUSTED, TAKEOVER]);
}

#[test]
fn with_clocks_that_are_ahead_of_the_store() {
    let setup = Setup { begin: 1, end: 5, horizon: 6, ..Setup::small(Pace::Prompt, Faults { losses: 1, ..NONE }) };
    holds("fast clocks", setup, &[RETRY, EXHAUSTED, EARLY]);
}

#[test]
fn with_kill_no_two_commands_run_at_once_however_slow_the_network() {
    let setup = Setup { on_lost: OnLost::Kill, end: 3, ..Setup::small(Pace::Responsive, NONE) };
    holds("kill", setup, &[RETRY, EXHAUSTED]);
}

#[test]
fn with_three_nodes_and_a_crash() {
    let setup = Setup { nodes: 3, ..Setup::small(Pace::Prompt, Faults { crashes: 1, ..NONE }) };
    holds("three nodes", setup, &[RETRY, EXHAUSTED, TAKEOVER]);
}

const fn locked(pace: Pace, faults: Faults, locks: Locks) -> Setup {
    Setup { locks: Some(locks), ..Setup::small(pace, faults) }
}

#[test]
fn with_a_lock_that_a_stranger_holds_at_first() {
    let short = Setup { end: 3, horizon: 3, ..locked(Pace::Prompt, NONE, Locks { every_order: true, ..ONE }) };
    holds("a lock", short, &[WAITED, AFTER_WAIT, IN_VAIN, RETRY]);
    let wait = Locks { wait: Some(2), ..ONE };
    holds("a lock, lock_wait", locked(Pace::Prompt, NONE, wait), &[AFTER_WAIT, IN_VAIN, REFUND, RETRY]);
}

#[test]
fn with_a_lock_and_a_crash_a_loss_or_a_copy() {
    let crash = locked(Pace::Prompt, Faults { crashes: 1, ..NONE }, ONE);
    holds("a lock, a crash", crash, &[AFTER_WAIT, IN_VAIN, RETRY, TAKEOVER]);
    let loss = locked(Pace::Prompt, Faults { losses: 1, ..NONE }, ONE);
    holds("a lock, a loss", Setup { end: 3, horizon: 3, ..loss }, &[AFTER_WAIT, IN_VAIN, LATE_COPY]);
    let copy = locked(Pace::Prompt, Faults { copies: 1, ..NONE }, ONE);
    holds("a lock, a copy", Setup { end: 3, horizon: 3, ..copy }, &[AFTER_WAIT, IN_VAIN, LATE_COPY]);
}

#[test]
fn with_a_lock_whose_holder_has_died() {
    let dead = Locks { lapse: Some(2), ..ONE };
    let loss = locked(Pace::Prompt, Faults { losses: 1, ..NONE }, dead);
    holds("a lock that lapses, a loss", Setup { end: 3, horizon: 3, ..loss }, &[AFTER_WAIT]);
}

#[test]
fn with_a_lock_and_shutdowns() {
    let shutdown = locked(Pace::Prompt, Faults { shutdowns: 1, ..NONE }, ONE);
    holds("a lock, shutdowns", shutdown, &[AFTER_WAIT, IN_VAIN, REFUND]);
}

/// One node; a lease and an entry last for a tick. A stranger may come and hold while the command runs that has lost its lock: both run, and this one is told.
#[test]
fn with_a_lock_and_messages_that_stall() {
    let stalls = Setup { nodes: 1, ttl: 1, end: 2, horizon: 1, ..locked(Pace::Stalling, NONE, RIVAL) };
    holds("a lock, stalls", stalls, &[WAITED, AFTER_WAIT, OVERLAP, LOCKS_LOST]);
}

#[test]
fn with_an_operator_who_pauses_the_job() {
    let pause = Setup { horizon: 5, ..Setup::small(Pace::Prompt, Faults { pauses: 1, ..NONE }) };
    holds("a pause", pause, &[RETRY, EXHAUSTED, SKIPPED]);
    let short = Setup { end: 3, horizon: 3, ..locked(Pace::Prompt, Faults { pauses: 1, ..NONE }, ONE) };
    holds("a lock, a pause", short, &[AFTER_WAIT, IN_VAIN, ENDED_BY_PAUSE, SKIPPED]);
    let shutdown = Setup { faults: Faults { pauses: 1, shutdowns: 1, ..NONE }, ..short };
    holds("a lock, a pause, shutdowns", shutdown, &[AFTER_WAIT, ENDED_BY_PAUSE]);
}

#[test]
fn with_an_operator_who_unlocks_resets_and_marks_done() {
    let prompt = Setup { horizon: 5, ..Setup::small(Pace::Prompt, Faults { verbs: 1, ..NONE }) };
    holds("a verb", prompt, &[RETRY, EXHAUSTED]);
    let faults = |faults| Setup { faults, end: 3, horizon: 4, ..prompt };
    let one = Faults { verbs: 1, ..NONE };
    holds("two verbs", faults(Faults { verbs: 2, ..NONE }), &[RETRY, EXHAUSTED]);
    holds("a verb, a loss", faults(Faults { losses: 1, ..one }), &[RETRY, LOST_REPLY]);
    holds("a verb, a copy", faults(Faults { copies: 1, ..one }), &[RETRY]);
    holds("a verb, a crash", faults(Faults { crashes: 1, ..one }), &[RETRY]);
    holds("a verb, shutdowns", faults(Faults { shutdowns: 1, ..one }), &[RETRY, REFUND]);
    let wakes = Setup { retry: 1, wakes: true, ..faults(one) };
    holds("a verb, wake-ups", wakes, &[RETRY]);
    let lock = Setup { end: 3, horizon: 3, ..locked(Pace::Prompt, one, ONE) };
    holds("a lock, a verb", lock, &[AFTER_WAIT, IN_VAIN]);
}

#[test]
fn with_two_locks_and_a_crash() {
    let two = Locks { count: 2, ..ONE };
    let crash = locked(Pace::Prompt, Faults { crashes: 1, ..NONE }, two);
    holds("two locks, a crash", crash, &[AFTER_WAIT, IN_VAIN, ALL_HELD, TAKEOVER]);
}
