//! Negative controls: a store or a driver with a bug, and the laws that it must break. A law that no bug breaks would say
//! nothing, so each has one here.

use std::collections::BTreeSet;

use cronward::job::OnLost;

use super::check::breaks;
use super::properties::{
    ANSWERS, CLOSED, COSTS, DONE, ERRORS, HEARD, HEEDED, KILLED, KNOWN, LEFT, LOCKED, LOOKED_AT, LOOKS_AGAIN, MAXIMUM,
    ONE_LEASE, PAUSED, REOPENED, RISE, SAME_TOKEN, STALE, STARTS, SUCCESS, TOLD, UNDER_LOCKS, UNLOCKED, VERDICT,
    WITHIN, every,
};
use super::rivals::{ONE, RIVAL};
use super::setup::{Bug, Faults, NONE, Pace, Setup};

const LOSS: Faults = Faults { losses: 1, ..NONE };
const REFUNDS: Faults = Faults { shutdowns: 1, losses: 1, ..NONE };
const CRASH: Faults = Faults { crashes: 1, ..NONE };
const PAUSE: Faults = Faults { pauses: 1, ..NONE };
const VERB: Faults = Faults { verbs: 1, ..NONE };
const PROMPT: Setup = Setup::small(Pace::Prompt, NONE);
const STALLING: Setup = Setup::small(Pace::Stalling, NONE);
const LOCKED_UP: Setup = Setup { locks: Some(ONE), ..PROMPT };
const KILL: Setup = Setup { on_lost: OnLost::Kill, ..Setup::small(Pace::Responsive, NONE) };

/// Each bug, a world in which it shows, and what it breaks there.
const CONTROLS: &[(Bug, Setup, &[&str])] = &[
    (Bug::TokenIgnored, Setup { faults: LOSS, ..PROMPT }, &[SAME_TOKEN]),
    (Bug::HeldIgnored, PROMPT, &[ONE_LEASE, TOLD]),
    (Bug::LimitIgnored, PROMPT, &[MAXIMUM]),
    (Bug::EndIgnored, PROMPT, &[WITHIN]),
    (Bug::ClosedFirst, Setup { end: 1, ttl: 4, horizon: 4, faults: LOSS, ..PROMPT }, &[KNOWN]),
    (Bug::RenewsAnybodys, STALLING, &[STALE, ONE_LEASE]),
    (Bug::PlainDelete, STALLING, &[STALE]),
    (Bug::CounterForgotten, PROMPT, &[RISE, MAXIMUM]),
    (Bug::RefundsAgain, Setup { faults: REFUNDS, ..PROMPT }, &[STALE, MAXIMUM]),
    (Bug::DoneOverwritten, STALLING, &[DONE]),
    (Bug::FailureIsDone, PROMPT, &[SUCCESS]),
    (Bug::ErrorIsGrant, Setup { faults: LOSS, ..PROMPT }, &[ERRORS, TOLD]),
    (Bug::ClockStops, STALLING, &[STARTS]),
    (Bug::ClosedAgain, PROMPT, &[VERDICT]),
    (Bug::NeverCloses, Setup { horizon: 5, ..PROMPT }, &[CLOSED]),
    (Bug::NeverLooksAgain, Setup { faults: CRASH, ..PROMPT }, &[LOOKED_AT]),
    (Bug::EarlyForLong, Setup { begin: 1, end: 5, horizon: 6, ..PROMPT }, &[LOOKS_AGAIN, LOOKED_AT]),
    (Bug::AnswersMixedUp, STALLING, &[ANSWERS]),
    (Bug::KillIgnored, KILL, &[KILLED]),
    (Bug::WaitIsHold, LOCKED_UP, &[LOCKED]),
    (Bug::ErrorIsHold, Setup { faults: LOSS, ..LOCKED_UP }, &[LOCKED]),
    (Bug::LeaseLeftAlone, LOCKED_UP, &[STARTS]),
    (Bug::LocksLeftAlone, Setup { locks: Some(RIVAL), ..PROMPT }, &[UNDER_LOCKS, TOLD]),
    (Bug::LockClockStops, Setup { nodes: 1, ttl: 1, pace: Pace::Stalling, ..LOCKED_UP }, &[LOCKED]),
    (Bug::WaitCounts, LOCKED_UP, &[COSTS]),
    (Bug::LocksKept, LOCKED_UP, &[LEFT]),
    (Bug::NeverAsksAgain, Setup { end: 5, horizon: 5, ..LOCKED_UP }, &[LOOKED_AT]),
    (Bug::UnlockIgnored, Setup { faults: VERB, ..STALLING }, &[UNLOCKED]),
    (Bug::DoneAgain, Setup { faults: Faults { copies: 1, ..VERB }, ..PROMPT }, &[REOPENED]),
    (Bug::PauseIgnored, Setup { faults: PAUSE, ..PROMPT }, &[PAUSED]),
    (Bug::PauseUnheard, Setup { faults: PAUSE, ..LOCKED_UP }, &[HEARD, HEEDED]),
];

#[test]
fn each_bug_breaks_what_it_should() {
    for (bug, setup, expected) in CONTROLS {
        breaks(*bug, *setup, expected);
    }
}

#[test]
fn each_law_is_broken_by_some_bug() {
    let broken: BTreeSet<&str> = CONTROLS.iter().flat_map(|(_, _, expected)| expected.iter().copied()).collect();
    assert_eq!(broken, every().collect());
}
