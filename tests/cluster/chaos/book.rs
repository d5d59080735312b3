//! The faults file: what was done to the cluster, when, and until when.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};

pub(super) struct Book {
    file: File,
    counts: BTreeMap<&'static str, usize>,
}

impl Book {
    pub(super) fn open(path: &Path) -> Self {
        Self { file: OpenOptions::new().append(true).open(path).unwrap(), counts: BTreeMap::new() }
    }

    /// Enters a fault that is over.
    pub(super) fn enter(&mut self, kind: &'static str, target: &str, at: DateTime<Utc>, until: DateTime<Utc>) {
        let text = |instant: DateTime<Utc>| instant.to_rfc3339_opts(SecondsFormat::Millis, true);
        let mut line = serde_json::json!({ "at": text(at), "kind": kind, "target": target });
        // A node is dead from one instant on; what comes of that is not longer for its being away longer.
        if kind != "kill" {
            line["until"] = text(until).into();
        }
        writeln!(self.file, "{line}").unwrap();
        *self.counts.entry(kind).or_default() += 1;
    }

    /// How many of each kind.
    pub(super) fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    pub(super) fn total(&self) -> usize {
        self.counts.values().sum()
    }
}
