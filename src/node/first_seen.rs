//! When the cluster first knew each job of the plan: a job owes no scheduled time from before (rule 2). Pure.
//!
//! A scheduled time since this node took the job is owed in any case. Of an earlier one the registry decides, and until it answers the
//! tick is held. What the registry has answered is kept, and told it with each registration: a store that comes back empty makes no
//! known job a new one.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::clock::{Mono, Now, earlier};
use crate::job::JobName;
use crate::schedule::Tick;
use crate::store::JobEntry;

/// What is known of each job, and the ticks that wait for more.
#[derive(Debug, Default)]
pub(super) struct FirstSeen {
    jobs: BTreeMap<JobName, Sight>,
    /// Due ticks from before this node took their jobs, of which the registry has not answered yet: one of a job at the most.
    held: BTreeMap<JobName, Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Sight {
    /// When this node took the job. Its wall clock may be put right later.
    taken: Mono,
    /// By the registry; none until it has answered.
    registered: Option<DateTime<Utc>>,
}

impl Sight {
    /// The earliest instant at which the cluster is known to have had the job.
    fn first(self, now: Now) -> DateTime<Utc> {
        self.registered.unwrap_or_else(|| earlier(now.wall, now.mono.since(self.taken)))
    }
}

/// What follows from an answer of the registry.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    /// Ticks that were held and are owed.
    pub(super) owed: Vec<Tick>,
    /// Jobs that are older than this node knew when it last looked at their slots.
    pub(super) older: Vec<JobName>,
    /// Each job of the plan, and when it was first seen.
    pub(super) seen: Vec<(JobName, DateTime<Utc>)>,
}

