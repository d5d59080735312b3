//! What becomes of each event: a number. Never blocks, and a job that is not in the table is not counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::event::{Event, LeaveAnswer, LockLeave, LockLoss};
use crate::job::JobSpec;
use crate::metrics::Metrics;
use crate::metrics::histogram::OF_STARTS;
use crate::metrics::jobs::{JobFigures, JobTable};
use crate::observe::Observer;
use crate::slot::{Outcome, Overlap, Slot, Trigger, Verdict};

impl Observer for Metrics {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        match event {
            Event::ClaimAnswered { answer, .. } => self.claims.add(answer.as_str()),
            Event::RenewalAnswered { answer } => self.renewals.add(answer.as_str()),
            Event::ReloadRefused { .. } => self.reload_refused.store(true, Ordering::Relaxed),
            Event::StoreForgot { .. } => drop(self.data_losses.fetch_add(1, Ordering::Relaxed)),
            Event::RunStarted { attempt: 1, trigger: Trigger::Schedule, late, .. } => {
                self.start_delay.add(&OF_STARTS, *late);
            }
            _ => {}
        }
        let Some(slot) = slot else { return };
        self.locks.hear(slot, event, self.setting.clock.now().mono);
        if let Some(job) = self.table().find(slot.job()) {
            job.figures.hear(slot, event);
        }
    }

    fn plan(&self, jobs: &[Arc<JobSpec>], config_hash: &str) {
        self.put_table(JobTable::of(jobs, config_hash, &self.setting.jobs, &self.table()));
        self.reload_refused.store(false, Ordering::Relaxed);
        self.reloaded.set(Some(self.setting.clock.now().wall));
    }
}

impl JobFigures {
    fn hear(&self, slot: &Slot, event: &Event) {
        match event {
            Event::Granted { attempt, .. } => self.granted(slot, *attempt),
            Event::RunStarted { .. } => self.run_started(),
            Event::RunEnded { outcome, duration, .. } => self.run_ended(outcome.as_str(), *duration),
            // The record of a success is the slot's verdict.
            Event::Settled { outcome: Outcome::Success, .. } => self.slots.add(Verdict::Done.as_str()),
            Event::Closed { verdict } => self.slots.add(verdict.as_str()),
            Event::Overtaken { overlap: Overlap::No, .. } => {}
            Event::LeaseLost { attempt, unstarted: false, .. } | Event::Overtaken { attempt, unstarted: false, .. } => {
                self.overlaps.add(slot, *attempt);
            }
            // A doubt that passes is no loss, as of a lease.
            Event::LockLost(LockLoss { attempt, in_doubt: false, unstarted: false, .. })
            | Event::LockLeft(LockLeave { attempt, answer: LeaveAnswer::Overtaken, why: None, .. }) => {
                self.locks_lost.add(slot, *attempt);
            }
            _ => {}
        }
    }
}
