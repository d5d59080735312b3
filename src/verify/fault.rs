//! A fault that somebody injected, and what it can be blamed for.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::clock::later;
use crate::job::NodeName;
use crate::slot::Slot;

/// A line of a faults file: `{"at":"2026-11-21T14:00:05Z","kind":"kill","target":"a"}`.
///
/// The kinds that mean something: `kill`, `crash`, `power`, `terminate` and `term` end a node; `wipe`, `flush`, `failover`,
/// `evict`, `restart` and `restore` lose what a store knew; `reset`, `unlock`, `mark_done`, `pause` and `resume` are an
/// operator's; `drain`, `reload`, `clock`, `script_flush`, `kill_run` and `stop_run` excuse nothing. Everything else
/// (`stop`, `partition`, `delay`, …) may cause anything but a loss of data. A target is a node's name, a job, a `job@slot`,
/// or something that concerns everybody, like `store`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// When it began.
    pub at: DateTime<Utc>,
    /// What it was.
    pub kind: String,
    /// Whom it struck.
    #[serde(default)]
    pub target: String,
    /// When it ended; at once, if nothing is said.
    #[serde(default)]
    pub until: Option<DateTime<Utc>>,
}

const DEATHS: &[&str] = &["kill", "crash", "power", "terminate", "term"];
const DATA_LOSS: &[&str] = &["wipe", "flush", "failover", "evict", "restart", "restore"];
/// After these the protocol promises each slot once all the same, or the nodes themselves tell what came of them: a node that
/// leaves gives its runs back, a run that is killed has failed, clocks are the store's, a forgotten script is sent again.
const HARMLESS: &[&str] = &["drain", "reload", "clock", "script_flush", "kill_run", "stop_run"];
const OPERATOR: &[&str] = &["reset", "mark_done", "pause", "resume"];

impl Fault {
    /// It excuses nothing.
    pub(super) fn is_harmless(&self) -> bool {
        HARMLESS.contains(&&*self.kind)
    }

    /// A node is gone after it.
    pub(super) fn is_death(&self) -> bool {
        DEATHS.contains(&&*self.kind)
    }

    /// What the store knew may be gone after it.
    pub(super) fn loses_data(&self) -> bool {
        DATA_LOSS.contains(&&*self.kind) || (self.is_death() && self.target == "store")
    }

    /// Another run can come of it, one after the other. Who pauses or resumes a job, or marks a slot done, starts nothing.
    pub(super) fn allows_repeat(&self) -> bool {
        !["mark_done", "pause", "resume"].contains(&&*self.kind)
    }

    /// It can keep a slot from being done. Operators' verbs do not, but for a pause: what they take back was done, or
    /// failed with all its attempts.
    pub(super) fn allows_loss(&self) -> bool {
        !["mark_done", "resume", "reset", "unlock"].contains(&&*self.kind)
    }

    /// How often it can have lost what the store knew of one slot. Who evicts while a slot runs, and again when it is done,
    /// has entered one fault.
    pub(super) fn times_data_is_lost(&self) -> usize {
        match (self.loses_data(), &*self.kind) {
            (true, "evict") => 2,
            (lost, _) => usize::from(lost),
        }
    }

    /// It keeps a node, or the whole cluster, from taking slots for as long as it lasts. Who dies is gone without it, and
    /// of an operator's deeds only a pause does that.
    pub(super) fn keeps_from_work(&self) -> bool {
        let of_a_node = self.is_death() && self.target != "store";
        !of_a_node && self.allows_loss()
    }

    /// Two runs at once can come of it. A node that dies takes its commands along.
    pub(super) fn allows_overlap(&self) -> bool {
        let of_a_node = self.is_death() && self.target != "store";
        !of_a_node && !OPERATOR.contains(&&*self.kind)
    }

    /// A run that was to be killed when its lease was lost can go on through it: its node stood still, or nobody could know
    /// that another one would be let in.
    pub(super) fn allows_overlap_with_a_kill(&self, node: &NodeName) -> bool {
        (self.kind == "stop" && self.target == node.as_str()) || self.loses_data() || self.kind == "unlock"
    }

    /// Whether it concerns a slot in which these nodes had a part. A target that is no node concerns everybody, unless it
    /// is another job or slot; `everybody` are all nodes that are known.
    pub(super) fn concerns(&self, slot: &Slot, nodes: &[&NodeName], everybody: &[&NodeName]) -> bool {
        if everybody.iter().any(|node| node.as_str() == self.target) {
            return nodes.iter().any(|node| node.as_str() == self.target);
        }
        match self.target.split_once('@') {
            Some((job, key)) => job == slot.job().as_str() && key == slot.key().to_string(),
            None if OPERATOR.contains(&&*self.kind) || self.kind == "unlock" => self.target == slot.job().as_str(),
            None => true,
        }
    }

    /// Whether it, or what follows from it for so long, falls into a span.
    pub(super) fn strikes(&self, from: DateTime<Utc>, to: DateTime<Utc>, aftermath: Duration) -> bool {
        self.at <= to && later(self.until.unwrap_or(self.at), aftermath) >= from
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        format!("{} of {} at {}", self.kind, self.target, self.at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
    }
}
