//! Why a slot ran or did not, as a program reads it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::job::JobName;
use crate::slot::{Attempt, SlotState};

/// Everything that is known to have been decided on one slot: `why --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyView {
    /// The job's name.
    pub job: JobName,
    /// The slot's key.
    pub slot: String,
    /// Its start, inclusive.
    pub start: DateTime<Utc>,
    /// Its end, exclusive.
    pub end: DateTime<Utc>,
    /// Its state.
    pub state: SlotState,
    /// What was decided, oldest first.
    pub decisions: Vec<DecisionView>,
    /// Decisions that were made and are not kept.
    pub dropped: u32,
    /// The one sentence that says it all.
    pub sentence: String,
    /// The command that mends it; null where nothing is to be mended, or no command does.
    pub mend: Option<String>,
}

/// One decision on a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionView {
    /// When, first.
    pub at: DateTime<Utc>,
    /// When last, where it was made several times in a row; else null.
    pub until: Option<DateTime<Utc>>,
    /// How often in a row.
    pub times: u32,
    /// The node; null where an operator decided.
    pub node: Option<String>,
    /// The attempt that it is about; null where it is about none.
    pub attempt: Option<Attempt>,
    /// A word for programs: `ticked asked not_selected claimed held done exhausted backoff paused blocked early closed too_late
    /// store_away started ended lease_in_doubt lease_lost lease_restored overtaken unsettled config_differs verdict operator
    /// unknown`.
    pub what: &'static str,
    /// The same in words.
    pub text: String,
}
