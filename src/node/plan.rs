//! What a node is and what it is to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::clock::earlier;
use crate::drive::{MOST_OLDER, longest_run, older_slots};
use crate::job::{Concurrency, JobName, JobSpec, NodeName};
use crate::schedule::{ScheduleError, Timetable};
use crate::slot::Slot;
use crate::store::{JobEntry, NodeReport};

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: NodeName,
    /// Fresh at each start.
    pub instance: String,
    /// Its labels, for `only_on`.
    pub labels: BTreeMap<String, String>,
    /// When it started, by its own clock.
    pub started_at: DateTime<Utc>,
}

/// The jobs of one file.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every job, also those that are disabled or for other nodes.
    pub jobs: Vec<Arc<JobSpec>>,
    /// Hash over all jobs.
    pub config_hash: String,
    /// Hash of each job.
    pub job_hashes: BTreeMap<JobName, String>,
}

/// A job with its compiled timetable.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) spec: Arc<JobSpec>,
    pub(super) timetable: Timetable,
    /// This node claims it.
    pub(super) ours: bool,
    /// The last slot that was asked about with the older ones that it names: nearly those of the next one.
    named: Option<(Slot, Vec<Slot>)>,
}

impl Entry {
    /// The older slots whose lease forbids a start of this one; newest first. Slots are asked about one after the other, so
    /// those of the slot before are not looked for again: at a full minute, 1,000 jobs may each name half an hour of slots.
    pub(super) fn not_during(&mut self, slot: &Slot) -> Vec<Slot> {
        if self.spec.policy.concurrency == Concurrency::Allow {
            return Vec::new();
        }
        let reach = longest_run(&self.spec.policy);
        let older: Vec<Slot> = match self.named.take() {
            Some((last, before)) if last.end() == slot.start() => {
                let oldest = earlier(slot.start(), reach);
                let reached = |older: &Slot| older.end() > oldest;
                std::iter::once(last).chain(before).take_while(reached).take(MOST_OLDER).collect()
            }
            _ => older_slots(&self.timetable, &self.spec.policy, slot),
        };
        self.named = Some((slot.clone(), older.clone()));
        older
    }
}

impl Plan {
    /// Compiles every enabled job for a node with these labels.
    pub(super) fn compile(&self, identity: &Identity) -> Result<BTreeMap<JobName, Entry>, ScheduleError> {
        let mut entries = BTreeMap::new();
        for spec in self.jobs.iter().filter(|spec| spec.enabled) {
            let ours = spec.only_on.iter().all(|(label, value)| identity.labels.get(label) == Some(value));
            let entry = Entry { spec: Arc::clone(spec), timetable: Timetable::of(spec)?, ours, named: None };
            entries.insert(spec.name.clone(), entry);
        }
        Ok(entries)
    }

    /// The jobs as the registry knows them.
    pub(super) fn registry(&self, now: DateTime<Utc>) -> Vec<JobEntry> {
        self.jobs.iter().map(|spec| JobEntry::of(spec, now)).collect()
    }

    pub(super) fn report(&self, identity: &Identity) -> NodeReport {
        NodeReport {
            name: identity.name.clone(),
            instance: identity.instance.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_hash: self.config_hash.clone(),
            job_hashes: self.job_hashes.clone(),
            labels: identity.labels.clone(),
            started_at: identity.started_at,
            clock_offset_ms: 0,
            running: Vec::new(),
            draining: false,
            behind: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::job::{Policy, Program};
    use crate::slot::Period;

    fn entry(schedule: &str, policy: Policy) -> Entry {
        let job = JobName::new("a").unwrap();
        let spec = JobSpec::new(job, schedule, Program::Shell("true".to_owned()));
        let spec = Arc::new(JobSpec { period: Period::Tick, policy, ..spec });
        Entry { timetable: Timetable::of(&spec).unwrap(), spec, ours: true, named: None }
    }

    #[test]
    fn the_older_slots_that_are_remembered_are_those_that_a_search_finds() {
        let five_minutes = Policy { timeout: Some(Duration::from_secs(229)), ..Policy::default() };
        for (schedule, policy, most) in [
            ("*/2 * * * * *", Policy::default(), MOST_OLDER),
            ("* * * * *", Policy::default(), 32),
            ("*/7 1-3 * * *", five_minutes.clone(), 2),
            ("0,1,2,30,33 * * * *", five_minutes, 3),
        ] {
            let mut entry = entry(schedule, policy);
            let timetable = entry.timetable.clone();
            let mut from: DateTime<Utc> = "2026-11-21T01:00:00Z".parse().unwrap();
            let mut longest = 0;
            for step in 0..120 {
                // Now and then slots are left out, and one is asked about again.
                let skipped = if step % 50 == 49 { 3 } else { 0 };
                let slot = timetable
                    .slots(from, crate::clock::later(from, Duration::from_secs(7 * 86_400)))
                    .nth(skipped)
                    .unwrap()
                    .0;
                from = if step % 70 == 69 { from } else { slot.end() };
                let found = timetable.older(&slot, longest_run(&entry.spec.policy), MOST_OLDER);
                assert_eq!(entry.not_during(&slot), found, "{schedule}: {slot}");
                longest = longest.max(found.len());
            }
            assert_eq!(longest, most, "{schedule}");
        }
    }

    #[test]
    fn a_job_that_may_overlap_itself_names_no_older_slots() {
        let policy = Policy { concurrency: Concurrency::Allow, ..Policy::default() };
        let slot = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T14:01Z").unwrap();
        assert_eq!(entry("* * * * *", policy).not_during(&slot), []);
    }
}
