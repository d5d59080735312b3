//! What every world runs on: its time, with the clocks of a node as they show it; its chance, drawn from one seed; and its queue of
//! events. Nothing here reads a real clock or draws from the system.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::clock::{Mono, Now};

/// Time since the world began. Only the world knows it; nodes see their clocks.
pub(super) type Time = Duration;

/// What a node's monotonic clock shows when the world begins: any boot time.
const BOOT: Duration = Duration::from_secs(5_000);

/// A node's two clocks, which may be fast, slow or wrong; the store's clock is the world's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeClock {
    /// How much faster than true time both run, in millionths.
    pub(super) drift: i64,
    /// How far the wall clock is ahead, in nanoseconds.
    pub(super) offset: i64,
}

impl NodeClock {
    fn shown(self, at: Time) -> Duration {
        let true_nanos = i128::try_from(at.as_nanos()).unwrap_or(0);
        let nanos = true_nanos + true_nanos * i128::from(self.drift) / 1_000_000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// Both clocks, `epoch` being the true time at which the world began.
    pub(super) fn now(self, epoch: DateTime<Utc>, at: Time) -> Now {
        let shown = self.shown(at);
        let wall = instant(epoch, shown) + TimeDelta::nanoseconds(self.offset);
        Now { mono: Mono::from_origin(BOOT + shown), wall }
    }

    /// The first moment at which the monotonic clock shows this instant or a later one.
    pub(super) fn when(self, mono: Mono) -> Time {
        let wanted = mono.since_origin().saturating_sub(BOOT);
        let nanos = i128::try_from(wanted.as_nanos()).unwrap_or(0);
        let mut guess =
            Duration::from_nanos(u64::try_from(nanos * 1_000_000 / (1_000_000 + i128::from(self.drift))).unwrap_or(0));
        while self.shown(guess) < wanted {
            guess += Duration::from_nanos(1);
        }
        guess
    }

    /// The first moment at which the wall clock shows this instant or a later one, if it is not stepped.
    pub(super) fn when_wall(self, epoch: DateTime<Utc>, wall: DateTime<Utc>) -> Time {
        let ahead = wall - TimeDelta::nanoseconds(self.offset) - epoch;
        self.when(Mono::from_origin(BOOT + ahead.to_std().unwrap_or_default()))
    }
}

/// The true instant of a world's time.
pub(super) fn instant(epoch: DateTime<Utc>, at: Time) -> DateTime<Utc> {
    cronward::clock::later(epoch, at)
}

/// A stream of draws: SplitMix64 (Steele, Lea, Flood 2014). Each aspect of a world has its own, so that leaving one aspect out (as
/// shrinking does) leaves the draws of the others as they were.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The stream of this seed and aspect.
    pub(super) const fn new(seed: u64, aspect: u64) -> Self {
        let mut dice = Self(seed ^ aspect.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        // Seeds that differ in one bit must not begin alike.
        let _ = dice.bits();
        dice.0 ^= seed.rotate_left(17);
        dice
    }

    /// 64 bits.
    pub(super) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }

    /// True this often in a million.
    pub(super) fn chance(&mut self, in_a_million: u64) -> bool {
        in_a_million > 0 && self.below(1_000_000) < in_a_million
    }

    /// A span in `[from, to)`.
    pub(super) fn span(&mut self, from: Duration, to: Duration) -> Duration {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        from + Duration::from_nanos(self.below(nanos(to.saturating_sub(from))))
    }

    /// One of these; `otherwise` when there is none.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T], otherwise: T) -> T {
        let index = self.below(u64::try_from(of.len()).unwrap_or(0));
        usize::try_from(index).ok().and_then(|index| of.get(index)).copied().unwrap_or(otherwise)
    }
}

/// A priority queue of events, in order of time; what happens at one moment comes in the order in which it was put in.
#[derive(Debug)]
pub(super) struct Queue<E> {
    heap: BinaryHeap<Reverse<QueuedEvent<E>>>,
    count: u64,
}

#[derive(Debug)]
struct QueuedEvent<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Queue<E> {
    pub(super) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), count: 0 }
    }

    pub(super) fn push(&mut self, at: Time, event: E) {
        self.count += 1;
        self.heap.push(Reverse(QueuedEvent { at, number: self.count, event }));
    }

    pub(super) fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for QueuedEvent<E> {}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for QueuedEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_at_the_first_moment_at_which_the_clock_shows_it() {
        let epoch: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
        for drift in [-10_000, -1, 0, 1, 200, 10_000] {
            let clock = NodeClock { drift, offset: -5_000_000_000 };
            for at in [0, 1, 999, 1_234_567_891, 3_600_000_000_007].map(Duration::from_nanos) {
                let now = clock.now(epoch, at);
                let when = clock.when(now.mono);
                let rounded = Duration::from_nanos(1);
                assert!(when <= at + rounded && clock.now(epoch, when).mono >= now.mono, "{drift} {at:?}");
                let when = clock.when_wall(epoch, now.wall);
                assert!(clock.now(epoch, when).wall >= now.wall || at < Duration::from_secs(5), "{drift} {at:?}");
            }
        }
    }

    #[test]
    fn one_seed_draws_the_same_and_another_aspect_draws_otherwise() {
        let draws = |seed, aspect| {
            let mut dice = Dice::new(seed, aspect);
            [(); 8].map(|()| dice.bits())
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }

    #[test]
    fn a_chance_is_about_what_it_says() {
        let mut dice = Dice::new(1, 1);
        let hits = (0..10_000).filter(|_| dice.chance(250_000)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| !dice.chance(0)));
    }
}
