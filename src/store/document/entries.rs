//! The registry's entries as texts. A job's entry is its own JSON.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::slot::Audit;
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
}

impl PauseText {
    pub(in crate::store) fn of(pause: Pause) -> Self {
        Self { since: pause.since, until: pause.until, audit: pause.audit }
    }

    pub(in crate::store) fn pause(self) -> Pause {
        Pause { since: self.since, until: self.until, audit: self.audit }
    }
}
