//! Why what an operator asked for could not be told. Each shows itself in English; pages say the same in their own language.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::admin::words::instant;
use crate::job::JobName;
use crate::slot::{Slot, SlotKey};
use crate::store::StoreError;

/// Why what an operator asked for could not be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// There is no such job or slot; with what there is.
    #[error(transparent)]
    Unknown(#[from] UnknownTarget),
    /// A job of the file cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No pause can end as it was said.
    #[error(transparent)]
    PauseEnd(#[from] PauseEndError),
    /// More slots than one listing looks at.
    #[error("more than {0} slots would have to be looked at: name a job, or a shorter time with since")]
    ManySlots(usize),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store answered what no store may answer.
    #[error("{0}")]
    Internal(String),
}

/// No end of a pause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PauseEndError {
    #[error("{0:?} is neither a duration nor a time: write one like 2h, or like 2026-11-21T14:00:00Z")]
    Unreadable(String),
    /// With what the store's clock shows.
    #[error("{} has passed: the store's clock shows {}; write a later time", instant(*end), instant(*now))]
    Passed { end: DateTime<Utc>, now: DateTime<Utc> },
    /// Later than can be written.
    #[error("is out of range: write a time before the year 10000, or leave it out")]
    TooLate,
}

/// A job or a slot that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownTarget {
    /// No job is known where it was asked for.
    #[error("no job {job}{}: no other is known there either; name a file of jobs with --config", at(location))]
    OnlyJob { job: JobName, location: Option<String> },
    /// Another job has nearly this name.
    #[error("no job {job}: did you mean {nearest}?")]
    MisspeltJob { job: JobName, nearest: JobName },
    /// No job has nearly this name; with the command that lists those there are.
    #[error("no job {job}{}: `{listing}` lists those there are", at(location))]
    Job { job: JobName, location: Option<String>, listing: String },
    /// No time of its schedule has come.
    #[error("job {0} has no slot yet: its schedule has not fired yet")]
    FirstSlot(JobName),
    /// None starts there; with the one that contains that time.
    #[error("no slot of {job} starts at {key}{}", around(within))]
    Slot { job: JobName, key: SlotKey, within: Option<Slot> },
    /// So many slots are not before the newest one.
    #[error("{job}@-{steps} is not a slot: only {found} slots come before {newest}")]
    OldSlot { job: JobName, steps: usize, found: usize, newest: Slot },
}

fn at(location: &Option<String>) -> impl fmt::Display {
    location.as_ref().map(|location| format!(" at {location}")).unwrap_or_default()
}

fn around(within: &Option<Slot>) -> impl fmt::Display {
    within.as_ref().map_or_else(|| ", and none contains it".to_owned(), |slot| format!(": that time lies in {slot}"))
}
