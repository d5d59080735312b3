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
//!
//! What was compiled is kept: a file of ten thousand jobs has a few hundred expressions, and each is met by the check of the file,
//! by the plan of the node and by the registry. What one means depends on nothing but its text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::search::Search;
use super::syntax::{Compiled, Fault, compile};

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

/// The most that are kept, about 300 bytes each; one more, and all are forgotten.
const MOST: usize = 16_384;

static KNOWN: Mutex<BTreeMap<Arc<str>, Arc<Compiled>>> = Mutex::new(BTreeMap::new());

/// Compiles a trimmed expression, or answers what came of that before.
fn compiled(text: &str) -> Result<(Arc<str>, Arc<Compiled>), Fault> {
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
