//! The node's clocks, with a wall clock that is put right by the store's when it is far off.
//!
//! The store judges slots by its own clock. A node that is an hour behind would ask for slots that are over, one that is
//! ahead for slots that have not begun: it would reach the store and yet do nothing (L1). What differs by less than a
//! person notices is left alone: the store refuses what is early, and the guard waits. Monotonic time is never touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::TimeDelta;

use crate::clock::{Clock, Now, correction_ms};

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

    /// The machine's wall clock was found to be `offset_ms` ahead of the store's, give or take `uncertain`. Answers
    /// whether the time shown has changed by it.
    pub(super) fn measured(&self, offset_ms: i64, uncertain: Duration) -> bool {
        let corrected = correction_ms(self.ahead_ms.load(Ordering::Relaxed), offset_ms, uncertain);
        if let Some(ahead_ms) = corrected {
            self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
        }
        corrected.is_some()
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

    const HOUR_MS: i64 = 3_600_000;
    const EXACT: Duration = Duration::from_millis(1);

    fn clock() -> Arc<StoreTime> {
        StoreTime::over(Arc::new(ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap())))
    }

    fn shows(clock: &StoreTime) -> String {
        clock.now().wall.format("%T").to_string()
    }

    #[test]
    fn a_clock_that_is_hours_off_is_put_right_and_one_that_is_nearly_right_is_left_alone() {
        let clock = clock();
        assert!(!clock.measured(1_900, EXACT));
        assert_eq!(shows(&clock), "15:00:00");
        assert!(clock.measured(HOUR_MS, EXACT));
        assert_eq!(shows(&clock), "14:00:00");
        assert!(clock.measured(-HOUR_MS, EXACT));
        assert_eq!(shows(&clock), "16:00:00");
        assert!(clock.measured(0, EXACT), "somebody has set the clock");
        assert_eq!(shows(&clock), "15:00:00");
    }

    #[test]
    fn the_correction_does_not_follow_every_flutter() {
        let clock = clock();
        assert!(clock.measured(HOUR_MS, EXACT));
        assert!(!clock.measured(HOUR_MS + 900, EXACT));
        assert!(clock.measured(HOUR_MS + 1_100, EXACT));
    }

    #[test]
    fn an_answer_that_took_long_proves_little() {
        let clock = clock();
        assert!(!clock.measured(3_000, Duration::from_secs(2)));
        assert!(clock.measured(5_000, Duration::from_secs(2)));
    }

    #[test]
    fn monotonic_time_is_never_touched() {
        let clock = clock();
        let before = clock.now().mono;
        clock.measured(HOUR_MS, EXACT);
        assert_eq!(clock.now().mono, before);
    }
}
