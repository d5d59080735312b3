//! An open store with the jobs that are known there, those of the file united with those that the store's registry remembers: what every
//! listing starts from.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::SystemClock;
use crate::config::{self, Config};
use crate::job::{JobName, JobSpec};
use crate::schedule::{ScheduleError, Timetable};
use crate::slot::{RunRecord, Slot, SlotRecord};
use crate::store::layer::{Credentials, Rotation};
use crate::store::{self, JobEntry, JobOrigin, LockStore, NodeEntry, OpenError, Reach, Store, StoreOptions};

/// The newest attempts of a slot whose outputs are read.
const OUTPUTS: usize = 16;
/// Slots asked for at once: enough to make round trips cheap, few enough to hold no store up.
pub(crate) const BATCH: usize = 100;

/// An open store with the jobs that are known there.
pub(crate) struct StoreSession {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// How it was opened.
    pub(crate) address: StoreAddress,
    /// The file's jobs and the registry's.
    pub(crate) catalog: Catalog,
    /// The store's clock when the session began: what "current" refers to.
    pub(crate) now: DateTime<Utc>,
}

impl StoreSession {
    /// Reads the file, opens the store, asks it for the time and for its registry. A store that is not there is not made.
    pub(crate) async fn open(args: &StoreArgs, console: &mut Console) -> Result<Self, Failure> {
        let file = args.read_file(console)?;
        let address = args.address(file.as_ref(), console)?.only_looked_at();
        let store = connect(&address).await?;
        Self::on(store, address, args, file.as_ref(), console).await
    }

    /// The same for a command that runs jobs of the file: it may be the first to use the store.
    pub(crate) async fn open_to_run(args: &StoreArgs, console: &mut Console) -> Result<Self, Failure> {
        let file = args.read_file(console)?;
        let address = args.address(file.as_ref(), console)?;
        let address = if file.is_some() { address } else { address.only_looked_at() };
        let store = connect(&address).await?;
        Self::on(store, address, args, file.as_ref(), console).await
    }

    /// Begins with a store that is open.
    pub(crate) async fn on(
        store: Arc<dyn Store>,
        address: StoreAddress,
        args: &StoreArgs,
        file: Option<&Config>,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let (now, nodes) = store.nodes().await?;
        let asked = Asked { location: store.location().to_owned(), listing: args.command("jobs") };
        let catalog = Catalog::unite(file, store.jobs().await?)?.planned_by(&nodes, now).of_store(asked);
        for warning in &catalog.warnings {
            console.warn(warning);
        }
        Ok(Self { store, address, catalog, now })
    }

    /// Begins with a store that is open, and the jobs of its registry alone: every node tells it of its file's.
    #[cfg(feature = "http")]
    pub(crate) async fn of_registry(store: Arc<dyn Store>, address: StoreAddress) -> Result<Self, Failure> {
        let (now, nodes) = store.nodes().await?;
        let catalog = Catalog::unite(None, store.jobs().await?)?.planned_by(&nodes, now);
        Ok(Self { store, address, catalog, now })
    }

    /// Asks the store for the time and for its registry once more. What cannot be read of it was told the first time.
    pub(crate) async fn look_again(&mut self, file: Option<&Config>) -> Result<(), Failure> {
        let (now, nodes) = self.store.nodes().await?;
        self.catalog = Catalog::unite(file, self.store.jobs().await?)?.planned_by(&nodes, now).like(&self.catalog);
        self.now = now;
        Ok(())
    }

    /// Reads the output of a run into its record, where it may have left one.
    pub(crate) async fn read_output(&self, slot: &Slot, run: &mut RunRecord) -> Result<(), Failure> {
        if run.outcome.is_some() && run.output.is_none() {
            run.output = self.store.output(slot, run.attempt, run.token).await?;
        }
        Ok(())
    }

    /// Reads the outputs of a slot's newest attempts into its record: each may have a megabyte.
    pub(crate) async fn read_outputs(&self, record: &mut SlotRecord) -> Result<(), Failure> {
        for run in record.runs.iter_mut().rev().take(OUTPUTS) {
            self.read_output(&record.slot, run).await?;
        }
        Ok(())
    }

