//! The jobs that are known at a store: those of the file united with those that the store's registry remembers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::{AdminError, UnknownTarget};
use crate::clock::{earlier, later};
use crate::config::Config;
use crate::job::{JobName, JobSpec, NodeName};
use crate::observe::view::{NoStart, SlotView};
use crate::schedule::{ScheduleError, Timetable};
use crate::slot::{Slot, SlotRecord, SlotState};
use crate::store::{JobEntry, JobOrigin, NodeEntry};

/// A job, with what is needed to compute its slots.
#[derive(Clone, Debug)]
pub(crate) struct KnownJob {
    /// As the file says it, or else the registry.
    pub(crate) entry: JobEntry,
    /// As the file says it; none when only the registry knows it.
    pub(crate) spec: Option<Arc<JobSpec>>,
    /// Its ticks and slots.
    pub(crate) timetable: Timetable,
    /// When the registry first heard of it; none when no node has run it yet. Slots before that are nobody's miss.
    pub(crate) known_since: Option<DateTime<Utc>>,
    /// This process is a node that has it in its file, though its last heartbeat may not say so yet.
    pub(crate) here: bool,
    /// Nodes are alive, and none of them has it in its file.
    pub(crate) orphaned: bool,
    /// Nodes are alive and have it in their files, and none of them has the labels that its `only_on` asks for.
    pub(crate) unmatched: bool,
    /// Daemons start it, and no node is alive.
    pub(crate) unattended: bool,
}

/// Why a slot in which nothing happened is neither due nor missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleReason {
    /// The schedule does not fire in it.
    NoTick,
    /// Its first tick is to come.
    NotDue(DateTime<Utc>),
    /// All its ticks lie before the cluster first knew the job, then.
    NotOwed(DateTime<Utc>),
    /// It was over before the job was known, or no node had the job in its file any more.
    NotKnown,
    /// It is older than the records that the store keeps.
    Forgotten,
    /// The job is disabled in the file.
    Disabled,
}

/// Which store's registry was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Where it is, without secrets.
    pub(crate) location: String,
    /// The command that lists its jobs.
    pub(crate) listing: String,
}

/// Jobs by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// None where the file alone was read.
    asked: Option<Asked>,
    /// Whose heartbeat came last, and when; none where no node is known.
    pub(crate) heartbeat: Option<(NodeName, DateTime<Utc>)>,
    jobs: BTreeMap<JobName, KnownJob>,
    /// What could not be used, in words.
    pub(crate) warnings: Vec<String>,
}

impl Catalog {
    /// The file's jobs win over the registry's words about the same job.
    pub(crate) fn unite(file: Option<&Config>, registry: Vec<JobEntry>) -> Result<Self, AdminError> {
        let mut catalog = Self::default();
        for entry in registry {
            catalog.remember(entry);
        }
        for spec in file.iter().flat_map(|config| config.jobs.values()) {
            catalog.declare(spec)?;
        }
        Ok(catalog)
    }

    /// The same with the jobs that a node plans. One that cannot be used is left out with a warning: no node plans it.
    #[cfg(feature = "http")]
    pub(crate) fn planned(specs: &[Arc<JobSpec>], registry: Vec<JobEntry>) -> Self {
        let mut catalog = Self::default();
        for entry in registry {
            catalog.remember(entry);
        }
        for spec in specs {
            if let Err(error) = catalog.share(Arc::clone(spec)) {
                catalog.warnings.push(error.to_string());
            }
        }
        catalog.jobs.values_mut().for_each(|job| job.here = job.spec.is_some());
        catalog
    }

    /// Every job, by name.
    #[cfg(feature = "http")]
    pub(crate) fn into_jobs(self) -> impl Iterator<Item = KnownJob> {
        self.jobs.into_values()
    }

    /// Which of the jobs the nodes have in their files, and had.
    pub(crate) fn planned_by(mut self, nodes: &[NodeEntry], now: DateTime<Utc>) -> Self {
        self.jobs.values_mut().for_each(|job| job.planned_by(nodes, now));
        self
    }

