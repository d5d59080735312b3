//! The registry's entries as texts. A job's entry is its own JSON.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::slot::{Audit, NotePage};
use crate::store::{NodeEntry, NodeReport, Pause};

/// A node and when it was last heard of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct NodeText {
    #[serde(rename = "seen_ms", with = "chrono::serde::ts_milliseconds")]
    seen: DateTime<Utc>,
    report: NodeReport,
}

impl NodeText {
    pub(in crate::store) fn of(entry: NodeEntry) -> Self {
        Self { seen: entry.seen, report: entry.report }
    }

    pub(in crate::store) fn entry(self) -> NodeEntry {
        NodeEntry { report: self.report, seen: self.seen }
    }
}

/// A job's last pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PauseText {
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    /// Without an end: until resumed.
    #[serde(
        default,
        rename = "until_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    until: Option<DateTime<Utc>>,
    audit: Audit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Audit>,
}

impl PauseText {
    pub(in crate::store) fn of(pause: Pause) -> Self {
        let Pause { since, until, audit, ended } = pause;
        Self { since, until, audit, ended }
    }

    pub(in crate::store) fn pause(self) -> Pause {
        let Self { since, until, audit, ended } = self;
        Pause { since, until, audit, ended }
    }
}

/// One page of notes on a slot.
#[cfg(feature = "etcd")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct NoteText {
    /// The last change or the slot's end, whichever is later: the retention counts from there.
    #[serde(rename = "kept_from_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) kept_from: DateTime<Utc>,
    pub(in crate::store) page: NotePage,
}

/// All pages of notes on a slot.
#[cfg(feature = "zookeeper")]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::store) struct NotesText {
    /// The last change or the slot's end, whichever is later: the retention counts from there.
    #[serde(rename = "kept_from_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) kept_from: DateTime<Utc>,
    pub(in crate::store) pages: Vec<NotePage>,
}

#[cfg(feature = "zookeeper")]
impl NotesText {
    /// The page takes the place of its earlier form; of too many the oldest go.
    pub(in crate::store) fn put(&mut self, page: NotePage) {
        self.pages.retain(|known| known.id != page.id);
        self.pages.push(page);
        let kept = self.pages.iter().map(|page| (page.last, page.id.clone(), ())).collect();
        for (id, ()) in NotePage::surplus(kept) {
            self.pages.retain(|known| known.id != id);
        }
    }
}