    /// Records of slots without outputs, in the order asked, in as many steps as it takes.
    pub(crate) async fn inspect(&self, slots: &[Slot]) -> Result<Vec<SlotRecord>, Failure> {
        let mut records = Vec::with_capacity(slots.len());
        for batch in slots.chunks(BATCH) {
            records.extend(self.store.inspect(batch).await?.1);
        }
        Ok(records)
    }
}

/// Opens a store. One whose url is in a file of its own goes on with what is written there once it refuses its password.
pub(crate) async fn connect(address: &StoreAddress) -> Result<Arc<dyn Store>, Failure> {
    match address.url_file {
        Some(_) => Ok(connect_for_long(address).await?.store()),
        None => open(&address.url, &address.options).await.map_err(|error| address.failed(error)),
    }
}

/// For a command that guards its own against those of other processes: a store that none of them shares guards nothing.
pub(crate) fn is_shared(address: &StoreAddress) -> Result<(), Failure> {
    let alone = store::capability(&address.url).filter(|capability| capability.reach == Reach::Process);
    let Some(alone) = alone else { return Ok(()) };
    let name = alone.name;
    let why = format!("store {name} is this process's own and guards against no other: name a store that others share");
    Err(if address.from_command_line { Failure::Usage(why) } else { Failure::Configuration(why) })
}

/// [`connect`] for the locks that the store keeps.
pub(crate) async fn connect_locks(address: &StoreAddress) -> Result<Arc<dyn LockStore>, Failure> {
    let none = |store| address.failed(OpenError::Locks { store });
    // No file is opened, and nobody asked, for locks that are not there.
    if let Some(lacking) = store::capability(&address.url).filter(|capability| !capability.locks) {
        return Err(none(lacking.name));
    }
    let store = connect(address).await?;
    let name = store.capability().name;
    store.lock_store().ok_or_else(|| none(name))
}

/// [`connect`] for whoever may be told of another url.
pub(crate) async fn connect_for_long(address: &StoreAddress) -> Result<Arc<Rotation>, Failure> {
    let store = open(&address.url, &address.options).await.map_err(|error| address.failed(error))?;
    let written = UrlFile { url_file: address.url_file.clone(), options: address.options.clone().as_it_is() };
    Ok(Rotation::of(store, &address.url, Box::new(written), Arc::new(SystemClock)))
}

async fn open(url: &str, options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    store::open(url, options.clone()).await
}

/// Credentials as they are written in `url_file`.
#[derive(Debug)]
struct UrlFile {
    url_file: Option<PathBuf>,
    options: StoreOptions,
}

#[async_trait]
impl Credentials for UrlFile {
    async fn read(&self) -> Result<Option<String>, String> {
        let Some(path) = self.url_file.clone() else { return Ok(None) };
        let shown = path.display().to_string();
        // A disk that hangs holds up a thread, and nobody else.
        let read = tokio::task::spawn_blocking(move || config::read_url_file(&path)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        read.map(Some).map_err(|error| format!("url_file {shown:?} {error}"))
    }

    async fn open(&self, url: &str) -> Result<Arc<dyn Store>, OpenError> {
        open(url, &self.options).await
    }
}

/// Runs one command to its end on this thread: a listing needs no more, and starts faster.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Internal(format!("cannot start: {error}")))?;
    let result = runtime.block_on(work);
    // A thread may hang in a write to a reader that does not read: the result is there, and nothing waits for that.
    runtime.shutdown_background();
    result
}

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
    /// Nodes are alive, and none of them has it in its file.
    pub(crate) orphaned: bool,
}

/// Which store's registry was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Where it is, without secrets.
    pub(crate) location: String,
    /// The command that lists its jobs.
    listing: String,
}

/// Jobs by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// None where the file alone was read.
    asked: Option<Asked>,
    jobs: BTreeMap<JobName, KnownJob>,
    /// What could not be used, in words.
    pub(crate) warnings: Vec<String>,
}

