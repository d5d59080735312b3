//! The faults file: what was done to the cluster, when, and until when.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};

use super::fault::ServerFault;

pub(super) struct Book {
    file: File,
    counts: BTreeMap<&'static str, usize>,
    /// What the servers suffered, and what of it came to nothing.
    of_server: BTreeMap<ServerFault, usize>,
    without_effect: Vec<ServerFault>,
    by_themselves: usize,
}

impl Book {
    pub(super) fn open(path: &Path) -> Self {
        Self {
            file: OpenOptions::new().append(true).open(path).unwrap(),
            counts: BTreeMap::new(),
            of_server: BTreeMap::new(),
            without_effect: Vec::new(),
            by_themselves: 0,
        }
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

    /// Notes a fault of the server after which the servers are ready again.
    pub(super) fn of_server(&mut self, fault: ServerFault, took_effect: bool) {
        *self.of_server.entry(fault).or_default() += 1;
        self.without_effect.extend((!took_effect).then_some(fault));
    }

    /// Notes that the servers failed over though nobody struck them.
    pub(super) fn by_themselves(&mut self) {
        self.by_themselves += 1;
    }

    /// How often they did.
    pub(super) fn times_by_themselves(&self) -> usize {
        self.by_themselves
    }

    /// The kinds that struck the server.
    pub(super) fn kinds_of_server(&self) -> Vec<ServerFault> {
        self.of_server.keys().copied().collect()
    }

    /// Those after which the servers went on as if nothing had been: they tried nothing.
    pub(super) fn without_effect(&self) -> &[ServerFault] {
        &self.without_effect
    }

    /// How often another server led afterwards, or the same had begun anew, by the servers' own account.
    pub(super) fn other_lives(&self) -> usize {
        let struck = self.of_server.iter().filter(|(fault, _)| fault.begins_another_life());
        let in_vain = self.without_effect.iter().filter(|fault| fault.begins_another_life());
        struck.map(|(_, times)| times).sum::<usize>() - in_vain.count()
    }

    /// How many of each kind.
    pub(super) fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    pub(super) fn total(&self) -> usize {
        self.counts.values().sum()
    }
}
