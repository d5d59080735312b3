//! The slot, the identity of one piece of work, and the period that it spans.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::{JobName, NameError};
use crate::slot::{SlotKey, SlotKeyError};

/// What one slot spans. Hours, minutes and days are those of the job's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// A calendar minute.
    Minute,
    /// A calendar hour.
    Hour,
    /// A calendar day.
    Day,
    /// From one scheduled instant to the next: each tick is its own slot.
    Tick,
    /// A fixed number of whole seconds. Where it divides a day, it is counted from the start of the day in the job's time zone;
    /// otherwise from the Unix epoch, which `jobs.toml` has no word for.
    Fixed(Duration),
}

const DAY: u64 = 86_400;

impl Period {
    /// The period of this length: whole seconds that divide a day.
    ///
    /// # Errors
    /// Where the length does not divide a day, with the nearest lengths that do.
    pub fn of_length(length: Duration) -> Result<Self, LengthError> {
        match length.as_secs() {
            60 if length.subsec_nanos() == 0 => Ok(Self::Minute),
            3_600 if length.subsec_nanos() == 0 => Ok(Self::Hour),
            DAY if length.subsec_nanos() == 0 => Ok(Self::Day),
            _ if divides_day(length) => Ok(Self::Fixed(length)),
            _ => Err(LengthError { length }),
        }
    }
}

/// Whether slots of this length begin at the same times each day.
pub(crate) fn divides_day(length: Duration) -> bool {
    length.subsec_nanos() == 0 && length.as_secs() > 0 && DAY.is_multiple_of(length.as_secs())
}

/// A length that does not divide a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthError {
    length: Duration,
}

impl LengthError {
    /// The nearest lengths that divide a day, shorter first, in the unit of this one.
    fn nearest(self) -> Vec<Duration> {
        let seconds = self.length.as_secs();
        let unit = [3_600, 60, 1].into_iter().find(|unit| seconds > 0 && seconds.is_multiple_of(*unit)).unwrap_or(1);
        let fits = |count: &u64| DAY.is_multiple_of(count * unit);
        let count = seconds / unit;
        let below = (1..=count.min(DAY / unit)).rev().find(fits);
        let above = (count.saturating_add(1)..=DAY / unit).find(fits);
        below.into_iter().chain(above).map(|count| Duration::from_secs(count * unit)).collect()
    }
}

impl fmt::Display for LengthError {
    /// The fix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest: Vec<String> = self.nearest().iter().map(|length| format!("{:?}", units(*length))).collect();
        write!(f, "a slot divides a day: write {}", nearest.join(" or "))
    }
}

impl std::error::Error for LengthError {}

/// Whole seconds in their largest unit: `6h`, `90m`, `5s`.
fn units(length: Duration) -> String {
    match length.as_secs() {
        seconds if seconds > 0 && seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        seconds if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minute => f.write_str("minute"),
            Self::Hour => f.write_str("hour"),
            Self::Day => f.write_str("day"),
            Self::Tick => f.write_str("tick"),
            Self::Fixed(length) => f.write_str(&units(*length)),
        }
    }
}

/// A word that is no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a slot length: write hour, minute, day or tick, or a duration that divides a day, like 15m")]
pub struct PeriodError {
    word: String,
}

impl FromStr for Period {
    type Err = PeriodError;

    /// Reads what [`Display`](fmt::Display) writes, and lengths that do not divide a day, which `jobs.toml` does not take.
    fn from_str(word: &str) -> Result<Self, PeriodError> {
        let fixed = || {
            let (digits, unit) = [("h", 3_600), ("m", 60), ("s", 1)]
                .into_iter()
                .find_map(|(unit, seconds)| Some((word.strip_suffix(unit)?, seconds)))?;
            let count = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            let seconds = count.parse::<u64>().ok()?.checked_mul(unit)?;
            Some(Self::Fixed(Duration::from_secs(seconds))).filter(|_| seconds > 0)
        };
        match word {
            "minute" => Ok(Self::Minute),
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            "tick" => Ok(Self::Tick),
            _ => fixed().ok_or_else(|| PeriodError { word: word.chars().take(40).collect() }),
        }
    }
}

/// 1-based number of the claim within the slot; the whole cluster shares the count.
pub type Attempt = u32;

/// A number that rises with (slot start, attempt). A resource that remembers the largest it has seen can refuse older work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One slot of one job: from `start` (inclusive) to `end` (exclusive), both UTC.
///
/// Two slots of one job are the same work exactly when they start at the same instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    job: JobName,
    key: SlotKey,
    end: DateTime<Utc>,
}

/// What cannot be a slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// The end does not come after the start.
    #[error("a slot of {job} from {start} to {end} has no length")]
    Empty {
        /// The job.
        job: JobName,
        /// Its start.
        start: DateTime<Utc>,
        /// Its end.
        end: DateTime<Utc>,
    },
    /// The start has no key.
    #[error("a slot of {job} cannot start at {start}: a start is a whole second of the years 1970 to 9999")]
    Start {
        /// The job.
        job: JobName,
        /// Its start.
        start: DateTime<Utc>,
    },
    /// The job's name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The key is not allowed.
    #[error(transparent)]
    Key(#[from] SlotKeyError),
}

