//! The registry beside the slots: which jobs and nodes there are.

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::store::memory::ledger::Ledger;
use crate::store::{HeartbeatReply, JobEntry, NodeEntry, NodeReport};

impl Ledger {
    /// Makes the registry know these jobs ([`crate::store::Store::register`]).
    pub fn register(&mut self, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        for job in jobs {
            let known = self.jobs.get(&job.name);
            if known.is_some_and(|known| job.yields_to(known)) {
                continue;
            }
            let first_seen = known.map_or(now, |known| known.first_seen);
            self.jobs.insert(job.name.clone(), JobEntry { first_seen, ..job.clone() });
        }
        self.jobs()
    }

    /// Every known job, by name ([`crate::store::Store::jobs`]).
    pub fn jobs(&self) -> Vec<JobEntry> {
        self.jobs.values().cloned().collect()
    }

    /// Records that the node is alive ([`crate::store::Store::heartbeat`]). There is one entry per name: an instance
    /// replaces the earlier one.
    pub fn heartbeat(&mut self, report: &NodeReport, now: DateTime<Utc>) -> HeartbeatReply {
        let retention = self.retention;
        self.nodes.retain(|_, entry| later(entry.seen, retention) > now);
        self.nodes.insert(report.name.clone(), NodeEntry { report: report.clone(), seen: now });
        HeartbeatReply { now }
    }

    /// Every known node, by name ([`crate::store::Store::nodes`]).
    pub fn nodes(&self, now: DateTime<Utc>) -> Vec<NodeEntry> {
        let kept = |entry: &&NodeEntry| later(entry.seen, self.retention) > now;
        self.nodes.values().filter(kept).cloned().collect()
    }
}
