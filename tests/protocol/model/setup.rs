//! What a world is made of: its size, which faults may strike how often, and which bug it has, if any.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::{Mono, Now, later};
use cronward::job::{Backoff, NodeName, OnLost, Policy, RetryPolicy};
use cronward::machine::{Assignment, LockPort};
use cronward::slot::{Slot, Token, Trigger};

use super::rivals::Locks;

/// Attempts in all.
pub(crate) const MAX_ATTEMPTS: u32 = 2;
/// Any origin of the monotonic clock that is not its end.
const ORIGIN: Duration = Duration::from_secs(1_000);

/// A time: whole seconds since the world began, by every clock.
pub(crate) type Tick = u8;

/// How often each fault may strike in one history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Calls whose caller hears an error: the request was refused, comes late or never, or its reply is lost.
    pub(crate) losses: u8,
    /// Requests that arrive twice, the second time at any later moment.
    pub(crate) copies: u8,
    /// Nodes that die with their command.
    pub(crate) crashes: u8,
    /// Dead nodes that come back.
    pub(crate) restarts: u8,
    /// Nodes that are shut down, without time to drain.
    pub(crate) shutdowns: u8,
    /// The store forgets everything.
    pub(crate) wipes: u8,
    /// An operator pauses the job, and resumes it at some moment or never.
    pub(crate) pauses: u8,
    /// An operator unlocks the slot, resets it or marks it done.
    pub(crate) verbs: u8,
}

impl Hash for Faults {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let all = [
            self.verbs,
            self.pauses,
            self.losses,
            self.copies,
            self.crashes,
            self.restarts,
            self.shutdowns,
            self.wipes,
        ];
        hasher.write_u64(u64::from_be_bytes(all));
    }
}

/// Nothing strikes.
pub(crate) const NONE: Faults =
    Faults { losses: 0, copies: 0, crashes: 0, restarts: 0, shutdowns: 0, wipes: 0, pauses: 0, verbs: 0 };

/// How slow the world may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Anything takes any time: a node may stall, a message may be under way, for as long as the slot lasts and longer.
    Stalling,
    /// Messages take any time, but a node does what is due before anything else happens.
    Responsive,
    /// Time passes only when everything that is due has been done. Only commands take their time.
    Prompt,
}

/// A bug that a store or a driver could have. Each must break a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A claim with the token of the standing lease is granted anew.
    TokenIgnored,
    /// A claim does not ask whether the slot is held.
    HeldIgnored,
    /// A claim does not ask how many attempts there were.
    LimitIgnored,
    /// A claim does not ask whether the slot is over.
    EndIgnored,
    /// A slot that is over is closed before the token of a claim is looked for.
    ClosedFirst,
    /// A renewal does not ask whose lease stands there.
    RenewsAnybodys,
    /// A release deletes whatever stands there.
    PlainDelete,
    /// A release forgets the counter.
    CounterForgotten,
    /// An attempt is refunded as often as that is asked for.
    RefundsAgain,
    /// A completion replaces the done marker of another attempt.
    DoneOverwritten,
    /// A failed run is recorded as done.
    FailureIsDone,
    /// The driver takes an error for a grant.
    ErrorIsGrant,
    /// A node's clock stands still while it waits for the answer to a claim, as one that does not count suspend.
    ClockStops,
    /// A verdict is recorded again.
    ClosedAgain,
    /// Nobody records a verdict.
    NeverCloses,
    /// A node's waits never end.
    NeverLooksAgain,
    /// A claim that is too early is told to wait until long after the end.
    EarlyForLong,
    /// A driver takes the answer to an old renewal for that of the latest.
    AnswersMixedUp,
    /// A driver does not kill.
    KillIgnored,
    /// A driver takes the answer that an attempt waits for its locks for one that it holds them: under its lease alone.
    WaitIsHold,
    /// A driver takes an error for a grant of locks.
    ErrorIsHold,
    /// A driver renews no lease while its attempt waits, and says that it did: the start is under the locks alone.
    LeaseLeftAlone,
    /// A driver renews no locks, and says that it did.
    LocksLeftAlone,
    /// A node's clock stands still while it waits for the answer to a request for locks.
    LockClockStops,
    /// A driver fails the attempt that waited in vain, in place of giving it back.
    WaitCounts,
    /// A release of locks is answered, and removes nothing.
    LocksKept,
    /// A node's looks at its locks never come.
    NeverAsksAgain,
    /// A claim does not ask whether the job is paused.
    PauseIgnored,
    /// An unlock is answered, and takes nothing.
    UnlockIgnored,
    /// Success that is told again marks the slot done, whatever an operator did in between.
    DoneAgain,
    /// A driver takes each answer about a pause for one that there is none.
    PauseUnheard,
}

