//! A compiled cron expression in a time zone: its ticks, forwards and backwards. Never reads a clock.
//!
//! Five fields are minute, hour, day of month, month and day of week; six have the second first. `@hourly`, `@daily`,
//! `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are their usual selves.
//!
//! **Two days.** When the day of month *and* the day of week are restricted, either is enough, as in vixie cron:
//! `0 0 13 * FRI` ticks on each 13th and on each Friday. A field counts as restricted unless it is exactly `*` or `?`. A
//! `+` before the day of week asks for both: `0 0 13 * +FRI` ticks on Fridays the 13th.
//!
//! What was compiled is kept: a file of ten thousand jobs has a few hundred expressions, and each is met by the check of the file,
//! by the plan of the node and by the registry. What one means depends on nothing but its text.
//!
//! **Changes of the clock.** `pattern` searches the calendar only (`NaiveDateTime`); what a change of the clock does to a tick is
//! decided here, by the rule of vixie cron:
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

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use croner::describe::{English, Language};

use super::fields::SyntaxError;
use super::syntax::{Compiled, compile};
use crate::schedule::pattern::Pattern;
use crate::schedule::zone::{Wall, change_between, offset, resolve, wall_clock};
use crate::zone::Zone;

/// 2399-12-30: no tick is looked for later. Far from the ends of the calendar, where arithmetic would overflow.
const LAST: DateTime<Utc> = match DateTime::from_timestamp(13_569_292_800, 0) {
    Some(instant) => instant,
    None => DateTime::UNIX_EPOCH,
};

/// Longer texts are cut in messages.
const SHOWN: usize = 80;

/// A cron expression in a time zone.
#[derive(Clone)]
pub struct Schedule {
    text: Arc<str>,
    zone: Zone,
    /// Shared by all schedules of one text.
    compiled: Arc<Compiled>,
}

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schedule {expression:?}: {message}")]
pub struct ScheduleError {
    /// As written; cut when it is long.
    pub expression: String,
    /// What is wrong, a lowercase fragment.
    pub message: String,
    /// What to write instead, if that can be said.
    pub hint: Option<String>,
}

impl ScheduleError {
    pub(super) fn new(expression: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { expression: expression.chars().take(SHOWN).collect(), message: message.into(), hint }
    }
}

impl Schedule {
    /// Compiles an expression: 5 fields, 6 with seconds first, or `@hourly` and the like.
    pub fn parse(expression: &str, zone: Zone) -> Result<Self, ScheduleError> {
        let compiled = compiled(expression.trim());
        let (text, compiled) = compiled.map_err(|fault| ScheduleError::new(expression, fault.message, fault.hint))?;
        Ok(Self { text, zone, compiled })
    }

    /// The first tick strictly after an instant; none when there is none within the search limit, the years 1970 to 2399.
    pub fn next_after(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let start = instant.max(DateTime::UNIX_EPOCH - TimeDelta::seconds(1));
        if start >= LAST {
            return None;
        }
        self.search().next(start).filter(|tick| *tick <= LAST)
    }

    /// The last tick at or before an instant, within the same years.
    pub fn last_until(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if instant < DateTime::UNIX_EPOCH {
            return None;
        }
        self.search().last(instant.min(LAST)).filter(|tick| *tick >= DateTime::UNIX_EPOCH)
    }

    /// The ticks after an instant, in order, looked for one by one as they are asked for.
    pub fn ticks_after(&self, instant: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + '_ {
        std::iter::successors(self.next_after(instant), |tick| self.next_after(*tick))
    }

    /// The expression in words, in English.
    pub fn describe(&self) -> String {
        self.describe_in(English)
    }

    /// The same in another language. Its sentence ends with a full stop, and its parts are apart by commas.
    pub(crate) fn describe_in(&self, language: impl Language) -> String {
        self.compiled.words(language)
    }

    /// The time zone in which it is read.
    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    pub(super) fn search(&self) -> Search<'_> {
        Search { pattern: &self.compiled.pattern, zone: &self.zone, fixed: self.compiled.fixed }
    }
}

/// Two schedules are equal when their text and zone are.
impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.zone == other.zone
    }
}

impl Eq for Schedule {}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({:?}, {})", self.text, self.zone)
    }
}

/// The most that are kept, about 300 bytes each; one more, and all are forgotten.
const MOST: usize = 16_384;

static KNOWN: Mutex<BTreeMap<Arc<str>, Arc<Compiled>>> = Mutex::new(BTreeMap::new());

/// Compiles a trimmed expression, or answers what came of that before.
fn compiled(text: &str) -> Result<(Arc<str>, Arc<Compiled>), SyntaxError> {
    // Nothing is left half done when a holder panics: a map is only read, cleared, or given one more.
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, compiled)) = known().get_key_value(text) {
        return Ok((Arc::clone(text), Arc::clone(compiled)));
    }
    let (text, compiled) = (Arc::from(text), Arc::new(compile(text)?));
    let mut known = known();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(Arc::clone(&text), Arc::clone(&compiled));
    Ok((text, compiled))
}

/// A second: ticks are whole seconds.
const STEP: TimeDelta = TimeDelta::seconds(1);

/// Where to look, and how times that the clock jumps over or repeats count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) zone: &'a Zone,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_compiled_once_and_a_wrong_one_is_told_each_time() {
        let (text, first) = compiled("7 3 9 1 *").unwrap();
        let (again, second) = compiled("7 3 9 1 *").unwrap();
        assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&text, &again));
        assert_eq!(compiled("61 * * * *").unwrap_err(), compiled("61 * * * *").unwrap_err());
    }

    #[test]
    fn no_more_are_kept_than_fit() {
        for number in 0..MOST + 10 {
            let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1_440 + 1);
            compiled(&format!("{minute} {hour} {day} 5 *")).unwrap();
        }
        assert!(KNOWN.lock().unwrap().len() <= MOST);
    }
}