    /// Whether a node is alive that starts what daemons start. Not asked for a page: the node that serves it is one.
    pub(crate) fn attended_by(mut self, nodes: &[NodeEntry], now: DateTime<Utc>) -> Self {
        let nobody = !nodes.iter().any(|node| node.is_alive(now));
        self.jobs.values_mut().for_each(|job| job.unattended = nobody && job.entry.origin == JobOrigin::File);
        let last = nodes.iter().max_by_key(|node| node.seen);
        self.heartbeat = last.map(|node| (node.report.name.clone(), node.seen));
        self
    }

    /// Whose registry it was.
    pub(crate) fn of_store(self, asked: Asked) -> Self {
        Self { asked: Some(asked), ..self }
    }

    /// Read anew from where the other was read.
    pub(crate) fn like(self, other: &Self) -> Self {
        Self { asked: other.asked.clone(), ..self }
    }

    /// Told where there is nothing to list because no job is known.
    pub(crate) fn no_jobs(&self) -> String {
        let registry = self.asked.as_ref().map_or("the store", |asked| asked.location.as_str());
        format!("no jobs: the registry of {registry} knows none; name a file with --config PATH")
    }

    /// Takes a job from the registry. One that this version cannot read is left out with a warning: the others are
    /// still worth showing.
    fn remember(&mut self, entry: JobEntry) {
        match Timetable::parse(entry.name.clone(), &entry.schedule, &entry.timezone, &entry.period) {
            Ok(timetable) => {
                let known_since = Some(entry.first_seen);
                self.jobs.insert(
                    entry.name.clone(),
                    KnownJob {
                        entry,
                        spec: None,
                        timetable,
                        known_since,
                        here: false,
                        orphaned: false,
                        unmatched: false,
                        unattended: false,
                    },
                );
            }
            Err(error) => self.warnings.push(format!("job {} of the registry is left out: {error}", entry.name)),
        }
    }

    /// Takes a job as a file says it.
    pub(crate) fn declare(&mut self, spec: &JobSpec) -> Result<(), AdminError> {
        self.share(Arc::new(spec.clone()))
    }

    fn share(&mut self, spec: Arc<JobSpec>) -> Result<(), AdminError> {
        let unusable = |error: ScheduleError| AdminError::Unusable(format!("job {}: {error}", spec.name));
        let timetable = Timetable::of(&spec).map_err(unusable)?;
        let known_since = self.jobs.get(&spec.name).and_then(|known| known.known_since);
        let planned = self.jobs.get(&spec.name).and_then(|known| known.entry.planned);
        let entry = JobEntry { planned, ..JobEntry::of(&spec, known_since.unwrap_or(DateTime::UNIX_EPOCH)) };
        let name = spec.name.clone();
        let known = KnownJob {
            entry,
            spec: Some(spec),
            timetable,
            known_since,
            here: false,
            orphaned: false,
            unmatched: false,
            unattended: false,
        };
        self.jobs.insert(name, known);
        Ok(())
    }

    /// Every job, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KnownJob> {
        self.jobs.values()
    }

    /// True when no job is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A job by its name, or the nearest name there is.
    pub(crate) fn find(&self, name: &JobName) -> Result<&KnownJob, AdminError> {
        self.jobs.get(name).ok_or_else(|| AdminError::Unknown(self.unknown(name.clone())))
    }

    fn unknown(&self, job: JobName) -> UnknownTarget {
        let asked = self.asked.as_ref();
        let location = asked.map(|asked| asked.location.clone());
        if self.is_empty() {
            return UnknownTarget::OnlyJob { job, location };
        }
        let likeness = |known: &JobName| strsim::jaro_winkler(known.as_str(), job.as_str());
        let nearest = self.jobs.keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        if let Some(nearest) = nearest.filter(|known| likeness(known) > 0.7) {
            return UnknownTarget::MisspeltJob { nearest: nearest.clone(), job };
        }
        let listing = asked.map_or_else(|| "cronward jobs".to_owned(), |asked| asked.listing.clone());
        UnknownTarget::Job { job, location, listing }
    }
}

