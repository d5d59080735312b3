//! Hints that something changed at a slot: wake-ups for nodes that wait, changes for people who look on. They only make a look
//! come sooner; no rule depends on one arriving.

use std::fmt;
use std::str::FromStr;

use crate::job::JobName;
use crate::slot::{Slot, SlotKey};

/// A hint from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something changed at a slot.
    Slot {
        /// Its job.
        job: JobName,
        /// Its key.
        key: SlotKey,
        /// What.
        what: WakeKind,
    },
    /// Something changed for every slot of a job: paused or resumed.
    Job(JobName),
    /// Hints may have been lost: look again at whatever is waited for.
    Resync,
}

/// What changed at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakeKind {
    /// Its lease was released, or an operator opened it: somebody may claim.
    Released,
    /// It is done.
    Done,
}

/// A hint for whoever looks on: what to look at again, and never what happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeHint {
    /// Something about the slot was written: granted, ended, closed, opened or marked done.
    Slot {
        /// Its job.
        job: JobName,
        /// Its key.
        key: SlotKey,
    },
    /// Its job was paused or resumed.
    Job(JobName),
    /// Hints may have been lost: look again at whatever is shown.
    Resync,
}

impl ChangeHint {
    /// Something about this slot was written.
    pub fn of(slot: &Slot) -> Self {
        Self::Slot { job: slot.job().clone(), key: slot.key() }
    }
}

/// A message that is no wake-up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a wake-up message")]
pub struct WakeParseError;

impl fmt::Display for Wake {
    /// The message as it is published: `released job@key`, `done job@key`, `job NAME`, `resync`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot { job, key, what: WakeKind::Released } => write!(f, "released {job}@{key}"),
            Self::Slot { job, key, what: WakeKind::Done } => write!(f, "done {job}@{key}"),
            Self::Job(job) => write!(f, "job {job}"),
            Self::Resync => f.write_str("resync"),
        }
    }
}

impl FromStr for Wake {
    type Err = WakeParseError;

    fn from_str(text: &str) -> Result<Self, WakeParseError> {
        if text == "resync" {
            return Ok(Self::Resync);
        }
        let (word, rest) = text.split_once(' ').ok_or(WakeParseError)?;
        let what = match word {
            "released" => WakeKind::Released,
            "done" => WakeKind::Done,
            "job" => return rest.parse().map(Self::Job).map_err(|_| WakeParseError),
            _ => return Err(WakeParseError),
        };
        let (job, key) = rest.split_once('@').ok_or(WakeParseError)?;
        let job = job.parse().map_err(|_| WakeParseError)?;
        let key = key.parse().map_err(|_| WakeParseError)?;
        Ok(Self::Slot { job, key, what })
    }
}

impl fmt::Display for ChangeHint {
    /// The message as it is published: `slot job@key`, `job NAME`, `resync`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot { job, key } => write!(f, "slot {job}@{key}"),
            Self::Job(job) => write!(f, "job {job}"),
            Self::Resync => f.write_str("resync"),
        }
    }
}

impl FromStr for ChangeHint {
    type Err = WakeParseError;

    fn from_str(text: &str) -> Result<Self, WakeParseError> {
        if text == "resync" {
            return Ok(Self::Resync);
        }
        match text.split_once(' ').ok_or(WakeParseError)? {
            ("job", job) => job.parse().map(Self::Job).map_err(|_| WakeParseError),
            ("slot", slot) => {
                let (job, key) = slot.split_once('@').ok_or(WakeParseError)?;
                let job = job.parse().map_err(|_| WakeParseError)?;
                Ok(Self::Slot { job, key: key.parse().map_err(|_| WakeParseError)? })
            }
            _ => Err(WakeParseError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wake_reads_back_as_published() {
        for text in ["released a@2026-11-21T14Z", "done a.b@2026-11-21T14:30:15Z", "job a", "resync"] {
            assert_eq!(text.parse::<Wake>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_change_reads_back_as_published() {
        for text in ["slot a@2026-11-21T14Z", "slot a.b@2026-11-21T14:30:15Z", "job a", "resync"] {
            assert_eq!(text.parse::<ChangeHint>().unwrap().to_string(), text);
        }
        for text in ["", "slot", "slot a", "slot A@2026-11-21T14Z", "released a@2026-11-21T14Z", "job "] {
            assert_eq!(text.parse::<ChangeHint>(), Err(WakeParseError), "{text}");
        }
    }

    #[test]
    fn a_message_from_somebody_else_is_no_wake() {
        for text in ["", " ", "released", "released a", "released A@2026-11-21T14Z", "gone a@2026-11-21T14Z", "job "] {
            assert_eq!(text.parse::<Wake>(), Err(WakeParseError), "{text}");
        }
    }
}