impl Slot {
    /// A slot; refused when it has no length or its start has no key.
    pub fn new(job: JobName, start: DateTime<Utc>, end: DateTime<Utc>) -> Result<Self, SlotError> {
        let Some(key) = SlotKey::of(start) else { return Err(SlotError::Start { job, start }) };
        if end <= start {
            return Err(SlotError::Empty { job, start, end });
        }
        Ok(Self { job, key, end })
    }

    /// A slot from text, both instants written as keys.
    pub fn parse(job: &str, start: &str, end: &str) -> Result<Self, SlotError> {
        let start: SlotKey = start.parse()?;
        let end: SlotKey = end.parse()?;
        Self::new(JobName::new(job)?, start.start(), end.start())
    }

    /// The job whose slot it is.
    pub const fn job(&self) -> &JobName {
        &self.job
    }

    /// Its key, the start in its shortest spelling.
    pub const fn key(&self) -> SlotKey {
        self.key
    }

    /// Its start, inclusive.
    pub const fn start(&self) -> DateTime<Utc> {
        self.key.start()
    }

    /// Its end, exclusive.
    pub const fn end(&self) -> DateTime<Utc> {
        self.end
    }

    /// The fence of an attempt: start in Unix seconds × 1000 + attempt. Later work always has the larger fence, as long
    /// as attempts stay at or below [`crate::job::MAX_ATTEMPTS_LIMIT`].
    pub fn fence(&self, attempt: Attempt) -> Fence {
        let seconds = u64::try_from(self.start().timestamp()).unwrap_or(0);
        Fence(seconds * 1_000 + u64::from(attempt))
    }
}

impl fmt::Display for Slot {
    /// `job@key`, as commands take it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.job, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_reads_back_as_it_is_written() {
        let fixed = [1, 5, 60, 90, 300, 420, 5_400, 21_600].map(|seconds| Period::Fixed(Duration::from_secs(seconds)));
        for period in [Period::Minute, Period::Hour, Period::Day, Period::Tick].into_iter().chain(fixed) {
            assert_eq!(period.to_string().parse(), Ok(period));
        }
        let words = fixed.map(|period| period.to_string());
        assert_eq!(words, ["1s", "5s", "1m", "90s", "5m", "7m", "90m", "6h"]);
    }

    #[test]
    fn a_length_that_divides_a_day_is_a_period_and_one_with_a_word_is_that_word() {
        let of = |seconds| Period::of_length(Duration::from_secs(seconds)).unwrap();
        assert_eq!([60, 3_600, 86_400].map(of), [Period::Minute, Period::Hour, Period::Day]);
        for seconds in [1, 300, 900, 5_400, 21_600, 43_200] {
            assert_eq!(of(seconds), Period::Fixed(Duration::from_secs(seconds)));
        }
    }

    #[test]
    fn a_length_that_does_not_divide_a_day_is_refused_with_the_nearest_that_do() {
        for (length_ms, fix) in [
            (420_000, "\"6m\" or \"8m\""),
            (0, "\"1s\""),
            (500, "\"1s\""),
            (25 * 3_600_000, "\"24h\""),
            (5 * 3_600_000, "\"4h\" or \"6h\""),
            (7_000, "\"6s\" or \"8s\""),
            (u64::MAX, "\"24h\""),
        ] {
            let error = Period::of_length(Duration::from_millis(length_ms)).unwrap_err().to_string();
            assert_eq!(error, format!("a slot divides a day: write {fix}"), "{length_ms}");
        }
    }

    #[test]
    fn another_word_is_refused_with_those_there_are() {
        for word in ["", "hours", "Hour", "week", "s", "0s", "-5s", "+5s", "5 s", "0m", "5d", "99999999999999999h"] {
            assert!(word.parse::<Period>().unwrap_err().to_string().contains("hour, minute, day or tick"), "{word}");
        }
    }

    #[test]
    fn a_later_slot_or_attempt_has_the_larger_fence() {
        let first = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let second = Slot::parse("a", "2026-11-21T14:00:01Z", "2026-11-21T15Z").unwrap();
        assert_eq!(first.fence(1), Fence(1_795_269_600_001));
        assert!(first.fence(2) > first.fence(1));
        assert!(second.fence(1) > first.fence(999));
    }

    #[test]
    fn a_slot_without_length_is_refused() {
        let error = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T14Z").unwrap_err();
        assert!(error.to_string().contains("has no length"), "{error}");
    }

    #[test]
    fn a_slot_reads_as_commands_take_it() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        assert_eq!(slot.to_string(), "billing@2026-11-21T14Z");
    }
}
