//! Between UTC and the wall clock of a time zone: what a wall-clock time means on the day the clock changes, and where the
//! hours, minutes and days of a zone begin and end. Never looks at a cron expression.
//!
//! `chrono-tz` tells the offset at an instant but has no list of changes; a change is found by bisection between two
//! instants whose offsets differ.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};

/// What a wall-clock time is on the UTC time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wall {
    /// It happens once.
    Once(DateTime<Utc>),
    /// The clock goes back over it: it happens twice.
    Twice {
        /// Before the clock goes back.
        first: DateTime<Utc>,
        /// After it.
        second: DateTime<Utc>,
    },
    /// The clock goes forward over it: it never happens.
    Never {
        /// The first instant after the gap.
        resumes: DateTime<Utc>,
    },
}

impl Wall {
    /// When the clock first shows this time, or first shows a later one.
    pub(super) const fn earliest(self) -> DateTime<Utc> {
        match self {
            Self::Once(instant) | Self::Twice { first: instant, .. } | Self::Never { resumes: instant } => instant,
        }
    }
}

/// Seconds that the zone's clock is ahead of UTC at an instant.
pub(super) fn offset(zone: Tz, instant: DateTime<Utc>) -> i64 {
    i64::from(zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc())
}

/// What the zone's clock shows at an instant.
pub(super) fn wall_clock(zone: Tz, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.naive_utc() + TimeDelta::seconds(offset(zone, instant))
}

/// When the zone's clock shows a time. None only where the zone's table ends inside a gap.
pub(super) fn resolve(zone: Tz, wall: NaiveDateTime) -> Option<Wall> {
    use chrono::LocalResult::{Ambiguous, None as Missing, Single};
    Some(match zone.from_local_datetime(&wall) {
        Single(instant) => Wall::Once(instant.to_utc()),
        Ambiguous(first, second) => Wall::Twice { first: first.to_utc(), second: second.to_utc() },
        Missing => Wall::Never { resumes: GapInfo::new(&wall, &zone)?.end?.to_utc() },
    })
}

/// The first instant after `from` and up to `to` whose offset differs from that at `from`; none when both ends agree.
/// The span is to hold at most one change.
pub(super) fn change_between(zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let before = offset(zone, from);
    if offset(zone, to) == before {
        return None;
    }
    let (mut same, mut other) = (from.timestamp(), to.timestamp());
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        let agrees = DateTime::from_timestamp(middle, 0).is_some_and(|at| offset(zone, at) == before);
        *if agrees { &mut same } else { &mut other } = middle;
    }
    DateTime::from_timestamp(other, 0)
}

/// The calendar hour or minute (`length` in seconds) that holds an instant: the local time floored with the offset in
/// force, and `length` long.
///
/// Where the offset changes by no whole multiple of the length (Lord Howe, by 30 minutes), the hours before and after lie
/// on different grids, and the one that the change falls into is cut there. So these spans cover the time line without
/// overlap, and each starts at a whole second.
pub(super) fn grid_cell(zone: Tz, length: i64, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let now = offset(zone, instant);
    let into = (instant.timestamp() + now).rem_euclid(length);
    let start = DateTime::from_timestamp(instant.timestamp() - into, 0)?;
    let end = start.checked_add_signed(TimeDelta::try_seconds(length)?)?;
    let last = end - TimeDelta::seconds(1);
    let off_grid = |at| (offset(zone, at) - now).rem_euclid(length) != 0;
    let start = if off_grid(start) { change_between(zone, start, instant)? } else { start };
    let end = if off_grid(last) { change_between(zone, instant, last)? } else { end };
    Some((start, end))
}

/// The calendar day that holds an instant: from the earliest instant of a local date to the earliest of the next. A day
/// may have 23 or 25 hours, and begins at 01:00 where the clock goes forward over midnight.
pub(super) fn day(zone: Tz, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let date = wall_clock(zone, instant).date();
    let (start, end) = (first_of(zone, date)?, first_of(zone, date.succ_opt()?)?);
    if instant < end {
        return Some((start, end));
    }
    // The clock went back over midnight (St. John's until 2010, at 00:01): the old date shows again for a while, but the
    // new day has begun.
    Some((end, first_of(zone, date.succ_opt()?.succ_opt()?)?))
}

fn first_of(zone: Tz, date: NaiveDate) -> Option<DateTime<Utc>> {
    resolve(zone, date.and_time(NaiveTime::MIN)).map(Wall::earliest)
}

/// The changes of the clock in `(from, to]`, in order. One look per day: of two changes within a day only the sum is seen,
/// which no zone has had since 1970 except on paper.
pub(super) fn changes(zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let mut at = from;
    std::iter::from_fn(move || {
        while at < to {
            let next = at.checked_add_signed(TimeDelta::days(1))?.min(to);
            let change = change_between(zone, at, next);
            at = next;
            if change.is_some() {
                return change;
            }
        }
        None
    })
}
