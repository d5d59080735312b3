//! The world's time, and the clocks of a node as they show it. The store's clock is the world's own; a node's may be fast,
//! slow or wrong. Nothing here reads a real clock.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::{Mono, Now};

/// Time since the world began. Only the world knows it; nodes see their clocks.
pub(super) type Time = Duration;

/// What a node's monotonic clock shows when the world begins: any boot time.
const BOOT: Duration = Duration::from_secs(5_000);

/// A node's two clocks.
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
    crate::clock::later(epoch, at)
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
}
