//! Names a store that answers slowly, before its calls run into their time limit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::{Clock, Mono};
use crate::error::Op;
use crate::store::layer::{Call, Layer, Reply};

/// Between two warnings at first; twice as long after each, up to the longest.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_600);

/// Warns of calls that take more than half of the time limit of an operation: at the first one, then at most once per interval,
/// which grows.
#[derive(Debug)]
pub struct SlowCalls {
    op_timeout: Duration,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Slow calls since the last warning.
    calls: u64,
    longest: Duration,
    interval: Duration,
    warned_at: Option<Mono>,
}

/// What a warning says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlowReport {
    calls: u64,
    longest: Duration,
}

impl SlowCalls {
    /// For a store whose operations have this time limit.
    pub fn watching(op_timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { op_timeout, clock, seen: Mutex::default() }
    }

    /// What a call that took so long is a reason to say.
    fn note(&self, now: Mono, took: Duration) -> Option<SlowReport> {
        if took.saturating_mul(2) <= self.op_timeout {
            return None;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls += 1;
        seen.longest = seen.longest.max(took);
        if seen.warned_at.is_some_and(|at| now.since(at) < seen.interval) {
            return None;
        }
        // A store that was well for long is new trouble.
        let is_over = seen.warned_at.is_none_or(|at| now.since(at) > LONGEST.saturating_mul(2));
        let interval = if is_over { SHORTEST } else { seen.interval.saturating_mul(2).min(LONGEST) };
        let report = SlowReport { calls: seen.calls, longest: seen.longest };
        *seen = Seen { interval, warned_at: Some(now), ..Seen::default() };
        Some(report)
    }
}

#[async_trait]
impl Layer for SlowCalls {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let sent = self.clock.now().mono;
        let reply = call().await;
        // A failure is logged by its caller, and a purge is many calls.
        if reply.is_ok() && op != Op::Purge {
            let now = self.clock.now().mono;
            if let Some(SlowReport { calls, longest }) = self.note(now, now.since(sent)) {
                let (slowest_ms, op_timeout_ms) = (millis(longest), millis(self.op_timeout));
                let fix = format!("[store] op_timeout = \"{}ms\"", slowest_ms.saturating_mul(5));
                tracing::warn!(
                    calls,
                    slowest_ms,
                    op_timeout_ms,
                    fix,
                    "the store is slow: calls take more than half of op_timeout; look at its load, or raise op_timeout"
                );
            }
        }
        reply
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_call_near_the_time_limit_is_reported_at_once_and_then_at_most_once_per_growing_interval() {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let slow = SlowCalls::watching(ms(500), Arc::new(clock.clone()));
        let begun = clock.now().mono;
        let noted = |second: u64, took| slow.note(begun + Duration::from_secs(second), took).map(|report| report.calls);
        assert_eq!(noted(0, ms(250)), None, "half of the time limit is left");
        assert_eq!(noted(0, ms(251)), Some(1));
        assert_eq!(noted(1, ms(400)), None);
        assert_eq!(noted(59, ms(300)), None);
        assert_eq!(noted(60, ms(300)), Some(3));
        assert_eq!(noted(179, ms(300)), None, "the second interval is twice as long");
        assert_eq!(noted(180, ms(300)), Some(2));
        assert_eq!(noted(180 + 2 * 3_600 + 1, ms(300)), Some(1));
        assert_eq!(noted(180 + 2 * 3_600 + 61, ms(300)), Some(1), "the first interval again");
    }

    #[test]
    fn the_longest_of_the_slow_calls_is_reported() {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let slow = SlowCalls::watching(ms(100), Arc::new(clock.clone()));
        let begun = clock.now().mono;
        assert!(slow.note(begun, ms(60)).is_some());
        assert_eq!(slow.note(begun + ms(1), ms(90)), None);
        let report = slow.note(begun + SHORTEST, ms(70)).unwrap();
        assert_eq!(report, SlowReport { calls: 2, longest: ms(90) });
    }
}