/// A world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) nodes: u8,
    /// TTL of a lease.
    pub(crate) ttl: Tick,
    /// The slot's end.
    pub(crate) end: Tick,
    /// When the world ends.
    pub(crate) horizon: Tick,
    /// The wait after a failure.
    pub(crate) retry: Tick,
    /// The slot's start; the nodes, whose clocks are fast, look at tick 0.
    pub(crate) begin: Tick,
    /// Whether the store's wake-ups arrive. They are hints: everything has to hold without them.
    pub(crate) wakes: bool,
    pub(crate) on_lost: OnLost,
    /// None: the job names no locks.
    pub(crate) locks: Option<Locks>,
    pub(crate) pace: Pace,
    pub(crate) faults: Faults,
    pub(crate) bug: Option<Bug>,
}

impl Setup {
    /// Two nodes, a lease of two ticks, a slot of four.
    pub(crate) const fn small(pace: Pace, faults: Faults) -> Self {
        Self {
            nodes: 2,
            ttl: 2,
            end: 4,
            horizon: 4,
            retry: 0,
            begin: 0,
            wakes: false,
            on_lost: OnLost::Continue,
            locks: None,
            pace,
            faults,
            bug: None,
        }
    }

    pub(crate) fn slot(&self) -> Slot {
        Slot::new("a".parse().unwrap(), store_time(self.begin), store_time(self.end)).unwrap()
    }

    /// A tick that never comes, and later than any that a property asks for.
    pub(crate) fn far(&self) -> Tick {
        if self.pace == Pace::Prompt { self.horizon.max(self.end) + 3 } else { self.horizon + 1 }
    }

    /// The tick at so many seconds of the monotonic clock.
    pub(crate) fn tick_after(seconds: u64) -> Tick {
        Tick::try_from(seconds.saturating_sub(ORIGIN.as_secs())).unwrap_or(Tick::MAX)
    }

    /// The clocks of a node.
    pub(crate) fn now(tick: Tick) -> Now {
        Now { mono: Mono::from_origin(ORIGIN + ticks(tick)), wall: store_time(tick) }
    }

    /// What a node that starts is handed. Each start has tokens of its own.
    pub(crate) fn assignment(&self, node: u8, start: u8) -> Assignment {
        Assignment {
            slot: self.slot(),
            policy: self.policy(),
            success_codes: vec![0],
            node: name(node),
            trigger: Trigger::Schedule,
            scheduled_at: store_time(self.begin),
            past: false,
            audit: None,
            poll: None,
            seed: seed(node, start),
            locks: self.locks.map(|_| LockPort { instance: seed(node, start), poll: None }),
        }
    }

    fn policy(&self) -> Policy {
        let delay = ticks(self.retry);
        Policy {
            lease_ttl: ticks(self.ttl),
            max_attempts: MAX_ATTEMPTS,
            retry: RetryPolicy { delay, backoff: Backoff::Fixed, max_delay: delay },
            timeout: None,
            kill_after: Duration::ZERO,
            on_lost: self.on_lost,
            locks: self.locks.map(Locks::demands),
            lock_wait: self.locks.and_then(|locks| locks.wait).map(ticks),
            ..Policy::default()
        }
    }
}

/// The first token of a node's start.
const fn seed(node: u8, start: u8) -> Token {
    Token::from_bits((node as u128 * 8 + start as u128 + 1) << 64)
}

pub(crate) fn name(node: u8) -> NodeName {
    NodeName::new(&format!("node-{node}")).unwrap()
}

pub(crate) fn ticks(count: Tick) -> Duration {
    Duration::from_secs(u64::from(count))
}

/// The store's clock.
pub(crate) fn store_time(tick: Tick) -> DateTime<Utc> {
    later("2026-11-21T14:00:00Z".parse().unwrap(), ticks(tick))
}

/// The first tick at or after an instant.
pub(crate) fn tick_of(instant: Mono) -> Tick {
    let since = instant.since(Mono::from_origin(ORIGIN));
    let whole = since.as_secs() + u64::from(since.subsec_nanos() > 0);
    Tick::try_from(whole).unwrap_or(Tick::MAX)
}

/// A short name of a token: which node, which start of it, which claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag {
    pub(crate) node: u8,
    pub(crate) start: u8,
    claim: u8,
}

impl Tag {
    /// Of somebody who claims nothing.
    pub(crate) const fn of(node: u8) -> Self {
        Self { node, start: 0, claim: 0 }
    }

    /// The whole tag as a number.
    pub(crate) const fn bits(self) -> u32 {
        u32::from_be_bytes([0, self.node, self.start, self.claim])
    }
}

impl From<Token> for Tag {
    fn from(token: Token) -> Self {
        let owner = (token.bits() >> 64) - 1;
        let small = |part: u128| u8::try_from(part).expect("a token of this world");
        Self { node: small(owner / 8), start: small(owner % 8), claim: small(token.bits() & 0xff) }
    }
}
