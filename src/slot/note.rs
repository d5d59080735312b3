//! What a node decided on a slot, and why: notes for people. No rule reads them, and none depends on one being kept.
//!
//! A *page* is what one writer noted on one slot: a daemon from its start on, or one `cronward exec`. Its writer alone
//! changes it, so pages are replaced as a whole and never merged.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Attempt, Fence, Outcome};

/// The newest notes that a page keeps; what came before is counted.
pub const MOST_NOTES: usize = 32;

/// The newest pages that a store keeps of one slot, by their last note.
pub const MOST_PAGES: usize = 64;

/// The longest text of another program in a note, in bytes.
const LONGEST: usize = 160;

/// What one writer noted on one slot (JSON).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotePage {
    /// When the last note was made. Stands first: stores look for it there.
    #[serde(rename = "last_ms", with = "chrono::serde::ts_milliseconds")]
    pub last: DateTime<Utc>,
    /// Which page it is; no two writers share one.
    pub id: String,
    /// Whose it is.
    pub node: NodeName,
    /// Hash of the job as this writer had it: nodes whose hashes differ ran by different files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_hash: Option<String>,
    /// Notes that were made before these and are not kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u32,
    /// The notes, oldest first.
    pub notes: Vec<Note>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was made first, by the node's clock as it is put right by the store's.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// How often in a row.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// When it was made last, where that was more than once.
    #[serde(
        default,
        rename = "until_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub until: Option<DateTime<Utc>>,
    /// What.
    #[serde(flatten)]
    pub decision: Decision,
}