impl KnownJob {
    /// Which of the nodes have it in their files, and had.
    pub(crate) fn planned_by(&mut self, nodes: &[NodeEntry], now: DateTime<Utc>) {
        if self.entry.origin != JobOrigin::File {
            return;
        }
        let name = &self.entry.name;
        let mut alive = nodes.iter().filter(|node| node.is_alive(now)).peekable();
        let seen = nodes.iter().filter(|node| node.plans(name)).map(|node| node.seen).max();
        self.orphaned = !self.here && alive.peek().is_some() && !alive.clone().any(|node| node.plans(name));
        let fits = |node: &&NodeEntry| self.spec.as_ref().is_none_or(|spec| spec.fits(&node.report.labels));
        let mut planning = alive.filter(|node| node.plans(name)).peekable();
        self.unmatched = planning.peek().is_some() && !planning.any(|node| fits(&node));
        self.entry.planned = self.entry.planned.max(seen);
    }

    /// Whether nobody was to run a slot that begins then: no node had the job in its file any more.
    pub(crate) fn is_nobodys(&self, start: DateTime<Utc>) -> bool {
        self.orphaned && self.entry.planned.is_none_or(|planned| planned <= start)
    }

    /// Why a slot is neither due nor missed by `now`, where nothing happened in it and that has a reason. `retention`: how long the store
    /// keeps records.
    pub(crate) fn idle_reason(
        &self,
        record: &SlotRecord,
        now: DateTime<Utc>,
        retention: Duration,
    ) -> Option<IdleReason> {
        let slot = &record.slot;
        if record.is_touched() {
            return None;
        }
        let Some(tick) = self.owed_tick(slot).or(self.first_tick(slot)) else { return Some(IdleReason::NoTick) };
        if tick > now {
            return Some(IdleReason::NotDue(tick));
        }
        if let Some(since) = self.not_owed(slot) {
            return Some(IdleReason::NotOwed(since));
        }
        if self.known_since.unwrap_or(now) >= slot.end() || self.is_nobodys(slot.start()) {
            return Some(IdleReason::NotKnown);
        }
        if later(slot.end(), retention) < now {
            return Some(IdleReason::Forgotten);
        }
        (!self.entry.enabled).then_some(IdleReason::Disabled)
    }

    /// Why no node starts the slot by itself, as far as the job says: a pause does so, too.
    pub(crate) fn no_start(&self, slot: &Slot, now: DateTime<Utc>) -> Option<NoStart> {
        if self.entry.origin != JobOrigin::File {
            return None;
        }
        if self.orphaned {
            return Some(NoStart::Orphaned);
        }
        if !self.entry.enabled {
            return Some(NoStart::Disabled);
        }
        if self.unmatched {
            return Some(NoStart::NoNode);
        }
        if self.not_owed(slot).is_some() {
            return Some(NoStart::NotDue);
        }
        self.is_too_late(slot, now).then_some(NoStart::TooLate)
    }

    /// The same of the current slot, where it waits.
    pub(crate) fn no_start_of(&self, slot: &SlotView, now: DateTime<Utc>) -> Option<NoStart> {
        let waits = matches!(slot.state, SlotState::Pending | SlotState::Retrying);
        let slot = self.timetable.slot_with_key(slot.slot.parse().ok().filter(|_| waits)?)?;
        self.no_start(&slot, now).or(self.unattended.then_some(NoStart::NoLiveNode))
    }

    /// The next tick at which a run may start, for a job that is planned: of a slot that has come to its end no other tick starts one.
    pub(crate) fn next_tick(&self, current: Option<&SlotView>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let is_over = |slot: &&SlotView| matches!(slot.state, SlotState::Done | SlotState::Failed) && slot.end > now;
        let from = current.filter(is_over).map_or(now, |slot| earlier(slot.end, Duration::from_nanos(1)));
        let plans = self.entry.enabled && !self.orphaned && !self.unmatched && !self.unattended;
        self.timetable.schedule().next_after(from).filter(|_| plans)
    }

    /// Whether the start deadline of the slot's last tick has passed.
    fn is_too_late(&self, slot: &Slot, now: DateTime<Utc>) -> bool {
        let deadline = self.spec.as_ref().and_then(|spec| spec.policy.start_deadline);
        let last = self.timetable.last_tick(slot);
        deadline.zip(last).is_some_and(|(deadline, tick)| later(tick, deadline) <= now)
    }

