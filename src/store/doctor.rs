//! What `doctor` is told of a store: what was found when it was looked at, what was written only to see whether it may be, and at
//! which of several servers. Asks nothing by itself.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::{JobName, LockName, NodeName};
use crate::slot::Slot;
use crate::store::Store;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// A slot can suffer when something else goes wrong too.
    Warning,
    /// A slot can be lost, or run twice, as things stand.
    #[serde(rename = "error")]
    Fault,
}

impl Severity {
    /// The word used on screens and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at: a word for programs.
    pub check: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, on one line.
    pub found: String,
    /// What can happen to a slot; none where all is well.
    pub effect: Option<String>,
    /// The line to change, or what to do; none where all is well.
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self { check: check.to_owned(), severity: Severity::Ok, found: found.into(), effect: None, fix: None }
    }

    /// A slot can suffer when something else goes wrong too.
    pub fn warning(check: &str, found: impl Into<String>, effect: &str, fix: impl Into<String>) -> Self {
        let (effect, fix) = (Some(effect.to_owned()), Some(fix.into()));
        Self { severity: Severity::Warning, effect, fix, ..Self::ok(check, found) }
    }

    /// What was looked at could not be seen: nothing is well that nobody has seen.
    pub fn unknown(check: &str, why: impl fmt::Display, effect: &str, fix: impl Into<String>) -> Self {
        Self::warning(check, format!("unknown: {why}"), effect, fix)
    }

    /// A slot can be lost, or run twice, as things stand.
    pub fn fault(check: &str, found: impl Into<String>, effect: &str, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Fault, ..Self::warning(check, found, effect, fix) }
    }
}

/// Says of a job whether its slots are kept there.
type Keeps = Box<dyn Fn(&JobName) -> bool + Send + Sync>;

/// One of several servers that a store stands on, to be tried by itself.
pub struct Station {
    /// What is asked of it about the slots of a job that [`Station::keeps`] reaches this server; an error that a server
    /// answered with names it.
    pub store: Arc<dyn Store>,
    /// Whether the others do its work while it is away.
    pub is_replaceable: bool,
    keeps: Keeps,
}

impl Station {
    /// A server that is asked about every job, as the others are.
    #[cfg(feature = "redis-redlock")]
    pub(super) fn of_all(store: Arc<dyn Store>) -> Self {
        Self { store, is_replaceable: true, keeps: Box::new(|_| true) }
    }

    /// A server that alone keeps some jobs' slots.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn of_some(store: Arc<dyn Store>, keeps: impl Fn(&JobName) -> bool + Send + Sync + 'static) -> Self {
        Self { store, is_replaceable: false, keeps: Box::new(keeps) }
    }

    /// Whether it keeps the slots of this job.
    pub fn keeps(&self, job: &JobName) -> bool {
        (self.keeps)(job)
    }
}

impl fmt::Debug for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, is_replaceable, keeps: _ } = self;
        f.debug_struct("Station").field("store", store).field("is_replaceable", is_replaceable).finish_non_exhaustive()
    }
}

/// A job, a node, slots and a lock: of a trial of the store, or entries of the registry that nobody needs any more. [`super::forget`]
/// removes what is kept of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The job, in the registry and with a pause.
    pub job: Option<JobName>,
    /// The node that was told of.
    pub node: Option<NodeName>,
    /// Slots of the job; where there are none, the records of all its slots stay.
    pub slots: Vec<Slot>,
    /// The lock, with its queue.
    pub lock: Option<LockName>,
}
