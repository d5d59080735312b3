//! Between UTC and the wall clock of a time zone: what a wall-clock time means on the day the clock changes, and where the
//! hours, minutes and days of a zone begin and end. Never looks at a cron expression.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use jiff::civil;
use jiff::tz::{AmbiguousOffset, Offset};

use crate::zone::Zone;

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
pub(super) fn offset(zone: &Zone, instant: DateTime<Utc>) -> i64 {
    i64::from(zone.seconds_ahead(instant))
}

/// What the zone's clock shows at an instant.
pub(super) fn wall_clock(zone: &Zone, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.naive_utc() + TimeDelta::seconds(offset(zone, instant))
}

/// When the zone's clock shows a time. None outside of the years -9999 to 9999.
pub(super) fn resolve(zone: &Zone, wall: NaiveDateTime) -> Option<Wall> {
    let instant = |ahead: Offset| (wall - TimeDelta::seconds(ahead.seconds().into())).and_utc();
    Some(match zone.rules().to_ambiguous_timestamp(civil(wall)?).offset() {
        AmbiguousOffset::Unambiguous { offset } => Wall::Once(instant(offset)),
        AmbiguousOffset::Fold { before, after } => Wall::Twice { first: instant(before), second: instant(after) },
        AmbiguousOffset::Gap { before, after } => {
            Wall::Never { resumes: change_between(zone, instant(after), instant(before))? }
        }
    })
}

fn civil(wall: NaiveDateTime) -> Option<civil::DateTime> {
    let (year, month, day) = (wall.year().try_into().ok()?, wall.month().try_into().ok()?, wall.day().try_into().ok()?);
    let time = (wall.hour().try_into().ok()?, wall.minute().try_into().ok()?, wall.second().try_into().ok()?);
    civil::DateTime::new(year, month, day, time.0, time.1, time.2, wall.nanosecond().try_into().ok()?).ok()
}

/// The first instant after `from` and up to `to` at which the clock is changed.
pub(super) fn change_between(zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<DateTime<Utc>> {
    changes(zone, from, to).next()
}

/// The changes of the clock in `(from, to]`, in order.
pub(super) fn changes(zone: &Zone, from: DateTime<Utc>, to: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + '_ {
    zone.changes_after(from).take_while(move |change| *change <= to)
}

/// The calendar hour or minute (`length` in seconds) that holds an instant: the local time floored with the offset in
/// force, and `length` long.
///
/// Where the offset changes by no whole multiple of the length (Lord Howe, by 30 minutes), the hours before and after lie
/// on different grids, and the one that the change falls into is cut there. So these spans cover the time line without
/// overlap, and each starts at a whole second.
pub(super) fn grid_cell(zone: &Zone, length: i64, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
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
pub(super) fn day(zone: &Zone, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let date = wall_clock(zone, instant).date();
    let (start, end) = (first_of(zone, date)?, first_of(zone, date.succ_opt()?)?);
    if instant < end {
        return Some((start, end));
    }
    // The clock went back over midnight (St. John's until 2010, at 00:01): the old date shows again for a while, but the
    // new day has begun.
    Some((end, first_of(zone, date.succ_opt()?.succ_opt()?)?))
}

/// The part of a day (`length` in seconds divides a day) that holds an instant.
///
/// Up to an hour parts are counted as hours are, by [`grid_cell`]. Longer parts begin and end at the same wall-clock times each day, as
/// days do: the part in which the clock changes is longer or shorter.
pub(super) fn day_part(zone: &Zone, length: i64, instant: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    if length <= HOUR {
        return grid_cell(zone, length, instant);
    }
    let shown = wall_clock(zone, instant);
    let into = i64::from(shown.time().num_seconds_from_midnight()) / length * length;
    let begin = shown.date().and_time(NaiveTime::MIN) + TimeDelta::try_seconds(into)?;
    let length = TimeDelta::try_seconds(length)?;
    let borders: Vec<DateTime<Utc>> = (0..=PARTS_BACK)
        .filter_map(|part| resolve(zone, begin.checked_add_signed(length * part)?).map(Wall::earliest))
        .collect();
    // Where the clock went back over the end, a later part has begun, as for a day.
    borders.iter().zip(borders.iter().skip(1)).find(|(_, end)| instant < **end).map(|(start, end)| (*start, *end))
}

/// So many parts the clock may go back over: no zone has gone back by more than a day.
const PARTS_BACK: i32 = 24;

const HOUR: i64 = 3_600;

fn first_of(zone: &Zone, date: NaiveDate) -> Option<DateTime<Utc>> {
    resolve(zone, date.and_time(NaiveTime::MIN)).map(Wall::earliest)
}
