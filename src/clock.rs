//! The two clocks of a node, read together as [`Now`]. This is the one file that reads a clock.
//!
//! - [`Mono`] counts seconds since boot *including suspend* (`CLOCK_BOOTTIME`): leases are trusted by it, because a
//!   store's TTL goes on counting while a laptop or a virtual machine sleeps and `std::time::Instant` does not.
//! - `wall` is UTC (`CLOCK_REALTIME`): ticks come from it. It may jump; nothing about a lease is decided by it.
//!
//! Everything else takes a [`Now`] or a [`Clock`] as a parameter, so that tests and the simulator own time.

use std::ops::{Add, AddAssign};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// An instant of the monotonic clock that counts suspend. Only differences have a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(Duration);

impl Mono {
    /// The instant `since_boot` after the clock's origin.
    pub const fn from_origin(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// Time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The instant so many nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// Nanoseconds since the clock's origin, held at 584 years.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `span` before this one; the origin when that would lie before it.
    pub const fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

impl Add<Duration> for Mono {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl AddAssign<Duration> for Mono {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

/// Both clocks, read at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For deadlines, leases and waits.
    pub mono: Mono,
    /// For ticks, records and people.
    pub wall: DateTime<Utc>,
}

impl Now {
    /// Both clocks `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self { mono: self.mono + span, wall: later(self.wall, span) }
    }
}

/// `instant + span`, held at the end of the calendar instead of overflowing.
pub fn later(instant: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span)
        .ok()
        .and_then(|delta| instant.checked_add_signed(delta))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// `instant - span`, held at the start of the calendar instead of overflowing.
pub fn earlier(instant: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span)
        .ok()
        .and_then(|delta| instant.checked_sub_signed(delta))
        .unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// Time from `from` to `to`; zero when `to` is not after `from`.
pub fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    to.signed_duration_since(from).to_std().unwrap_or(Duration::ZERO)
}

/// Beats come every second; this much without one, or this much between the two clocks' idea of it, and time has jumped.
const JUMP: Duration = Duration::from_secs(3);

/// Whether time has jumped from one beat to the next: the machine stood still, or its wall clock was set.
pub fn jumped(last: Now, now: Now) -> bool {
    let (passed, shown) = (now.mono.since(last.mono), between(last.wall, now.wall));
    passed > JUMP || shown > passed + JUMP || later(now.wall, JUMP) < last.wall
}

/// A difference between a node's wall clock and the store's that is told and put right: a start this early or late is seen
/// by people.
pub const CLOCK_OFF: Duration = Duration::from_secs(2);

/// A correction that is in force follows the store's clock in steps of this.
const STEP: Duration = Duration::from_secs(1);

/// The node's clock minus the store's, in milliseconds: the store read its clock about half-way between sending and
/// receiving.
pub fn offset_ms(sent: Now, received: Now, store_now: DateTime<Utc>) -> i64 {
    let halfway = sent.wall + (received.wall - sent.wall) / 2;
    (halfway - store_now).num_milliseconds()
}

/// What a wall clock is to be set back by, in milliseconds, that was found to be `offset_ms` ahead of the store's, give or
/// take `uncertain`; none when what is in force (`before_ms`) may stay. The correction does not follow every flutter.
pub fn correction_ms(before_ms: i64, offset_ms: i64, uncertain: Duration) -> Option<i64> {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let least = CLOCK_OFF.saturating_add(uncertain);
    let wanted = if offset_ms.unsigned_abs() > millis(least) { offset_ms } else { 0 };
    (wanted.abs_diff(before_ms) > millis(STEP.saturating_add(uncertain))).then_some(wanted)
}

/// What a monotonic clock may run wrong by: one part in so many.
const DRIFT: u32 = 100;

/// The earliest instant of the wall at which the monotonic clock can have shown `since`, seen from a wall clock that was just
/// put right, give or take `uncertain`.
pub fn no_earlier_than(since: Mono, now: Now, uncertain: Duration) -> DateTime<Utc> {
    let passed = now.mono.since(since);
    // Offsets are whole milliseconds.
    earlier(now.wall, passed.saturating_add(passed / DRIFT).saturating_add(uncertain + Duration::from_millis(1)))
}

/// Where a node reads its time.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// Both clocks now.
    fn now(&self) -> Now;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one file that reads the clock")]
    fn now(&self) -> Now {
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(boot.tv_nsec).unwrap_or(0);
        Now { mono: Mono(Duration::new(seconds, nanos)), wall: Utc::now() }
    }
}

/// A clock that stands still until it is told to move; for tests, examples and the simulator.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Now>>);

