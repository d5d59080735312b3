//! Many measurements of one thing.

use std::time::Duration;

use crate::table::span;

/// Sorted measurements.
#[derive(Debug)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    /// Of at least one measurement.
    pub(crate) fn of(spans: impl IntoIterator<Item = Duration>) -> Self {
        let mut spans: Vec<Duration> = spans.into_iter().collect();
        assert!(!spans.is_empty(), "nothing was measured");
        spans.sort_unstable();
        Self(spans)
    }

    /// The smallest value that so many of a hundred do not exceed (nearest rank).
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    /// How many, and where the rest lies.
    pub(crate) fn words(&self) -> String {
        format!("p50 {}, max {}, n = {}", span(self.median()), span(self.percentile(100)), self.0.len())
    }
}

/// The middle one of some numbers.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
