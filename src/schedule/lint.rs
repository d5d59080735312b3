//! Questions that the check of a file asks about a timetable. Each looks at the expression, or at a bounded number of ticks.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::between;
use crate::schedule::Timetable;
use crate::slot::Period;

/// Ticks looked at: more than a year of a daily job.
const SAMPLE: usize = 400;

impl Timetable {
    /// Whether some slot has more than one tick: those after the first are only retries. Changes of the clock, which can bring
    /// two ticks together once a year, do not count.
    pub fn ticks_per_slot_more_than_one(&self) -> bool {
        let pattern = &self.schedule().compiled().pattern;
        let in_minute = pattern.seconds.len();
        let in_hour = in_minute * pattern.minutes.len();
        match self.period() {
            Period::Tick => false,
            Period::Minute => in_minute > 1,
            Period::Hour => in_hour > 1,
            Period::Day => in_hour * pattern.hours.len() > 1,
            Period::Fixed(length) => self.shortest_gap() < length,
        }
    }

    /// The shortest slot, but for changes of the clock: of `tick` the shortest time between two ticks, at most a day. It does
    /// not depend on the date, so that all nodes say the same.
    pub fn shortest_slot(&self) -> Duration {
        match self.period() {
            Period::Minute => Duration::from_secs(60),
            Period::Hour => Duration::from_secs(3_600),
            Period::Day => Duration::from_secs(86_400),
            Period::Tick => self.shortest_gap(),
            Period::Fixed(length) => length,
        }
    }

    fn shortest_gap(&self) -> Duration {
        Duration::from_secs(self.schedule().compiled().pattern.shortest_gap().into())
    }

    /// Whether any tick, and so any slot, comes after an instant. A time that lies in the gap each time (00:30 on the day
    /// the clock goes forward at midnight, as an interval) never comes although dates fit.
    pub fn ticks_in_some_slot(&self, from: DateTime<Utc>) -> bool {
        self.schedule().next_after(from).is_some()
    }

    /// The longest slot among those of the next `ticks` ticks (at most 400), for a done marker that must outlive it.
    pub fn longest_slot(&self, from: DateTime<Utc>, ticks: usize) -> Option<Duration> {
        let (next, ticks) = (self.schedule().ticks_after(from), ticks.min(SAMPLE));
        if self.period() == Period::Tick {
            let next: Vec<_> = next.take(ticks + 1).collect();
            return next.iter().zip(next.iter().skip(1)).map(|(tick, next)| between(*tick, *next)).max();
        }
        let slots = next.take(ticks).filter_map(|tick| self.slot_of(tick));
        slots.map(|slot| between(slot.start(), slot.end())).max()
    }
}