impl ManualClock {
    /// A clock standing at `wall`, with an arbitrary monotonic origin.
    pub fn at(wall: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(Now { mono: Mono::from_origin(Duration::from_secs(1_000)), wall })))
    }

    /// Moves both clocks forward.
    pub fn advance(&self, span: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.plus(span);
    }

    /// Steps the wall clock alone, as an administrator or NTP would.
    pub fn step_wall(&self, wall: DateTime<Utc>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wall = wall;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of a runtime that is paused: it stands still while anything can be done.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct RuntimeClock {
    begin: Now,
    begun: tokio::time::Instant,
}

#[cfg(test)]
impl RuntimeClock {
    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    pub(crate) fn at(wall: DateTime<Utc>) -> Self {
        Self { begin: Now { mono: Mono::default(), wall }, begun: tokio::time::Instant::now() }
    }
}

#[cfg(test)]
impl Clock for RuntimeClock {
    #[allow(clippy::disallowed_methods, reason = "time is virtual")]
    fn now(&self) -> Now {
        self.begin.plus(tokio::time::Instant::now().duration_since(self.begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_instants_is_never_negative() {
        let a = Mono::from_origin(Duration::from_secs(1));
        let b = Mono::from_origin(Duration::from_secs(3));
        assert_eq!(b.since(a), Duration::from_secs(2));
        assert_eq!(a.since(b), Duration::ZERO);
    }

    /// What is in force after a clock was found to be so far ahead.
    fn corrected(before_ms: i64, offset_ms: i64, uncertain_ms: u64) -> i64 {
        correction_ms(before_ms, offset_ms, Duration::from_millis(uncertain_ms)).unwrap_or(before_ms)
    }

    #[test]
    fn a_clock_that_is_hours_off_is_put_right_and_one_that_is_nearly_right_is_left_alone() {
        assert_eq!(corrected(0, 1_900, 1), 0);
        assert_eq!(corrected(0, 3_600_000, 1), 3_600_000);
        assert_eq!(corrected(3_600_000, -3_600_000, 1), -3_600_000);
        assert_eq!(corrected(-3_600_000, 0, 1), 0, "somebody has set the clock");
    }

    #[test]
    fn a_correction_does_not_follow_every_flutter() {
        assert_eq!(corrected(3_600_000, 3_600_900, 1), 3_600_000);
        assert_eq!(corrected(3_600_000, 3_601_100, 1), 3_601_100);
    }

    #[test]
    fn an_answer_that_took_long_proves_little_of_a_clock() {
        assert_eq!(corrected(0, 3_000, 2_000), 0);
        assert_eq!(corrected(0, 5_000, 2_000), 5_000);
    }

    #[test]
    fn arithmetic_at_the_ends_of_the_calendar_saturates() {
        let centuries = Duration::from_secs(u64::MAX);
        assert_eq!(later(DateTime::<Utc>::MAX_UTC, centuries), DateTime::<Utc>::MAX_UTC);
        assert_eq!(earlier(DateTime::<Utc>::MIN_UTC, centuries), DateTime::<Utc>::MIN_UTC);
    }

    #[test]
    fn an_instant_of_before_a_correction_is_told_no_later_than_it_was() {
        let began: DateTime<Utc> = "2026-11-21T14:59:59.920Z".parse().unwrap();
        let mono = |ms| Mono::from_origin(Duration::from_millis(5_000_000 + ms));
        // Asked 20 ms after the beginning; the store read its clock at once before its answer left, at 334 ms.
        let (sent, received, store) = (20, 350, later(began, Duration::from_millis(334)));
        for (behind_ms, fast_percent) in [(3_000, 0), (3_000, 1), (-3_000, 0), (-3_000, -1)] {
            let at = |ms: u64| {
                let shown = ms * u64::try_from(100 + fast_percent).unwrap() / 100;
                let wall = later(began, Duration::from_millis(shown)) - TimeDelta::milliseconds(behind_ms);
                Now { mono: mono(shown), wall }
            };
            let (sent, received) = (at(sent), at(received));
            let offset = offset_ms(sent, received, store);
            let right = Now { wall: received.wall - TimeDelta::milliseconds(offset), ..received };
            let found = no_earlier_than(mono(0), right, received.mono.since(sent.mono) / 2);
            assert!(found <= began, "{found} is later than {began}");
            assert!(began - found < TimeDelta::milliseconds(400), "{found} is long before {began}");
        }
    }

    #[test]
    fn the_system_clock_does_not_go_back() {
        let first = SystemClock.now();
        let second = SystemClock.now();
        assert!(second.mono >= first.mono);
    }
}
