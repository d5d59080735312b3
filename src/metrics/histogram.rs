//! Counts by size, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many bounds a histogram has.
const BOUNDS: usize = 10;

/// The bounds of a histogram: each in microseconds, and as it is written.
pub(super) type Bounds = [(u64, &'static str); BOUNDS];

/// Of runs.
pub(super) const OF_RUNS: Bounds = [
    (1_000_000, "1"),
    (5_000_000, "5"),
    (15_000_000, "15"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (120_000_000, "120"),
    (300_000_000, "300"),
    (600_000_000, "600"),
    (1_800_000_000, "1800"),
    (3_600_000_000, "3600"),
];

/// Of the delay from a tick to a start.
pub(super) const OF_STARTS: Bounds = [
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (5_000_000, "5"),
    (15_000_000, "15"),
    (60_000_000, "60"),
];

/// Of calls of the store.
pub(super) const OF_CALLS: Bounds = [
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
];

/// How many spans were how long.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Up to each bound, and above the bound before.
    counts: [AtomicU64; BOUNDS],
    beyond: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    /// Counts one. The bounds of a histogram are always the same ones.
    pub(super) fn add(&self, bounds: &Bounds, span: Duration) {
        let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let at_most = bounds.iter().zip(&self.counts).find(|((bound, _), _)| span <= *bound);
        at_most.map_or(&self.beyond, |(_, count)| count).fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(span, Ordering::Relaxed);
    }

    /// Of each bound how many were at most that long, and then how many there were.
    pub(super) fn cumulated(&self) -> ([u64; BOUNDS], u64) {
        let mut sum = 0;
        let cumulated = self.counts.each_ref().map(|count| {
            sum += count.load(Ordering::Relaxed);
            sum
        });
        (cumulated, sum + self.beyond.load(Ordering::Relaxed))
    }

    /// All of them together.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_is_counted_at_its_bound_and_above() {
        let histogram = Histogram::default();
        for millis in [0, 1_000, 1_001, 15_000, 3_600_000, 3_600_001] {
            histogram.add(&OF_RUNS, Duration::from_millis(millis));
        }
        assert_eq!(histogram.cumulated(), ([2, 3, 4, 4, 4, 4, 4, 4, 4, 5], 6));
        assert_eq!(histogram.sum(), Duration::from_millis(7_217_002));
    }

    #[test]
    fn bounds_rise_and_are_written_as_they_are() {
        for bounds in [OF_RUNS, OF_STARTS, OF_CALLS] {
            assert!(bounds.is_sorted_by(|a, b| a.0 < b.0));
            for (micros, written) in bounds {
                assert_eq!((written.parse::<f64>().unwrap() * 1e6).round(), micros as f64);
            }
        }
    }
}
