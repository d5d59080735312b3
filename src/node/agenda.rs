//! The ticks that wait for their instant: those that the planner hands out and that the cluster owes. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::clock::Now;
use crate::job::{JobName, JobSpec};
use crate::node::first_seen::{FirstSeen, Learnt};
use crate::node::plan::Entry;
use crate::schedule::{Planner, Tick};
use crate::store::JobEntry;

/// Armed ticks, and what decides on the next.
#[derive(Debug)]
pub(super) struct Agenda {
    planner: Planner,
    pub(super) first_seen: FirstSeen,
    /// The number keeps those of one instant apart.
    armed: BTreeMap<(DateTime<Utc>, u64), Tick>,
    armed_count: u64,
}

impl Agenda {
    pub(super) fn new(planner: Planner) -> Self {
        Self { planner, first_seen: FirstSeen::default(), armed: BTreeMap::new(), armed_count: 0 }
    }

    /// Takes the jobs of a plan, and the entries of those that are enabled.
    pub(super) fn set(&mut self, jobs: &[Arc<JobSpec>], entries: &BTreeMap<JobName, Entry>, now: Now) {
        self.first_seen.set(jobs.iter().map(|spec| &spec.name), now);
        self.planner.set(entries.values().filter(|entry| entry.ours).map(|entry| entry.timetable.clone()).collect());
    }

    /// The current slot of a job is looked at by the next beat.
    pub(super) fn look_again(&mut self, job: &JobName) {
        self.planner.look_again(job);
    }

    /// Arms what the planner hands out. Answers how many current slots it looked at, as after a gap.
    pub(super) fn beat(&mut self, now: Now) -> usize {
        let beat = self.planner.beat(now.wall);
        let looked = beat.look_back.len();
        for tick in beat.look_back.into_iter().chain(beat.ticks) {
            let owed = self.first_seen.admit(tick, now);
            owed.into_iter().for_each(|tick| self.arm(tick));
        }
        looked
    }

    /// The registry of jobs refuses the plan. Answers since when each job is known without it.
    pub(super) fn known_here(&self, now: Now) -> Vec<(JobName, DateTime<Utc>)> {
        self.first_seen.known_here(now)
    }

    /// Takes over what the registry of jobs has answered. Answers when each job was first seen.
    pub(super) fn learn(&mut self, registry: &[JobEntry], now: Now) -> Vec<(JobName, DateTime<Utc>)> {
        let Learnt { owed, older, seen } = self.first_seen.learn(registry, now);
        owed.into_iter().for_each(|tick| self.arm(tick));
        older.iter().for_each(|job| self.look_again(job));
        seen
    }

    fn arm(&mut self, tick: Tick) {
        self.armed_count += 1;
        self.armed.insert((tick.fire_at, self.armed_count), tick);
    }

    /// When the next armed tick is due.
    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.armed.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next armed tick, once it is due. By a clock that was put right meanwhile it may be older than the job.
    pub(super) fn due(&mut self, now: Now) -> Option<Tick> {
        loop {
            let entry = self.armed.first_entry().filter(|entry| entry.key().0 <= now.wall)?;
            let owed = self.first_seen.admit(entry.remove(), now);
            if owed.is_some() {
                return owed;
            }
        }
    }

    /// Keeps the ticks of these jobs alone.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&JobName) -> bool) {
        self.first_seen.keep_held(&is_kept);
        self.armed.retain(|_, tick| is_kept(&tick.job));
    }

    /// Nothing new begins.
    pub(super) fn clear(&mut self) {
        self.armed.clear();
        self.first_seen.forget_held();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::clock::Mono;
    use crate::job::Program;
    use crate::schedule::Timetable;

    fn now(wall: &str, seconds: u64) -> Now {
        let mono = Mono::default() + Duration::from_secs(seconds);
        Now { mono, wall: format!("2026-11-21T{wall}Z").parse().unwrap() }
    }

    #[test]
    fn a_tick_that_was_armed_by_a_clock_behind_is_owed_by_the_right_one_alone() {
        for (first_seen, owed) in [("13:00:00", true), ("14:05:00", false)] {
            let spec = Arc::new(JobSpec::new("a".parse().unwrap(), "0 * * * *", Program::Direct(Vec::new())));
            let timetable = Timetable::of(&spec).unwrap();
            let entry = Entry { spec: Arc::clone(&spec), timetable, ours: true };
            let mut agenda = Agenda::new(Planner::new(Duration::from_secs(5)));
            agenda.set(&[Arc::clone(&spec)], &BTreeMap::from([(spec.name.clone(), entry)]), now("13:59:58", 0));
            agenda.beat(now("13:59:58", 0));
            let right = now("14:10:00", 1);
            assert_eq!(agenda.due(right), None, "the registry has not answered");
            let first_seen = now(first_seen, 0).wall;
            agenda.learn(&[JobEntry { first_seen, ..JobEntry::of(&spec, right.wall) }], right);
            assert_eq!(agenda.due(right).is_some(), owed, "{first_seen}");
        }
    }
}
