//! The slot: the identity of one piece of work.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::{JobName, NameError};
use crate::slot::{SlotKey, SlotKeyError};

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