    /// The slots that may be the current one at `now`, best first: the slot of now, and, where that has no tick, the
    /// last slot that had one. Which of the two it is depends on whether anything happened in the first.
    pub(crate) fn current(&self, now: DateTime<Utc>) -> Vec<Slot> {
        let of_now = self.timetable.slot_at(now);
        if of_now.as_ref().is_some_and(|slot| self.first_tick(slot).is_some()) {
            return of_now.into_iter().collect();
        }
        let last = self.timetable.schedule().last_until(now).and_then(|tick| self.timetable.slot_of(tick));
        of_now.into_iter().chain(last).collect()
    }

    /// The slot's first tick since the cluster has known the job; none where there is none.
    pub(crate) fn owed_tick(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        let from = self.known_since.map_or(slot.start(), |since| since.max(slot.start()));
        self.timetable.tick_from(from).filter(|tick| *tick < slot.end())
    }

    /// When the cluster first knew the job, where that was in the slot and after its last tick: no schedule owes the slot.
    pub(crate) fn not_owed(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        let since = self.known_since.filter(|since| *since < slot.end() && self.entry.origin == JobOrigin::File)?;
        self.timetable.last_tick(slot).is_some_and(|tick| tick < since).then_some(since)
    }

    /// Whether a slot that ended then without a run is missed: the cluster knew the job, and owed a tick of it.
    pub(crate) fn owes(&self, end: DateTime<Utc>) -> bool {
        let Some(since) = self.known_since.filter(|since| *since < end) else { return false };
        let last = self.timetable.schedule().last_until(earlier(end, Duration::from_nanos(1)));
        self.entry.origin != JobOrigin::File || last.is_some_and(|tick| tick >= since)
    }

