//! What a node is, what it is to do, and how it is, for whoever watches over it: systemd's watchdog, a health check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::Now;
use crate::drive::MAX_RUNNING;
use crate::job::{JobName, JobSpec, NodeName};
use crate::schedule::{ScheduleError, Timetable};
use crate::slot::{Decision, Slot};
use crate::store::{JobEntry, NodeReport};
use crate::zone::{Zone, ZoneRelease};

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

/// What a node does for its store and its place in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Upkeep {
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// The store's records do not expire by themselves.
    pub purges: bool,
    /// The store tells by itself that a slot was opened again.
    pub hints: bool,
}

impl Upkeep {
    /// Who was not heard of for longer may be dead.
    pub(super) fn silence(self) -> Duration {
        self.heartbeat * 2
    }

    /// A slot that ended so long ago and has no verdict yet is told as left behind. Not longer than a silence: what ended since
    /// then is looked for by who comes next, what ended before and is told by nobody would be lost.
    pub(super) const fn behind(self) -> Duration {
        self.heartbeat
    }
}

/// The time zone database as it is now.
#[derive(Clone, Debug)]
pub struct ZonesNow {
    /// Its folder and version.
    pub release: ZoneRelease,
    /// The zones that are in use, with their rules.
    pub zones: Vec<Zone>,
}

/// The jobs of one file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Every job, also those that are disabled or for other nodes.
    pub jobs: Vec<Arc<JobSpec>>,
    /// Hash over all jobs.
    pub config_hash: String,
    /// Hash of each job.
    pub job_hashes: BTreeMap<JobName, String>,
    /// Runs of this node at once, at the most.
    pub max_running: usize,
    /// Where the rules of the jobs' time zones come from; none where every job is in UTC.
    pub zones: Option<ZoneRelease>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            config_hash: String::new(),
            job_hashes: BTreeMap::new(),
            max_running: MAX_RUNNING,
            zones: None,
        }
    }
}

/// A job with its compiled timetable.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As in its file.
    pub spec: Arc<JobSpec>,
    pub(crate) timetable: Timetable,
    /// This node claims it.
    pub(crate) ours: bool,
}

impl Plan {
    /// Compiles every enabled job for a node with these labels.
    pub(super) fn compile(&self, identity: &Identity) -> Result<BTreeMap<JobName, Entry>, ScheduleError> {
        let mut entries = BTreeMap::new();
        for spec in self.jobs.iter().filter(|spec| spec.enabled) {
            let ours = spec.fits(&identity.labels);
            let entry = Entry { spec: Arc::clone(spec), timetable: Timetable::of(spec)?, ours };
            entries.insert(spec.name.clone(), entry);
        }
        Ok(entries)
    }

    /// The same jobs with the rules that their time zones have now; none where nothing is different.
    pub(super) fn in_zones(&self, zones: &ZonesNow) -> Option<Self> {
        let rules: BTreeMap<&str, &Zone> = zones.zones.iter().map(|zone| (zone.name(), zone)).collect();
        let in_force = |spec: &Arc<JobSpec>| match rules.get(spec.timezone.name()) {
            Some(zone) if spec.timezone != **zone => {
                Arc::new(JobSpec { timezone: (*zone).clone(), ..(**spec).clone() })
            }
            _ => Arc::clone(spec),
        };
        let jobs: Vec<Arc<JobSpec>> = self.jobs.iter().map(in_force).collect();
        let release = self.zones.as_ref().map(|_| zones.release.clone());
        let is_same = jobs.iter().zip(&self.jobs).all(|(new, old)| Arc::ptr_eq(new, old)) && release == self.zones;
        (!is_same).then(|| Self { jobs, zones: release, ..self.clone() })
    }

    /// The jobs as the registry knows them.
    pub(super) fn registry(&self, now: DateTime<Utc>, first_seen: impl Fn(&JobName) -> DateTime<Utc>) -> Vec<JobEntry> {
        let entry = |spec: &Arc<JobSpec>| JobEntry { first_seen: first_seen(&spec.name), ..JobEntry::of(spec, now) };
        self.jobs.iter().map(entry).collect()
    }

    pub(super) fn report(&self, identity: &Identity) -> NodeReport {
        NodeReport {
            name: identity.name.clone(),
            instance: identity.instance.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_hash: self.config_hash.clone(),
            zones: self.zones.clone(),
            job_hashes: self.job_hashes.clone(),
            labels: identity.labels.clone(),
            started_at: identity.started_at,
            clock_offset_ms: 0,
            running: Vec::new(),
            draining: false,
            stopped: false,
            namesake: None,
            behind: BTreeMap::new(),
            since: BTreeMap::new(),
            silent_since: None,
        }
    }
}

/// The jobs of two plans that are not the same in both.
pub(super) fn changed(old: &BTreeMap<JobName, Entry>, new: &BTreeMap<JobName, Entry>) -> BTreeSet<JobName> {
    let same = |job: &JobName| matches!((old.get(job), new.get(job)), (Some(old), Some(new)) if old.spec == new.spec);
    old.keys().chain(new.keys()).filter(|job| !same(job)).cloned().collect()
}

/// Whether a job's armed ticks are ticks of its entry in the next plan, too.
pub(super) fn still_ticks(pair: (Option<&Entry>, Option<&Entry>)) -> bool {
    matches!(pair, (Some(old), Some(new)) if new.ours && old.timetable == new.timetable)
}

/// Slots of one job that are noted as let pass between two heartbeats: more than one each second are no news.
const MOST_PASSED_OVER: usize = 16;

/// The slots that began in a span (without a start: that last) and are for nodes with other labels, as they are noted.
pub(super) fn not_selected<'a>(
    entries: &'a BTreeMap<JobName, Entry>,
    labels: &'a BTreeMap<String, String>,
    (since, now): (Option<DateTime<Utc>>, DateTime<Utc>),
) -> impl Iterator<Item = (Slot, Decision)> + 'a {
    entries.values().filter(|entry| !entry.ours).flat_map(move |Entry { spec, timetable, .. }| {
        let current = || timetable.slot_at(now).map_or(now, |slot| slot.start());
        let wanted = wanted(&spec.only_on, labels);
        let slots = timetable.slots(since.unwrap_or_else(current), now).take(MOST_PASSED_OVER);
        slots.map(move |(slot, _)| (slot, Decision::NotSelected { wanted: wanted.clone() }))
    })
}

/// What a job asks for and these labels lack.
fn wanted(only_on: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> String {
    let lacking = only_on.iter().filter(|(label, value)| labels.get(*label) != Some(*value));
    lacking.map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(", ")
}

/// A node's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Beats of the planner since the start. One that stays the same for seconds means that nothing is planned.
    pub beats: u64,
    /// When the last of them was, by the node's clocks; none until then.
    pub last_beat: Option<Now>,
    /// Whether the last heartbeat reached the store.
    pub store_up: bool,
    /// Whether the last heartbeat was answered with a refusal: a password, a permission, data that is not cronward's.
    pub store_refuses: bool,
    /// When the store was last reached, by the node's clock; none until then.
    pub store_seen: Option<DateTime<Utc>>,
    /// The node's clock minus the store's, in milliseconds.
    pub clock_offset_ms: i64,
    /// Slots that this node runs now.
    pub running: usize,
    /// True from the shutdown on.
    pub draining: bool,
    /// True once the store has refused what was noted for `cronward why`.
    pub notes_refused: bool,
}
