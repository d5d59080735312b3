//! What the changes of the clock do to a job's ticks, for `next` and `check`. Tells; never changes anything.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::zone::{changes, wall_clock};
use crate::schedule::Timetable;

/// The longest span that is looked at, from its start.
const FURTHEST: TimeDelta = TimeDelta::days(10 * 366);

/// What a change of the clock does to ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DstEffect {
    /// The clock goes forward over times of a fixed expression: they become one tick, right after the gap.
    Moved,
    /// The clock goes forward over times of an interval expression: they have no tick.
    Swallowed,
    /// The clock goes back over times of an interval expression: they tick a second time.
    Doubled,
}

/// A change of the clock that a job notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DstNote {
    /// When the clock changes; for `Moved`, the tick.
    pub at: DateTime<Utc>,
    /// What it does.
    pub effect: DstEffect,
    /// The first wall-clock time of the expression that it does this to.
    pub wall: NaiveDateTime,
    /// What the clock shows right after the change.
    pub shown: NaiveDateTime,
}

impl fmt::Display for DstNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, shown) = (self.wall.format("%Y-%m-%d %H:%M:%S"), self.shown.format("%H:%M:%S"));
        match self.effect {
            DstEffect::Moved => write!(f, "{wall} does not exist (the clock goes forward): ticks at {shown} instead"),
            DstEffect::Swallowed => write!(f, "{wall} does not exist (the clock goes forward): no tick"),
            DstEffect::Doubled => write!(f, "{wall} comes twice (the clock goes back to {shown}): ticks twice"),
        }
    }
}

/// The changes of a zone's clock in `(from, to]`, in order; at most ten years are looked at.
pub fn clock_changes(zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let from = from.max(DateTime::UNIX_EPOCH);
    let to = from.checked_add_signed(FURTHEST).map_or(from, |furthest| to.min(furthest));
    changes(zone, from, to).collect()
}

impl Timetable {
    /// The changes of the clock in `(from, to]` that move, swallow or double ticks, in order; at most ten years are looked
    /// at. An expression that ticks at the same times of every hour does not notice a change by whole hours, and a fixed
    /// time that comes twice ticks once, as if there were no change: neither is told.
    pub fn dst_notes(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DstNote> {
        self.dst_notes_at(&clock_changes(self.schedule().zone(), from, to))
    }

    /// The same for changes of the zone's clock that are known: who has many jobs in one zone looks for them once.
    pub fn dst_notes_at(&self, changes: &[DateTime<Utc>]) -> Vec<DstNote> {
        changes.iter().filter_map(|change| self.note(*change)).collect()
    }

    fn note(&self, change: DateTime<Utc>) -> Option<DstNote> {
        let search = self.schedule().search();
        let moved = search.moved_by(change);
        let shown = wall_clock(search.zone, change);
        let untouched = shown - TimeDelta::seconds(moved);
        let effect = match (moved > 0, search.fixed) {
            (true, true) => DstEffect::Moved,
            (true, false) => DstEffect::Swallowed,
            (false, false) => DstEffect::Doubled,
            (false, true) => return None,
        };
        if !search.fixed && search.shifts_into_itself(moved) {
            return None;
        }
        // Wall-clock times between these two are jumped over, or come twice.
        let (first, end) = (untouched.min(shown), untouched.max(shown));
        let wall = search.wall_after(first - TimeDelta::seconds(1)).filter(|wall| *wall < end)?;
        Some(DstNote { at: change, effect, wall, shown })
    }
}
