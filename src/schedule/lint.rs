//! Questions that the check of a file asks about a timetable. Each looks at a bounded number of ticks.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::between;
use crate::schedule::Timetable;

/// Ticks looked at: more than a year of a daily job.
const SAMPLE: usize = 400;

impl Timetable {
    /// Whether some slot has more than one tick, among the next 400 ticks: those after the first are only retries.
    pub fn ticks_per_slot_more_than_one(&self, from: DateTime<Utc>) -> bool {
        let mut ticks = self.schedule().ticks_after(from).take(SAMPLE);
        let Some(mut slot) = ticks.next().and_then(|tick| self.slot_of(tick)) else { return false };
        ticks.any(|tick| {
            if tick < slot.end() {
                return true;
            }
            if let Some(next) = self.slot_of(tick) {
                slot = next;
            }
            false
        })
    }

    /// Whether any tick, and so any slot, comes after an instant. A time that lies in the gap each time (00:30 on the day
    /// the clock goes forward at midnight, as an interval) never comes although dates fit.
    pub fn ticks_in_some_slot(&self, from: DateTime<Utc>) -> bool {
        self.schedule().next_after(from).is_some()
    }

    /// The longest slot among those of the next `ticks` ticks (at most 400), for a done marker that must outlive it.
    pub fn longest_slot(&self, from: DateTime<Utc>, ticks: usize) -> Option<Duration> {
        let slots = self.schedule().ticks_after(from).take(ticks.min(SAMPLE)).filter_map(|tick| self.slot_of(tick));
        slots.map(|slot| between(slot.start(), slot.end())).max()
    }
}