/// What was decided, or found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Decision {
    /// The tick was due, and the slot was looked at.
    Ticked {
        /// The scheduled instant.
        #[serde(rename = "tick_ms", with = "chrono::serde::ts_milliseconds")]
        tick: DateTime<Utc>,
    },
    /// It was looked at because a person or a crontab asked for it.
    Asked,
    /// The labels that the job asks for are not this node's.
    NotSelected {
        /// What `only_on` wants and the node has not, like `zone=eu-1`.
        wanted: String,
    },
    /// The claim was granted.
    Claimed {
        /// Its number.
        attempt: Attempt,
    },
    /// Another node holds the slot.
    Held {
        /// Which.
        by: Option<NodeName>,
    },
    /// It is done.
    Done {
        /// By whom.
        by: Option<NodeName>,
    },
    /// The attempts are used up.
    Exhausted,
    /// The wait after a failed attempt is not over.
    Backoff,
    /// An operator paused the job.
    Paused,
    /// Another slot of the job still runs.
    Blocked {
        /// Where.
        by: Option<NodeName>,
    },
    /// By the store's clock the slot has not begun.
    Early,
    /// By the store's clock the slot is over.
    Closed,
    /// The start deadline after the tick had passed.
    TooLate,
    /// The node had no room to ask for it until it ended, or until its start deadline.
    Shed,
    /// The store could not be asked, or refused.
    StoreAway {
        /// The error, in one line.
        message: String,
    },
    /// The command was started.
    Started {
        /// Which attempt; 0 without a guard.
        attempt: Attempt,
        /// False: the store was away, and `on_store_error` is `run`.
        guarded: bool,
    },
    /// The command ended.
    Ended {
        /// Which attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
        /// Its exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// The lease could not be renewed while it was trusted: another node may start.
    LeaseInDoubt {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The lease is another's, or was unlocked.
    LeaseLost {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The store had forgotten the lease and has it again.
    LeaseRestored {
        /// Which attempt.
        attempt: Attempt,
    },
    /// Another attempt held the slot meanwhile: it ran more than once.
    Overtaken {
        /// Our attempt.
        attempt: Attempt,
        /// The other's node.
        by: NodeName,
    },
    /// How the attempt ended could not be told to the store in time.
    Unsettled {
        /// Which attempt.
        attempt: Attempt,
    },
    /// It stood in the queues of its locks.
    LockWaiting {
        /// Which attempt.
        attempt: Attempt,
        /// What it asked for, as people write it.
        locks: String,
        /// Entries in front of it.
        ahead: u32,
        /// On which node somebody held.
        by: NodeName,
        /// What for.
        label: String,
        /// Since when.
        #[serde(
            default,
            rename = "since_ms",
            with = "chrono::serde::ts_milliseconds_option",
            skip_serializing_if = "Option::is_none"
        )]
        since: Option<DateTime<Utc>>,
    },
    /// It held its locks.
    LockHeld {
        /// Which attempt.
        attempt: Attempt,
        /// What it held.
        locks: String,
        /// Their number.
        fence: Fence,
    },
    /// Its locks were another's, or could not be renewed in time.
    LockLost {
        /// Which attempt.
        attempt: Attempt,
        /// Whose, where that was known.
        to: Option<NodeName>,
    },
    /// It waited for its locks no longer, and its command was not started.
    LockLeft {
        /// Which attempt.
        attempt: Attempt,
        /// Why.
        why: String,
    },
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

impl NotePage {
    /// An empty page, begun at this instant.
    pub const fn new(id: String, node: NodeName, job_hash: Option<String>, at: DateTime<Utc>) -> Self {
        Self { last: at, id, node, job_hash, dropped: 0, notes: Vec::new() }
    }

    /// Adds a decision. The same one again is counted, and of too many the oldest goes.
    pub fn add(&mut self, at: DateTime<Utc>, decision: Decision) {
        self.last = self.last.max(at);
        if let Some(last) = self.notes.last_mut().filter(|last| last.decision == decision) {
            last.times = last.times.saturating_add(1);
            last.until = Some(at);
            return;
        }
        if self.notes.len() >= MOST_NOTES {
            self.notes.remove(0);
            self.dropped = self.dropped.saturating_add(1);
        }
        self.notes.push(Note { at, times: 1, until: None, decision });
    }

    /// When its first note was made.
    pub fn first(&self) -> DateTime<Utc> {
        self.notes.first().map_or(self.last, |note| note.at)
    }

    /// The order in which pages are read: as they were begun.
    pub fn sort(pages: &mut [Self]) {
        pages.sort_by(|a, b| a.first().cmp(&b.first()).then_with(|| a.id.cmp(&b.id)));
    }

    /// Which of these go when more are kept than [`MOST_PAGES`]: those whose last note is the oldest.
    pub fn surplus<T>(mut kept: Vec<(DateTime<Utc>, String, T)>) -> Vec<(String, T)> {
        kept.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let surplus = kept.len().saturating_sub(MOST_PAGES);
        kept.into_iter().take(surplus).map(|(_, id, rest)| (id, rest)).collect()
    }
}

impl Decision {
    /// The attempt that it is about.
    pub const fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Claimed { attempt }
            | Self::Started { attempt, .. }
            | Self::Ended { attempt, .. }
            | Self::LeaseInDoubt { attempt }
            | Self::LeaseLost { attempt }
            | Self::LeaseRestored { attempt }
            | Self::Overtaken { attempt, .. }
            | Self::Unsettled { attempt }
            | Self::LockWaiting { attempt, .. }
            | Self::LockHeld { attempt, .. }
            | Self::LockLost { attempt, .. }
            | Self::LockLeft { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }

    /// The store could not be asked; the text is cut to what a note may hold.
    pub fn store_away(message: &str) -> Self {
        Self::StoreAway { message: crate::text::message(message, LONGEST) }
    }
}

const fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_once(times: &u32) -> bool {
    *times == 1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u32) -> DateTime<Utc> {
        DateTime::from_timestamp(1_795_269_600 + i64::from(second), 0).unwrap()
    }

    fn page() -> NotePage {
        NotePage::new("p.1".to_owned(), NodeName::new("a").unwrap(), None, at(0))
    }

    #[test]
    fn the_same_decision_in_a_row_is_one_note_with_a_count() {
        let mut page = page();
        for second in 0..5 {
            page.add(at(second), Decision::Held { by: None });
        }
        page.add(at(9), Decision::Exhausted);
        let notes: Vec<_> = page.notes.iter().map(|note| (note.at, note.times, note.until)).collect();
        assert_eq!(notes, [(at(0), 5, Some(at(4))), (at(9), 1, None)]);
        assert_eq!(page.last, at(9));
    }

    #[test]
    fn of_too_many_notes_the_oldest_go_and_are_counted() {
        let mut page = page();
        for attempt in 1..=40 {
            page.add(at(attempt), Decision::Claimed { attempt });
        }
        assert_eq!((page.notes.len(), page.dropped), (MOST_NOTES, 8));
        assert_eq!(page.notes[0].decision, Decision::Claimed { attempt: 9 });
    }

    #[test]
    fn a_page_reads_back_as_it_was_written_and_begins_with_its_last_instant() {
        let mut page = page();
        page.add(at(1), Decision::Ticked { tick: at(0) });
        page.add(at(2), Decision::Held { by: Some(page.node.clone()) });
        page.add(at(3), Decision::Held { by: Some(page.node.clone()) });
        let text = serde_json::to_string(&page).unwrap();
        assert!(text.starts_with(r#"{"last_ms":1795269603000,"#), "{text}");
        assert_eq!(serde_json::from_str::<NotePage>(&text).unwrap(), page);
    }

    #[test]
    fn a_word_of_a_later_version_is_no_error() {
        let note: Note = serde_json::from_str(r#"{"at_ms":1,"what":"abducted","by":7}"#).unwrap();
        assert_eq!(note.decision, Decision::Unknown);
    }

    #[test]
    fn the_pages_whose_last_note_is_oldest_go_first() {
        let pages = (0..70).rev().map(|n| (at(n), format!("p{n}"), ())).collect();
        let gone: Vec<String> = NotePage::surplus(pages).into_iter().map(|(id, ())| id).collect();
        assert_eq!(gone, ["p0", "p1", "p2", "p3", "p4", "p5"]);
    }
}
