//! What a crontab is made into, before it is written: jobs, and everything that is told between them.

use std::collections::BTreeMap;
use std::fmt;

use chrono_tz::Tz;

use crate::slot::Period;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One thing of a crontab, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A file begins.
    File(String),
    /// A comment, with its `#`.
    Comment(String),
    /// What was above does not belong to what comes.
    Gap,
    /// Something that changes what the following lines mean, or that is left out for a reason.
    Note(Place, String),
    /// Something that was guessed: told on stderr as well.
    Doubt(Place, String),
    /// A line that is not imported.
    Refused(Refused),
    Job(Box<Job>),
}

/// A line that is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) place: Place,
    /// The line itself.
    pub(super) source: String,
    pub(super) why: String,
    /// Whether it should be looked at: what is right in cron and has no counterpart is only told.
    pub(super) wrong: bool,
}

/// Who says which zone a schedule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneSource {
    /// `--timezone`.
    Flag,
    /// `CRON_TZ` in the crontab.
    CronTz,
    /// `TZ` in the crontab.
    Tz,
    /// The machine on which the import runs.
    Machine,
}

/// An entry as a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) place: Place,
    /// The line itself.
    pub(super) source: String,
    pub(super) schedule: String,
    pub(super) period: Option<Period>,
    pub(super) zone: (Tz, ZoneSource),
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The value of `command`, as it is written.
    pub(super) command: String,
    /// Minutes.
    pub(super) jitter: Option<u32>,
    pub(super) notes: Vec<String>,
}
