//! Every history of a small cluster: two or three nodes, one slot, two attempts, and each order in which messages arrive,
//! are lost, are repeated and come late, nodes stall, die, come back and are shut down, leases lapse and the store forgets.
//! Each state that can be reached is visited, and the invariants of `docs/PROTOCOL.md` are asked of it.
//!
//! What runs is the real code: `machine::SlotMachine` on each node and `store::memory::Ledger` as the store. Their steps are
//! remembered, so that a state of the model is a few numbers (`memo`). What is modelled is the world around them: time in
//! whole ticks (`setup`), the network, the commands and the faults (`world`, `turn`). `judge` and `properties` say what must
//! hold, `controls` shows that each of it can be broken.
//!
//! **What is left out**: pauses and operators' verbs, older slots, `on_store_error = "run"`, timeouts of commands, clocks
//! that drift apart, a store that forgets a part. A command starts in the moment of its grant.
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
mod setup;
mod store;
mod turn;
mod world;

use cronward::job::OnLost;

use self::check::holds;
use self::properties::{EARLY, EXHAUSTED, LOST_REPLY, OVERLAP, REFUND, RESTORED, RETRY, TAKEOVER};
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