impl Catalog {
    /// The file's jobs win over the registry's words about the same job.
    pub(crate) fn unite(file: Option<&Config>, registry: Vec<JobEntry>) -> Result<Self, Failure> {
        let mut catalog = Self::default();
        for entry in registry {
            catalog.remember(entry);
        }
        for spec in file.iter().flat_map(|config| config.jobs.values()) {
            catalog.declare(spec)?;
        }
        Ok(catalog)
    }

    /// Which of the jobs the nodes have in their files, and had.
    fn planned_by(mut self, nodes: &[NodeEntry], now: DateTime<Utc>) -> Self {
        let alive: Vec<&NodeEntry> = nodes.iter().filter(|node| node.is_alive(now)).collect();
        for job in self.jobs.values_mut().filter(|job| job.entry.origin == JobOrigin::File) {
            let plans = |node: &&NodeEntry| node.plans(&job.entry.name);
            let seen = nodes.iter().filter(plans).map(|node| node.seen).max();
            job.entry.planned = job.entry.planned.max(seen);
            job.orphaned = !alive.is_empty() && !alive.iter().any(|node| node.plans(&job.entry.name));
        }
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
                    KnownJob { entry, spec: None, timetable, known_since, orphaned: false },
                );
            }
            Err(error) => self.warnings.push(format!("job {} of the registry is left out: {error}", entry.name)),
        }
    }

    /// Takes a job as a file says it.
    pub(crate) fn declare(&mut self, spec: &JobSpec) -> Result<(), Failure> {
        let unusable = |error: ScheduleError| Failure::Configuration(format!("job {}: {error}", spec.name));
        let timetable = Timetable::of(spec).map_err(unusable)?;
        let known_since = self.jobs.get(&spec.name).and_then(|known| known.known_since);
        let planned = self.jobs.get(&spec.name).and_then(|known| known.entry.planned);
        let entry = JobEntry { planned, ..JobEntry::of(spec, known_since.unwrap_or(DateTime::UNIX_EPOCH)) };
        let known = KnownJob { entry, spec: Some(Arc::new(spec.clone())), timetable, known_since, orphaned: false };
        self.jobs.insert(spec.name.clone(), known);
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
    pub(crate) fn find(&self, name: &JobName) -> Result<&KnownJob, Failure> {
        self.jobs.get(name).ok_or_else(|| Failure::Usage(self.unknown(name)))
    }

    fn unknown(&self, name: &JobName) -> String {
        let (at, listing) = match &self.asked {
            Some(Asked { location, listing }) => (format!(" at {location}"), listing.as_str()),
            None => (String::new(), "cronward jobs"),
        };
        if self.is_empty() {
            return format!("no job {name}{at}: no other is known there either; name a file of jobs with --config");
        }
        let likeness = |known: &JobName| strsim::jaro_winkler(known.as_str(), name.as_str());
        let nearest = self.jobs.keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        match nearest.filter(|known| likeness(known) > 0.7) {
            Some(nearest) => format!("no job {name}: did you mean {nearest}?"),
            None => format!("no job {name}{at}: `{listing}` lists those there are"),
        }
    }
}

impl KnownJob {
    /// Whether nobody was to run a slot that begins then: no node had the job in its file any more.
    pub(crate) fn is_nobodys(&self, start: DateTime<Utc>) -> bool {
        self.orphaned && self.entry.planned.is_none_or(|planned| planned <= start)
    }

    /// The slots that may be the current one at `now`, best first: the slot of now, and, where that has no tick, the
    /// last slot that had one. Which of the two it is depends on whether anything happened in the first.
    pub(crate) fn current(&self, now: DateTime<Utc>) -> Vec<Slot> {
        let of_now = self.timetable.slot_at(now);
        if of_now.as_ref().is_some_and(|slot| self.ticks_in(slot)) {
            return of_now.into_iter().collect();
        }
        let last = self.timetable.schedule().last_until(now).and_then(|tick| self.timetable.slot_of(tick));
        of_now.into_iter().chain(last).collect()
    }

    /// Whether the slot has a tick.
    fn ticks_in(&self, slot: &Slot) -> bool {
        self.timetable.slots(slot.start(), slot.end()).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cli::fixture::{at, entry};

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
