//! `cronward why J@S`: what each node decided on a slot, in order, and one sentence that says it all.
//!
//! - `command` asks the store and prints.
//! - `timeline` puts the store's record and the nodes' notes in one order.
//! - `explain` makes the sentence and names the command that mends it; `unplanned` for jobs that no daemon plans.
//!
//! All but the first are pure: values in, values out. They work from the record alone where nothing was noted.

mod command;
mod explain;
mod timeline;
mod unplanned;

pub(crate) use command::{Args, why};

use chrono::{DateTime, Utc};

use crate::cli::store_args::StoreArgs;
use crate::job::NodeName;
use crate::slot::{NotePage, SlotRecord};
use crate::store::{JobEntry, Pause};

/// All that is known of a slot and of those who might have run it.
struct Facts {
    record: SlotRecord,
    /// In the order in which they were begun.
    pages: Vec<NotePage>,
    /// The job's last pause.
    pause: Option<Pause>,
    job: JobEntry,
    /// Whether a file that was read has the job's command.
    has_command: bool,
    /// What was typed to get here: told commands go to the same store.
    store: StoreArgs,
    /// When the registry first heard of the job; none when it has not.
    known_since: Option<DateTime<Utc>>,
    /// The slot's first tick; none where it has none.
    tick: Option<DateTime<Utc>>,
    /// Nobody was to run it: nodes are alive, and none had the job in its file any more.
    orphaned: bool,
    /// Nodes that are alive.
    alive: Vec<NodeName>,
    /// The store's clock.
    now: DateTime<Utc>,
}

/// What is said of a slot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Explanation {
    sentence: String,
    /// A command line; none where nothing is to be mended.
    mend: Option<String>,
}

impl Explanation {
    fn fine(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), mend: None }
    }

    fn mended(sentence: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), mend: Some(mend.into()) }
    }
}

/// An instant of the slot's day as people say it; with its date where that is another.
fn clock(day: DateTime<Utc>, at: DateTime<Utc>) -> String {
    if day.date_naive() == at.date_naive() {
        at.format("%H:%M:%S").to_string()
    } else {
        at.format("%Y-%m-%d %H:%M:%S").to_string()
    }
}

#[cfg(test)]
mod tests;