    /// The slot's first tick; none where it has none.
    pub(crate) fn first_tick(&self, slot: &Slot) -> Option<DateTime<Utc>> {
        self.timetable.slots(slot.start(), slot.end()).map(|(_, tick)| tick).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture::{at, entry};

    fn catalog(names: &[&str]) -> Catalog {
        Catalog::unite(None, names.iter().map(|name| entry(name)).collect()).unwrap()
    }

    fn unknown(catalog: &Catalog, name: &str) -> String {
        catalog.find(&JobName::new(name).unwrap()).unwrap_err().to_string()
    }

    fn current(schedule: &str, now: &str) -> Vec<String> {
        let entry = JobEntry { schedule: schedule.to_owned(), ..entry("billing") };
        let catalog = Catalog::unite(None, vec![entry]).unwrap();
        let job = catalog.iter().next().unwrap();
        job.current(at(now)).iter().map(|slot| slot.key().to_string()).collect()
    }

    #[test]
    fn a_slot_in_which_nothing_happened_is_due_or_missed_unless_there_is_a_reason() {
        let day = |days: u64| Duration::from_secs(days * 86_400);
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let job = |known: Option<&str>, schedule: &str, enabled: bool| {
            let entry = JobEntry { schedule: schedule.to_owned(), enabled, ..entry("billing") };
            let mut job = Catalog::unite(None, vec![entry]).unwrap().iter().next().unwrap().clone();
            job.known_since = known.map(at);
            job
        };
        let (early, late) = (Some("2026-11-01T00:00:00Z"), Some("2026-11-21T15:00:00Z"));
        let just_before = Some("2026-11-21T14:59:59Z");
        let (tick, over) = (at("2026-11-21T14:30:00Z"), "2026-11-21T15:00:00Z");
        let reason = |job: &KnownJob, now: &str| job.idle_reason(&SlotRecord::untouched(slot.clone()), at(now), day(7));
        let half = "30 * * * *";
        for (known, schedule, enabled, now, wanted) in [
            (early, half, true, "2026-11-21T14:29:59Z", Some(IdleReason::NotDue(tick))),
            (None, half, true, "2026-11-21T14:29:59Z", Some(IdleReason::NotDue(tick))),
            (early, half, false, "2026-11-21T14:29:59Z", Some(IdleReason::NotDue(tick))),
            (early, half, true, "2026-11-21T14:30:00Z", None),
            (None, half, true, "2026-11-21T14:30:00Z", None),
            (early, half, false, "2026-11-21T14:30:00Z", Some(IdleReason::Disabled)),
            (early, "0 3 * * *", true, "2026-11-21T14:30:00Z", Some(IdleReason::NoTick)),
            (early, half, true, over, None),
            (Some("2026-11-21T14:30:00Z"), half, true, over, None),
            (just_before, half, true, over, Some(IdleReason::NotOwed(at("2026-11-21T14:59:59Z")))),
            (just_before, half, true, "2026-11-21T14:59:59Z", Some(IdleReason::NotOwed(at("2026-11-21T14:59:59Z")))),
            (
                Some("2026-11-21T14:10:00Z"),
                "0,30 * * * *",
                true,
                "2026-11-21T14:20:00Z",
                Some(IdleReason::NotDue(tick)),
            ),
            (late, half, true, over, Some(IdleReason::NotKnown)),
            (None, half, true, over, Some(IdleReason::NotKnown)),
            (early, half, true, "2026-11-28T15:00:00Z", None),
            (early, half, true, "2026-11-28T15:00:01Z", Some(IdleReason::Forgotten)),
        ] {
            assert_eq!(reason(&job(known, schedule, enabled), now), wanted, "{known:?} {schedule} {enabled} {now}");
        }
        let planned = Some(at("2026-11-21T14:00:00Z"));
        let mut orphan = job(early, half, true);
        (orphan.orphaned, orphan.entry.planned) = (true, planned);
        assert_eq!(reason(&orphan, over), Some(IdleReason::NotKnown), "nobody had it in a file when the slot began");
        orphan.entry.planned = planned.map(|at| later(at, Duration::from_secs(1)));
        assert_eq!(reason(&orphan, over), None);
        let ran = SlotRecord { attempts: 1, ..SlotRecord::untouched(slot.clone()) };
        assert_eq!(job(None, "0 3 * * *", false).idle_reason(&ran, at("2026-12-21T15:00:01Z"), day(7)), None);
    }

    #[test]
    fn no_node_starts_a_slot_once_the_start_deadline_of_its_last_tick_has_passed() {
        let (mut spec, slot) = (
            JobSpec::new(JobName::new("billing").unwrap(), "0,30 * * * *", crate::job::Program::Direct(Vec::new())),
            Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
        );
        let job = |spec: &JobSpec| {
            let mut catalog = Catalog::default();
            catalog.declare(spec).unwrap();
            catalog.iter().next().unwrap().clone()
        };
        assert_eq!(job(&spec).no_start(&slot, at("2026-11-21T14:59:59Z")), None);
        spec.policy.start_deadline = Some(Duration::from_secs(60));
        for (now, wanted) in [
            ("2026-11-21T14:01:00Z", None),
            ("2026-11-21T14:30:59Z", None),
            ("2026-11-21T14:31:00Z", Some(NoStart::TooLate)),
        ] {
            assert_eq!(job(&spec).no_start(&slot, at(now)), wanted, "{now}");
        }
    }

    #[test]
    fn no_node_starts_a_slot_where_no_live_one_that_has_the_job_has_the_labels_that_it_asks_for() {
        let mut spec =
            JobSpec::new(JobName::new("billing").unwrap(), "0 * * * *", crate::job::Program::Direct(Vec::new()));
        spec.only_on.insert("zone".to_owned(), "eu-1".to_owned());
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let now = at("2026-11-21T14:00:30Z");
        let node = |name: &str, zone: &str, seen: &str| {
            let mut report = crate::admin::fixture::report(name, now);
            report.labels.insert("zone".to_owned(), zone.to_owned());
            report.job_hashes.insert(spec.name.clone(), String::new());
            NodeEntry { report, seen: at(seen) }
        };
        let (here, there) = (node("a", "eu-1", "2026-11-21T14:00:29Z"), node("b", "us-2", "2026-11-21T14:00:29Z"));
        let silent = node("a", "eu-1", "2026-11-21T14:00:01Z");
        for (nodes, wanted) in [
            (vec![there.clone(), here], None),
            (vec![there.clone()], Some(NoStart::NoNode)),
            (vec![there, silent.clone()], Some(NoStart::NoNode)),
            // Nobody alive is told elsewhere.
            (vec![silent], None),
        ] {
            let mut catalog = Catalog::default();
            catalog.declare(&spec).unwrap();
            let job = catalog.planned_by(&nodes, now).iter().next().unwrap().clone();
            assert_eq!(job.no_start(&slot, now), wanted, "{nodes:?}");
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_job_that_this_node_has_in_its_file_is_no_orphan_before_its_next_heartbeat_says_so() {
        let spec = JobSpec::new(JobName::new("billing").unwrap(), "0 * * * *", crate::job::Program::Direct(Vec::new()));
        let now = at(crate::admin::fixture::NOON);
        let nodes = [NodeEntry { report: crate::admin::fixture::report("a", now), seen: now }];
        let orphaned = |catalog: Catalog| catalog.planned_by(&nodes, now).iter().next().unwrap().orphaned;
        assert!(!orphaned(Catalog::planned(&[Arc::new(spec)], Vec::new())));
        assert!(orphaned(Catalog::planned(&[], vec![entry("billing")])));
    }

    #[test]
    fn the_next_tick_is_one_that_starts_something() {
        let entry = JobEntry { schedule: "*/20 * * * *".to_owned(), ..entry("billing") };
        let mut job = Catalog::unite(None, vec![entry]).unwrap().iter().next().unwrap().clone();
        let now = at("2026-11-21T12:10:00Z");
        let view = |record: SlotRecord| SlotView::of(&record, now, 3);
        use crate::admin::fixture::{done, failed, untouched, waiting};
        for (slot, wanted) in [
            (None, "2026-11-21T12:20:00Z"),
            (Some(view(untouched())), "2026-11-21T12:20:00Z"),
            (Some(view(waiting())), "2026-11-21T12:20:00Z"),
            (Some(view(done())), "2026-11-21T13:00:00Z"),
            (Some(view(failed())), "2026-11-21T13:00:00Z"),
        ] {
            assert_eq!(job.next_tick(slot.as_ref(), now), Some(at(wanted)), "{slot:?}");
        }
        assert_eq!(job.next_tick(Some(&view(done())), at("2026-11-21T14:10:00Z")), Some(at("2026-11-21T14:20:00Z")));
        job.entry.enabled = false;
        assert_eq!(job.next_tick(None, now), None);
    }

    #[test]
    fn an_unknown_job_is_answered_with_the_nearest_name() {
        let known = catalog(&["billing", "mail"]);
        assert_eq!(unknown(&known, "biling"), "no job biling: did you mean billing?");
        assert_eq!(unknown(&known, "zzz"), "no job zzz: `cronward jobs` lists those there are");
        assert!(unknown(&catalog(&[]), "billing").contains("--config"));
        let asked =
            Asked { location: "sqlite:/a.db".to_owned(), listing: "cronward jobs --store sqlite:a.db".to_owned() };
        assert_eq!(
            unknown(&known.of_store(asked.clone()), "zzz"),
            "no job zzz at sqlite:/a.db: `cronward jobs --store sqlite:a.db` lists those there are"
        );
        let none = catalog(&[]).of_store(asked);
        assert!(unknown(&none, "zzz").starts_with("no job zzz at sqlite:/a.db: "), "{}", unknown(&none, "zzz"));
        assert!(none.no_jobs().contains("the registry of sqlite:/a.db"));
    }

    #[test]
    fn a_job_that_cannot_be_read_does_not_hide_the_others() {
        let odd = JobEntry { schedule: "whenever".to_owned(), ..entry("odd") };
        let catalog = Catalog::unite(None, vec![odd, entry("billing")]).unwrap();
        assert_eq!(catalog.iter().map(|job| job.entry.name.as_str()).collect::<Vec<_>>(), ["billing"]);
        assert!(catalog.warnings[0].starts_with("job odd of the registry is left out"), "{:?}", catalog.warnings);
    }

    #[test]
    fn the_current_slot_is_that_of_now_when_it_has_a_tick_even_one_to_come() {
        assert_eq!(current("0 * * * *", "2026-11-21T14:10:00Z"), ["2026-11-21T14Z"]);
        assert_eq!(current("30 * * * *", "2026-11-21T14:10:00Z"), ["2026-11-21T14Z"]);
    }

    #[test]
    fn where_the_slot_of_now_has_no_tick_the_last_one_that_had_is_asked_for_too() {
        assert_eq!(current("0 3 * * *", "2026-11-21T14:10:00Z"), ["2026-11-21T14Z", "2026-11-21T03Z"]);
    }
}