impl FirstSeen {
    /// These are the jobs of the plan. Of one that stays everything is kept.
    pub(super) fn set<'a>(&mut self, jobs: impl Iterator<Item = &'a JobName>, now: Now) {
        let mut known = std::mem::take(&mut self.jobs);
        let taken = Sight { taken: now.mono, registered: None };
        self.jobs = jobs.map(|job| (job.clone(), known.remove(job).unwrap_or(taken))).collect();
        self.held.retain(|job, _| self.jobs.contains_key(job));
    }

    /// Since when the job is known, as the registry is told.
    pub(super) fn of(&self, job: &JobName, now: Now) -> DateTime<Utc> {
        self.jobs.get(job).map_or(now.wall, |sight| sight.first(now))
    }

    /// The tick where it is owed; one of which the registry has to decide is held.
    pub(super) fn admit(&mut self, tick: Tick, now: Now) -> Option<Tick> {
        let sight = self.jobs.get(&tick.job)?;
        if tick.at >= sight.first(now) {
            return Some(tick);
        }
        if sight.registered.is_none() {
            self.held.insert(tick.job.clone(), tick);
        }
        None
    }

    /// Since when each job is known, whatever the registry may say later.
    pub(super) fn known_here(&self, now: Now) -> Vec<(JobName, DateTime<Utc>)> {
        self.jobs.iter().map(|(job, sight)| (job.clone(), sight.first(now))).collect()
    }

    /// The registry has answered.
    pub(super) fn learn(&mut self, registry: &[JobEntry], now: Now) -> Learnt {
        let known: BTreeMap<&JobName, DateTime<Utc>> =
            registry.iter().map(|entry| (&entry.name, entry.first_seen)).collect();
        let mut learnt = Learnt::default();
        for (job, sight) in &mut self.jobs {
            let before = sight.registered;
            let first = known.get(job).copied().unwrap_or(DateTime::<Utc>::MAX_UTC).min(sight.first(now));
            sight.registered = Some(first);
            learnt.older.extend(before.filter(|before| first < *before).map(|_| job.clone()));
            learnt.seen.push((job.clone(), first));
        }
        let held = std::mem::take(&mut self.held);
        let lasting = held.into_values().filter(|tick| tick.slot.end() > now.wall);
        learnt.owed = lasting.filter_map(|tick| self.admit(tick, now)).collect();
        learnt
    }

    /// Keeps the held ticks of these jobs alone.
    pub(super) fn keep_held(&mut self, is_kept: impl Fn(&JobName) -> bool) {
        self.held.retain(|job, _| is_kept(job));
    }

    /// Nothing new begins.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobSpec, Program};
    use crate::slot::Slot;

    fn at(time: &str) -> DateTime<Utc> {
        format!("2026-11-21T{time}Z").parse().unwrap()
    }

    fn now(time: &str) -> Now {
        let wall = at(time);
        Now { mono: Mono::from_origin((wall - at("00:00:00")).to_std().unwrap()), wall }
    }

    fn job() -> JobName {
        "a".parse().unwrap()
    }

    fn tick(time: &str) -> Tick {
        let slot = Slot::parse("a", "2026-11-21T00Z", "2026-11-22T00Z").unwrap();
        Tick { job: job(), at: at(time), fire_at: at(time), slot }
    }

    fn registry(first_seen: &str) -> [JobEntry; 1] {
        let spec = JobSpec::new(job(), "0 * * * *", Program::Direct(Vec::new()));
        [JobEntry::of(&spec, at(first_seen))]
    }

    /// Of a node that took the job at six minutes past four.
    fn taken() -> FirstSeen {
        let mut seen = FirstSeen::default();
        seen.set([job()].iter(), now("04:06:00"));
        seen
    }

    #[test]
    fn a_tick_since_the_node_took_the_job_is_owed_whatever_the_registry_says() {
        let mut seen = taken();
        assert_eq!(seen.admit(tick("04:06:00"), now("04:06:00")), Some(tick("04:06:00")));
        assert_eq!(seen.admit(tick("05:00:00"), now("05:00:00")), Some(tick("05:00:00")));
        // Also where its clock is put right meanwhile.
        let right = Now { wall: at("03:16:00"), ..now("04:16:00") };
        assert_eq!(seen.admit(tick("03:06:00"), right), Some(tick("03:06:00")));
    }

    #[test]
    fn an_earlier_tick_waits_for_the_registry_and_is_owed_where_the_job_was_known_before() {
        for (first_seen, owed) in [("01:59:59", true), ("02:00:00", true), ("02:00:01", false), ("04:06:00", false)] {
            let mut seen = taken();
            assert_eq!(seen.admit(tick("02:00:00"), now("04:06:00")), None);
            let learnt = seen.learn(&registry(first_seen), now("04:06:01"));
            assert_eq!(learnt.owed.len(), usize::from(owed), "{first_seen}");
            assert_eq!(seen.admit(tick("02:00:00"), now("04:06:02")).is_some(), owed, "{first_seen}");
        }
    }

    #[test]
    fn while_the_registry_takes_no_job_a_tick_from_before_the_node_is_held() {
        let mut seen = taken();
        seen.admit(tick("02:00:00"), now("04:06:00"));
        assert_eq!(seen.known_here(now("04:06:01")), [(job(), at("04:06:00"))]);
        assert_eq!(seen.admit(tick("02:00:00"), now("04:06:02")), None);
        // It was a standby, for one.
        assert_eq!(seen.learn(&registry("01:00:00"), now("04:06:03")).owed, [tick("02:00:00")]);
    }

    #[test]
    fn a_tick_that_another_file_no_longer_has_is_not_held() {
        let mut seen = taken();
        seen.admit(tick("02:00:00"), now("04:06:00"));
        seen.keep_held(|_| false);
        assert!(seen.learn(&registry("01:00:00"), now("04:06:03")).owed.is_empty());
    }

    #[test]
    fn a_slot_that_is_over_when_the_registry_answers_is_no_longer_owed() {
        let mut seen = taken();
        seen.admit(tick("02:00:00"), now("04:06:00"));
        let over = now("04:06:00").plus(std::time::Duration::from_secs(86_400));
        assert!(seen.learn(&registry("01:00:00"), over).owed.is_empty());
    }

    #[test]
    fn a_known_job_stays_known_when_the_store_comes_back_empty() {
        let mut seen = taken();
        seen.learn(&registry("01:00:00"), now("04:06:01"));
        seen.set([job()].iter(), now("05:00:00"));
        assert_eq!(seen.of(&job(), now("05:00:00")), at("01:00:00"));
        seen.learn(&registry("05:00:00"), now("05:00:01"));
        assert_eq!(seen.of(&job(), now("05:00:02")), at("01:00:00"));
    }

    #[test]
    fn a_job_that_another_node_has_known_for_longer_is_looked_at_again() {
        let mut seen = taken();
        let learnt = seen.learn(&registry("04:06:00"), now("04:06:01"));
        assert!(learnt.older.is_empty());
        let learnt = seen.learn(&registry("01:00:00"), now("04:06:30"));
        assert_eq!(learnt.older, [job()]);
        assert!(seen.learn(&registry("01:00:00"), now("04:07:00")).older.is_empty());
    }
}
