//! The node's clocks, with a wall clock that is put right by the store's when it is far off.
//!
//! The store judges slots by its own clock. A node that is an hour behind would ask for slots that are over, one that is
//! ahead for slots that have not begun: it would reach the store and yet do nothing (L1). What differs by less than a
//! person notices is left alone: the store refuses what is early, and the guard waits. Monotonic time is never touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::TimeDelta;

use crate::clock::{Clock, Now};

/// The clocks.
#[derive(Debug)]
pub(super) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// What the wall clock is ahead of the store's; 0 while it is left alone.
    ahead_ms: AtomicI64,
}

impl StoreTime {
    pub(super) fn over(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, ahead_ms: AtomicI64::new(0) })
    }

    /// The machine's own clocks, by which the difference is measured.
    pub(super) fn uncorrected(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The machine's wall clock is so many milliseconds ahead of the store's.
    pub(super) fn correct(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }
}

impl Clock for StoreTime {
    fn now(&self) -> Now {
        let now = self.clock.now();
        let ahead = TimeDelta::milliseconds(self.ahead_ms.load(Ordering::Relaxed));
        Now { wall: now.wall.checked_sub_signed(ahead).unwrap_or(now.wall), ..now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_clock_that_is_put_right_shows_the_stores_time_and_its_monotonic_clock_is_never_touched() {
        let clock = StoreTime::over(Arc::new(ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap())));
        let (shows, before) = (|| clock.now().wall.format("%T").to_string(), clock.now().mono);
        clock.correct(3_600_000);
        assert_eq!(shows(), "14:00:00");
        clock.correct(-3_600_000);
        assert_eq!(shows(), "16:00:00");
        clock.correct(0);
        assert_eq!(shows(), "15:00:00");
        assert_eq!(clock.now().mono, before);
    }
}
