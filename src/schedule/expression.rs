//! A compiled cron expression in a time zone: its ticks, forwards and backwards. Never reads a clock.
//!
//! Five fields are minute, hour, day of month, month and day of week; six have the second first. `@hourly`, `@daily`,
//! `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are their usual selves.
//!
//! **Two days.** When the day of month *and* the day of week are restricted, either is enough, as in vixie cron:
//! `0 0 13 * FRI` ticks on each 13th and on each Friday. A field counts as restricted unless it is exactly `*` or `?`. A
//! `+` before the day of week asks for both: `0 0 13 * +FRI` ticks on Fridays the 13th.
//!
//! **Changes of the clock** follow vixie cron; the rule is in `search`.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::memo;
use super::search::Search;
use super::syntax::Compiled;

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
    zone: Tz,
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
    pub fn parse(expression: &str, zone: Tz) -> Result<Self, ScheduleError> {
        let compiled = memo::compiled(expression.trim());
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
        self.compiled.words()
    }

    /// The time zone in which it is read.
    pub const fn zone(&self) -> Tz {
        self.zone
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    pub(super) fn search(&self) -> Search<'_> {
        Search { pattern: &self.compiled.pattern, zone: self.zone, fixed: self.compiled.fixed }
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
