//! The registry beside the slots: which jobs and nodes there are, and which jobs are paused.

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::slot::Audit;
use crate::store::memory::ledger::Ledger;
use crate::store::{HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause};

impl Ledger {
    /// Makes the registry know these jobs ([`crate::store::Store::register`]).
    pub fn register(&mut self, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        for job in jobs {
            if let Some(entry) = job.registered(self.jobs.get(&job.name), now) {
                self.jobs.insert(job.name.clone(), entry);
            }
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
        let at = self.at(now);
        self.nodes.retain(|_, entry| entry.is_kept(at));
        self.nodes.insert(report.name.clone(), NodeEntry { report: report.clone(), seen: now });
        HeartbeatReply { now }
    }

    /// Every known node, by name ([`crate::store::Store::nodes`]).
    pub fn nodes(&self, now: DateTime<Utc>) -> Vec<NodeEntry> {
        self.nodes.values().filter(|entry| entry.is_kept(self.at(now))).cloned().collect()
    }

    /// Grants no slot of the job for a while ([`crate::store::Store::pause`]).
    pub fn pause(
        &mut self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
        now: DateTime<Utc>,
    ) -> Intervention {
        self.pauses.insert(job.clone(), Pause::begun(until, audit, now));
        self.tell_job(job);
        Intervention::Applied
    }

    /// Ends the pause now ([`crate::store::Store::resume`]). Its record then names who ended it, too.
    pub fn resume(&mut self, job: &JobName, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        let Some(ended) = self.pauses.get(job).cloned().and_then(|pause| pause.end(audit, now)) else {
            return Intervention::Unchanged;
        };
        self.pauses.insert(job.clone(), ended);
        self.tell_job(job);
        Intervention::Applied
    }

    /// Every job's last pause, by name ([`crate::store::Store::pauses`]).
    pub fn pauses(&self) -> Vec<(JobName, Pause)> {
        self.pauses.iter().map(|(job, pause)| (job.clone(), pause.clone())).collect()
    }
}
