//! What a node asks its store besides the slots: heartbeats, registration, verdicts, purging. Each runs in a task of its
//! own, so that a slow store never delays a tick, and reports back to the loop.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::mpsc;

use crate::clock::{Clock, Now};
use crate::job::NodeName;
use crate::observe::Notebook;
use crate::slot::Slot;
use crate::store::{Closing, HeartbeatReply, JobEntry, NodeEntry, NodeReport, Store, StoreError};

/// What came of a chore.
#[derive(Debug)]
pub(super) enum Report {
    /// The registry of nodes, with the node's clocks before and after.
    Nodes { sent: Now, received: Now, reply: Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> },
    /// A heartbeat, with the node's clocks before and after; and, where it was looked for one, the report of another node of the
    /// same name.
    Heartbeat {
        sent: Now,
        received: Now,
        reply: Result<HeartbeatReply, StoreError>,
        namesake: Option<Option<Box<NodeReport>>>,
    },
    /// The registration of the plan with this number.
    Registered { plan: u64, reply: Result<Vec<JobEntry>, StoreError> },
    /// A verdict.
    Closed { slot: Slot, reply: Result<Closing, StoreError> },
    /// Old records are gone, or not; the next time will do.
    Purged,
    /// What was noted is in the store, or not; the same.
    Noted,
}

impl Report {
    /// Whether the store answered.
    pub(super) const fn is_answer(&self) -> bool {
        match self {
            Self::Nodes { reply, .. } => reply.is_ok(),
            Self::Heartbeat { reply, .. } => reply.is_ok(),
            Self::Registered { reply, .. } => reply.is_ok(),
            Self::Closed { reply, .. } => reply.is_ok(),
            Self::Purged | Self::Noted => false,
        }
    }
}

/// Starts chores.
#[derive(Clone, Debug)]
pub(super) struct Chores {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) notes: Arc<Notebook>,
    pub(super) outbox: mpsc::UnboundedSender<Report>,
}

/// Between two purges of a store whose records do not expire by themselves.
pub(super) const PURGE: Duration = Duration::from_secs(600);
/// Questions for a verdict on their way at once: after an outage they are many, and no tick may wait for them.
pub(super) const CLOSINGS: usize = 64;
/// The same while slots wait for room.
pub(super) const CLOSINGS_WHEN_BUSY: usize = 4;

impl Chores {
    pub(super) fn nodes(&self) {
        self.start(move |chores| async move {
            let sent = chores.clock.now();
            let reply = chores.store.nodes().await;
            Report::Nodes { sent, received: chores.clock.now(), reply }
        });
    }

    /// Tells that the node is alive. `looks`: whether another node of its name is looked for first.
    pub(super) fn heartbeat(&self, mut report: NodeReport, looks: bool) {
        self.start(move |chores| async move {
            let nodes = if looks { chores.store.nodes().await.ok() } else { None };
            let namesake = nodes.map(|(now, nodes)| namesake(&report, nodes, now));
            if let Some(namesake) = &namesake {
                report.namesake.clone_from(namesake);
            }
            let sent = chores.clock.now();
            let reply = chores.store.heartbeat(&report).await;
            Report::Heartbeat { sent, received: chores.clock.now(), reply, namesake }
        });
    }

    pub(super) fn register(&self, plan: u64, jobs: Vec<JobEntry>) {
        self.start(move |chores| async move { Report::Registered { plan, reply: chores.store.register(&jobs).await } });
    }

    pub(super) fn close(&self, slot: Slot, max_attempts: u32, node: NodeName) {
        self.start(move |chores| async move {
            let reply = chores.store.close(&slot, max_attempts, &node).await;
            Report::Closed { slot, reply }
        });
    }

    pub(super) fn purge(&self) {
        self.start(move |chores| async move {
            // Whatever is left is removed next time; a store that is away is told of by the heartbeat.
            let _ = chores.store.purge().await;
            Report::Purged
        });
    }

    /// Hands over what was noted since the last heartbeat.
    pub(super) fn note(&self) {
        self.start(move |chores| async move {
            chores.notes.flush(&*chores.store).await;
            Report::Noted
        });
    }

    fn start<F>(&self, chore: impl FnOnce(Self) -> F)
    where
        F: Future<Output = Report> + Send + 'static,
    {
        let outbox = self.outbox.clone();
        let chore = chore(self.clone());
        tokio::spawn(async move {
            let report = chore.await;
            // The loop may have ended; then nobody needs the answer.
            let _ = outbox.send(report);
        });
    }
}

/// Another node that is alive and goes by the name of this one: the registry's entry is its, and it was heard of after this one
/// had started. An entry from before is what this node left when it ran last.
fn namesake(own: &NodeReport, nodes: Vec<NodeEntry>, now: DateTime<Utc>) -> Option<Box<NodeReport>> {
    // The start is by the node's clock, the heartbeat by the store's.
    let started = own.started_at - TimeDelta::milliseconds(own.clock_offset_ms);
    let is_other = |entry: &NodeEntry| {
        entry.report.name == own.name && entry.report.instance != own.instance && entry.seen > started
    };
    let other = nodes.into_iter().find(|entry| is_other(entry) && entry.is_alive(now))?;
    Some(Box::new(NodeReport { namesake: None, ..other.report }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn report(instance: &str, started: &str) -> NodeReport {
        NodeReport {
            name: NodeName::new("a").unwrap(),
            instance: instance.to_owned(),
            version: "0.1.0".to_owned(),
            config_hash: String::new(),
            job_hashes: BTreeMap::new(),
            labels: BTreeMap::new(),
            started_at: started.parse().unwrap(),
            clock_offset_ms: 0,
            running: Vec::new(),
            draining: false,
            stopped: false,
            namesake: None,
            behind: BTreeMap::new(),
        }
    }

    #[test]
    fn another_node_of_the_same_name_is_one_that_was_heard_of_since_this_one_started() {
        let (own, other) = (report("own", "2026-11-21T12:00:00Z"), report("other", "2026-11-21T09:00:00Z"));
        let found = |report: &NodeReport, seen: &str| {
            let entry = NodeEntry { report: report.clone(), seen: seen.parse().unwrap() };
            namesake(&own, vec![entry], "2026-11-21T12:00:30Z".parse().unwrap()).map(|report| report.instance)
        };
        assert_eq!(found(&other, "2026-11-21T12:00:25Z").as_deref(), Some("other"));
        assert_eq!(found(&other, "2026-11-21T11:59:59Z"), None, "this node ran before");
        assert_eq!(found(&own, "2026-11-21T12:00:25Z"), None);
        assert_eq!(found(&NodeReport { stopped: true, ..other }, "2026-11-21T12:00:25Z"), None);
    }
}
