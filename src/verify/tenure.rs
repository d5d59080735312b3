//! Who planned which job, from when to when, and when that node fires the tick of a slot.

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::job::JobName;
use crate::observe::journal::Plan;
use crate::schedule::Timetable;
use crate::slot::Slot;
use crate::verify::instance::Instance;
use crate::verify::story::span;

/// A job in the plan of one start of one node.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) instance: usize,
    pub(super) plan: Plan,
    pub(super) from: DateTime<Utc>,
    /// Since when its node has had the job without a break; none from its start on.
    gained: Option<DateTime<Utc>>,
    /// When a reload replaced it or took the job away, or the node was gone.
    pub(super) to: DateTime<Utc>,
    /// With the jitter, where the journal tells it.
    pub(super) table: Timetable,
}

/// Every plan of every node that can be read.
pub(super) fn tenures(instances: &[Instance], horizon: DateTime<Utc>) -> Vec<Tenure> {
    let mut tenures: Vec<Tenure> = Vec::new();
    for (index, instance) in instances.iter().enumerate() {
        for (number, (from, job, plan)) in instance.plans.iter().enumerate() {
            let Ok(table) = Timetable::parse(job.clone(), &plan.schedule, &plan.timezone, &plan.period) else {
                continue;
            };
            let table = table.with_jitter(plan.jitter_s.map(span).unwrap_or_default());
            let to = end(instance, number, job).unwrap_or_else(|| instance.until(horizon));
            let before = tenures.iter().rev().find(|other| other.instance == index && other.table.job() == job);
            let kept = before.filter(|before| before.to >= *from).map(|before| before.gained);
            let gained = kept.unwrap_or_else(|| instance.reloads.iter().any(|at| at <= from).then_some(*from));
            tenures.push(Tenure { instance: index, plan: plan.clone(), from: *from, gained, to, table });
        }
    }
    tenures
}

/// When a plan is replaced by a later one of the same job, or taken away by a reload that has no such job.
fn end(instance: &Instance, number: usize, job: &JobName) -> Option<DateTime<Utc>> {
    let (from, _, _) = instance.plans.get(number)?;
    let mut reloads = instance.reloads.iter().filter(|at| *at > from);
    let next = instance.plans.iter().skip(number + 1).find(|(_, other, _)| other == job).map(|(at, _, _)| *at);
    let Some(reload) = reloads.next() else { return next };
    let following = reloads.next();
    // The plan is told right after the reload.
    let again = next.filter(|at| following.is_none_or(|following| at < following));
    Some(again.unwrap_or(*reload))
}

impl Tenure {
    /// Whether its node claims the job's slots.
    pub(super) fn is_of(&self, job: &JobName) -> bool {
        self.plan.ours && self.table.job() == job
    }

    /// Whether its node sees to it that the slot gets its verdict: who takes a job from a new file begins with the slots that
    /// last, who starts goes on where others have left off.
    pub(super) fn closes(&self, slot: &Slot) -> bool {
        self.gained.is_none_or(|gained| gained < slot.end())
    }

    /// When its node fires the slot's first tick; none where it has other slots, or does not tell its jitter.
    pub(super) fn fires(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        self.plan.jitter_s?;
        let (own, tick) = self.table.slots(slot.start(), slot.start() + TimeDelta::milliseconds(1)).next()?;
        (own == *slot).then(|| self.table.fire_at(tick, slot))
    }

    /// Until when its node may start what it fired then.
    pub(super) fn may_start_until(&self, fired: DateTime<Utc>) -> DateTime<Utc> {
        let deadline = self.plan.start_deadline_s.map(|deadline| later(fired, span(deadline)));
        deadline.map_or(self.to, |deadline| deadline.min(self.to))
    }
}
