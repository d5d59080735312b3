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
    /// A fixed number of whole seconds, counted from the Unix epoch. For services that embed the library and for tests;
    /// `jobs.toml` has no word for it.
    Fixed(Duration),
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minute => f.write_str("minute"),
            Self::Hour => f.write_str("hour"),
            Self::Day => f.write_str("day"),
            Self::Tick => f.write_str("tick"),
            Self::Fixed(length) => write!(f, "{}s", length.as_secs()),
        }
    }
}

/// A word that is no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a slot length: write hour, minute, day or tick")]
pub struct PeriodError {
    word: String,
}

impl FromStr for Period {
    type Err = PeriodError;

    /// Reads what [`Display`](fmt::Display) writes. `jobs.toml` does not take the form `<n>s`.
    fn from_str(word: &str) -> Result<Self, PeriodError> {
        let fixed = || {
            let digits = word.strip_suffix('s')?;
            let seconds = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
            seconds.parse().ok().filter(|seconds| *seconds > 0).map(|seconds| Self::Fixed(Duration::from_secs(seconds)))
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
        let fixed = Period::Fixed(Duration::from_secs(5));
        for period in [Period::Minute, Period::Hour, Period::Day, Period::Tick, fixed] {
            assert_eq!(period.to_string().parse(), Ok(period));
        }
    }

    #[test]
    fn another_word_is_refused_with_those_there_are() {
        for word in ["", "hours", "Hour", "week", "s", "0s", "-5s", "+5s", "5 s", "5m", "99999999999999999999s"] {
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
