//! The ticks of a compiled expression on the UTC time line, forwards and backwards.
//!
//! `pattern` searches the calendar only (`NaiveDateTime`); what a change of the clock does to a tick is decided here, by the
//! rule of vixie cron:
//!
//! - A *fixed* expression (no `*` in its second, minute and hour) ticks once for each wall-clock time that it names: right
//!   after the gap when the clock goes forward over it, and the first time when the clock goes back over it. Several times
//!   in one gap are one tick.
//! - An *interval* expression (a `*` in one of them) ticks whenever the wall clock shows a time that it names: never in a
//!   gap, and both times in a fold.
//!
//! croner 4 has the same rule for its own zoned search, with three differences that are not wanted here: it takes a list of
//! hours (`0 2,14 * * *`) for an interval, so that such a time is skipped in the gap and repeated in the fold; it skips a
//! fixed time whose gap crosses midnight into a date that the expression does not name; and it gives up with an error at
//! a gap of more than two hours (Apia, 30 December 2011).

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::pattern::Pattern;
use super::zone::{Wall, change_between, offset, resolve, wall_clock};

/// A second: ticks are whole seconds.
const STEP: TimeDelta = TimeDelta::seconds(1);

/// Where to look, and how times that the clock jumps over or repeats count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) zone: Tz,
    pub(super) fixed: bool,
}

impl Search<'_> {
    /// The first tick after an instant.
    pub(super) fn next(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if self.fixed { self.next_fixed(after) } else { self.next_interval(after) }
    }

    /// The last tick at or before an instant.
    pub(super) fn last(self, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if self.fixed { self.last_fixed(until) } else { self.last_interval(until) }
    }

    /// The first wall-clock time after another that the expression names, whether or not it happens.
    pub(super) fn wall_after(self, wall: NaiveDateTime) -> Option<NaiveDateTime> {
        self.pattern.next(wall)
    }

    fn wall_until(self, wall: NaiveDateTime) -> Option<NaiveDateTime> {
        self.pattern.last(wall)
    }

    fn next_fixed(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut wall = wall_clock(self.zone, after);
        loop {
            wall = self.wall_after(wall)?;
            let tick = resolve(self.zone, wall)?.earliest();
            // Not after it when the clock has gone back: then this was run the first time round.
            if tick > after {
                return Some(tick);
            }
        }
    }

    fn last_fixed(self, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let shown = wall_clock(self.zone, until);
        // The second time round, the clock has already shown later times than now.
        let repeated = self.fold(shown).filter(|(_, second)| *second <= until);
        let mut wall = shown + repeated.map_or(TimeDelta::zero(), |(first, second)| second - first);
        loop {
            wall = self.wall_until(wall)?;
            let tick = resolve(self.zone, wall)?.earliest();
            if tick <= until {
                return Some(tick);
            }
            wall -= STEP;
        }
    }

    fn next_interval(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let shown = wall_clock(self.zone, after);
        let onwards = self.next_shown(shown, after);
        // The first time round, times that were shown before now come again once the clock has gone back.
        let Some((first, second)) = self.fold(shown).filter(|(_, second)| after < *second) else { return onwards };
        let change = change_between(self.zone, first, second)?;
        let again = self.next_shown(wall_clock(self.zone, change) - STEP, change - STEP);
        onwards.into_iter().chain(again).min()
    }

    /// The first tick after an instant at a wall-clock time after another.
    fn next_shown(self, mut wall: NaiveDateTime, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        loop {
            wall = self.wall_after(wall)?;
            match resolve(self.zone, wall)? {
                Wall::Once(tick) => return Some(tick),
                Wall::Twice { first, second } => return Some(if first > after { first } else { second }),
                Wall::Never { resumes } => wall = wall_clock(self.zone, resumes) - STEP,
            }
        }
    }

    fn last_interval(self, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let shown = wall_clock(self.zone, until);
        let back = self.last_shown(shown, until);
        // The second time round, times later than now were shown before the clock went back.
        let Some((first, _)) = self.fold(shown).filter(|(_, second)| *second <= until) else { return back };
        let change = change_between(self.zone, first, until)?;
        let before = self.last_shown(wall_clock(self.zone, change - STEP), change - STEP);
        back.into_iter().chain(before).max()
    }

    /// The last tick at or before an instant at a wall-clock time at or before another.
    fn last_shown(self, mut wall: NaiveDateTime, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        loop {
            wall = self.wall_until(wall)?;
            match resolve(self.zone, wall)? {
                Wall::Once(tick) => return Some(tick),
                Wall::Twice { first, second } => return Some(if second <= until { second } else { first }),
                Wall::Never { resumes } => wall = wall_clock(self.zone, resumes - STEP),
            }
        }
    }

    /// Both instants at which the clock shows this time, when it does so twice.
    fn fold(self, wall: NaiveDateTime) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        match resolve(self.zone, wall)? {
            Wall::Twice { first, second } => Some((first, second)),
            Wall::Once(_) | Wall::Never { .. } => None,
        }
    }

    /// Whether the times of day that the expression names stay the same when the clock is moved, so that a change passes
    /// unnoticed: every hour by whole hours, every half hour by half hours too.
    pub(super) fn shifts_into_itself(self, seconds: i64) -> bool {
        let every_hour = self.pattern.hours.len() == 24;
        let minutes = self.pattern.minutes;
        let shifted = |minute: u32| (i64::from(minute) * 60 + seconds).rem_euclid(3_600);
        let known = |second: i64| minutes.values().any(|minute| i64::from(minute) * 60 == second);
        every_hour && minutes.values().all(|minute| known(shifted(minute)))
    }

    /// Seconds that the clock moves by at a change: positive when it goes forward.
    pub(super) fn moved_by(self, change: DateTime<Utc>) -> i64 {
        offset(self.zone, change) - offset(self.zone, change - STEP)
    }
}
