//! HUP: the file is read again while the node runs, on a thread of its own. What is wrong with it is one line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::service_manager::tell;
use super::zones;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, LoadError, StoreConfig};
use crate::event::Event;
use crate::job::{JobName, JobSpec};
use crate::node::{Command, Health, Plan};
use crate::observe::{Journal, Observer};
use crate::store::layer::Rotation;
use crate::zone::{Database, Zone};

/// A file that is read for longer is not read: its disk, or the server that it is on, hangs.
const LONGEST_READ: Duration = Duration::from_secs(30);

/// The jobs are moved out of the file: ten thousand of them are not held twice.
pub(super) fn plan(config: &mut Config) -> Plan {
    let (config_hash, job_hashes) = (config.hash(), config.job_hashes());
    let jobs: Vec<Arc<JobSpec>> = std::mem::take(&mut config.jobs).into_values().map(Arc::new).collect();
    let has_zones = jobs.iter().any(|job| job.timezone != Zone::UTC);
    let zones = has_zones.then(|| Database::current().release());
    Plan { jobs, config_hash, job_hashes, max_running: config.node.max_running, zones }
}

/// What a reload needs.
pub(super) struct Reloader {
    pub(super) path: PathBuf,
    /// Takes the store's url; none where the command line's is used instead.
    pub(super) rotation: Option<Arc<Rotation>>,
    /// What the daemon was started with, without its jobs.
    pub(super) file: Config,
    /// The jobs that it has now; the thread that reads a file compares them with the file's.
    pub(super) known: Arc<Mutex<KnownJobs>>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) health: watch::Receiver<Health>,
    pub(super) journal: Option<Arc<Journal>>,
    /// What else is read anew, beside the file and whatever is wrong with that.
    pub(super) also: Option<Also>,
    /// Who takes more of the file than its jobs, or refuses it.
    pub(super) taking: Option<Taking>,
}

/// Takes what it needs of a file that can be used; else why that cannot be.
pub(super) type Taking = Arc<TakeFile>;
type TakeFile = dyn Fn(&Config) -> Result<(), String> + Send + Sync;

/// Reads something anew, and tells how that went.
pub(super) type Also = Arc<dyn Fn() + Send + Sync>;

/// What a running daemon cannot change.
fn fixed(file: &Config) -> impl PartialEq {
    let (node, store) = (&file.node, &file.store);
    let kept = (node.labels.clone(), node.drain, node.journal.clone());
    let kept = (kept, file.http.clone());
    (kept, store.url_file.clone(), store.namespace.clone(), store.op_timeout, store.retention)
}

/// A file that can be used, with the plan that it makes.
pub(super) struct NewFile {
    config: Config,
    plan: Plan,
}

/// What came of reading the file; else why it cannot be used.
type FileRead = Result<NewFile, String>;

/// The jobs that run, and the file that was refused last because it lacks too many of them.
#[derive(Debug)]
pub(super) struct KnownJobs {
    names: BTreeSet<JobName>,
    doubted: Option<String>,
}

/// Names of a list that are shown.
const SHOWN: usize = 5;

impl KnownJobs {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { names: names(plan), doubted: None }
    }

    /// Refuses a file that seems to have lost jobs. A file that was cut off, or emptied by a deployment that failed, is often a valid
    /// one with fewer jobs: where more than half of the jobs are gone, or some are and the last line has no end (`is_whole` is false),
    /// the same jobs have to be asked for a second time.
    fn judge(&mut self, file: &Config, is_whole: bool) -> Result<(), String> {
        let gone: Vec<&JobName> = self.names.iter().filter(|name| !file.jobs.contains_key(*name)).collect();
        let shrinks = file.jobs.len() < self.names.len() && (gone.len() * 2 > self.names.len() || !is_whole);
        let hash = file.hash();
        if !shrinks || self.doubted.as_ref() == Some(&hash) {
            return Ok(());
        }
        let refusal = lacking(&gone, self.names.len(), is_whole);
        self.doubted = Some(hash);
        Err(refusal)
    }
}

fn names(plan: &Plan) -> BTreeSet<JobName> {
    plan.jobs.iter().map(|job| job.name.clone()).collect()
}

fn lacking(gone: &[&JobName], of: usize, is_whole: bool) -> String {
    let shown: Vec<&str> = gone.iter().take(SHOWN).map(|name| name.as_str()).collect();
    let more = if gone.len() > SHOWN { ", …" } else { "" };
    let cut = if is_whole { "" } else { ", and its last line has no end" };
    format!(
        "the file lacks {} of {of} jobs ({}{more}){cut}: send HUP once more if this is meant",
        gone.len(),
        shown.join(", ")
    )
}

/// The file being read. One at a time; what is asked for meanwhile is one more.
#[derive(Default)]
pub(super) struct FileReading {
    running: Option<JoinHandle<FileRead>>,
    again: bool,
}

impl FileReading {
    pub(super) fn ask(&mut self, reloader: &Reloader) {
        if self.running.is_some() {
            self.again = true;
        } else {
            self.running = Some(reloader.begin());
        }
    }

    /// What was read, once it is; never where nothing is read. Nothing is lost when this is dropped.
    pub(super) async fn done(&mut self) -> FileRead {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let read = running.await.unwrap_or_else(|error| Err(format!("the file was not read: {error}")));
        self.running = None;
        read
    }

    pub(super) fn go_on(&mut self, reloader: &Reloader) {
        if std::mem::take(&mut self.again) {
            self.running = Some(reloader.begin());
        }
    }
}

/// The file as it was read, unless that takes too long. What comes later is not taken: the next HUP reads it again.
async fn in_time(reading: impl Future<Output = Result<FileRead, JoinError>>) -> FileRead {
    match tokio::time::timeout(LONGEST_READ, reading).await {
        Ok(read) => read.unwrap_or_else(|error| Err(format!("the file was not read: {error}"))),
        Err(_) => Err(format!(
            "the file, or its url_file, was not read within {} s; look after its disk, then send HUP again",
            LONGEST_READ.as_secs()
        )),
    }
}

impl Reloader {
    fn begin(&self) -> JoinHandle<FileRead> {
        // Before the store was first reached the service is starting, and a reload does not make it ready.
        if let Ok(since) = NotifyState::monotonic_usec_now()
            && self.has_started()
        {
            tell(&[NotifyState::Reloading, since]);
        }
        // The same signal tells that the journal has been moved away (logrotate(8)).
        if let Some(journal) = &self.journal {
            journal.reopen();
        }
        let (path, also) = (self.path.clone(), self.also.clone());
        let (known, taking) = (Arc::clone(&self.known), self.taking.clone());
        let reading = tokio::task::spawn_blocking(move || {
            if let Some(also) = also {
                also();
            }
            zones::look();
            read_new(&path, &known, taking.as_deref())
        });
        tokio::spawn(in_time(reading))
    }

    /// In a task of its own: the store is asked whether it knows the new password. A url of another file would be at odds with the
    /// one that is read when the store refuses.
    fn offer(&self, store: StoreConfig) {
        let rotation = self.rotation.clone().filter(|_| store.url_file == self.file.store.url_file);
        if let Some(rotation) = rotation {
            tokio::spawn(async move { rotation.offer(&store.url).await });
        }
    }

    fn has_started(&self) -> bool {
        self.health.borrow().store_seen.is_some()
    }

    /// The file's jobs. When the file cannot be used, which is told, the jobs stay, with the rules that their time zones have now.
    pub(super) fn take(&mut self, read: FileRead) -> Command {
        if self.has_started() {
            tell(&[NotifyState::Ready]);
        }
        match read {
            Ok(NewFile { config, plan }) => {
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = KnownJobs::of(&plan);
                if fixed(&config) != fixed(&self.file) {
                    tracing::warn!("[node], [store] or [http] changed in the file: that needs a restart");
                }
                self.offer(config.store);
                Command::Reload(plan)
            }
            Err(error) => {
                self.observer.event(None, &Event::ReloadRefused { error });
                Command::Zones(zones::now())
            }
        }
    }
}

/// The file, if its jobs are accepted. What else takes a part of it takes nothing of a file whose jobs are refused.
fn read_new(path: &Path, known: &Mutex<KnownJobs>, taking: Option<&TakeFile>) -> FileRead {
    let (mut config, is_whole) = read(path)?;
    known.lock().unwrap_or_else(PoisonError::into_inner).judge(&config, is_whole)?;
    taking.map_or(Ok(()), |take| take(&config))?;
    let plan = plan(&mut config);
    Ok(NewFile { config, plan })
}

/// The file, and whether its last line has an end: a file that is still being written, or was cut off, has none; else why it cannot be used.
fn read(path: &Path) -> Result<(Config, bool), String> {
    let environment = config::Environment::of_process(SystemClock.now().wall);
    match config::load(path, &environment) {
        Ok((config, report)) => Ok((config, report.text.ends_with('\n'))),
        Err(error @ LoadError::File { .. }) => Err(error.to_string()),
        Err(LoadError::Invalid(report)) => {
            let first = report.findings.iter().find(|finding| finding.severity == config::Severity::Error);
            let place = first.map(|finding| (report.position(finding.span.start), finding.message.as_str()));
            let told = place.map(|((line, column), message)| format!("{}:{line}:{column}: {message}", report.path));
            Err(format!("{}; run cronward check", told.unwrap_or_else(|| report.summary())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_not_read_in_time_is_a_refused_reload_and_no_end_of_reloads() {
        let mut reading = FileReading { running: Some(tokio::spawn(in_time(std::future::pending()))), again: false };
        let refused = reading.done().await.map(drop).unwrap_err();
        assert!(refused.contains("was not read within 30 s"), "{refused}");
        assert!(reading.running.is_none(), "the next one can be read");
    }

    fn text(names: &[&str]) -> String {
        let job = |name: &&str| format!("[jobs.{name}]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n");
        names.iter().map(job).collect()
    }

    /// A file with these jobs.
    fn file(names: &[&str]) -> Config {
        let environment = config::Environment::new("2026-11-21T12:00:00Z".parse().unwrap());
        config::parse("jobs.toml", text(names), &environment).unwrap().0
    }

    fn known(names: &[&str]) -> KnownJobs {
        KnownJobs::of(&plan(&mut file(names)))
    }

    /// A signal: the jobs of the file, if they are taken.
    fn signal(known: &mut KnownJobs, names: &[&str], is_whole: bool) -> Result<(), String> {
        known.judge(&file(names), is_whole)?;
        *known = self::known(names);
        Ok(())
    }

    #[test]
    fn a_file_that_lacks_more_than_half_of_the_jobs_is_taken_at_the_second_signal_only() {
        let mut known = known(&["a", "b", "c", "d", "e"]);
        let refused = signal(&mut known, &["a", "b"], true).unwrap_err();
        assert_eq!(refused, "the file lacks 3 of 5 jobs (c, d, e): send HUP once more if this is meant");
        // Another file is another question.
        assert!(signal(&mut known, &["a"], true).is_err());
        assert!(signal(&mut known, &["a", "b"], true).is_err());
        assert_eq!(signal(&mut known, &["a", "b"], true), Ok(()));
        assert_eq!(signal(&mut known, &["a", "b"], true), Ok(()), "nothing is gone any more");
    }

    #[test]
    fn a_file_without_an_end_of_its_last_line_may_not_lack_a_single_job() {
        let mut known = known(&["a", "b", "c", "d", "e"]);
        let refused = signal(&mut known, &["a", "b", "c", "d"], false).unwrap_err();
        let expected =
            "the file lacks 1 of 5 jobs (e), and its last line has no end: send HUP once more if this is meant";
        assert_eq!(refused, expected);
        assert_eq!(signal(&mut known, &["a", "b", "c", "d", "e"], false), Ok(()), "whole again");
        assert!(signal(&mut known, &["a", "b", "c", "d"], false).is_err(), "what was refused before is forgotten");
        assert_eq!(signal(&mut known, &["a", "b", "c", "d"], false), Ok(()));
    }

    #[test]
    fn jobs_that_are_removed_renamed_or_added_one_by_one_are_taken_at_once() {
        let mut known = known(&["a", "b", "c", "d"]);
        for names in [&["a", "b"][..], &["x", "y"], &["x", "y", "z"], &["z", "y"], &["z"]] {
            assert_eq!(signal(&mut known, names, true), Ok(()), "{names:?}");
        }
        assert!(signal(&mut known, &[], true).is_err());
    }

    #[test]
    fn nothing_takes_a_part_of_a_file_whose_jobs_are_refused() {
        let path = std::env::temp_dir().join(format!("cronward-reload-{}.toml", std::process::id()));
        std::fs::write(&path, text(&["a"])).unwrap();
        let (known, taken) = (Mutex::new(known(&["a", "b", "c"])), AtomicU32::new(0));
        let taken = Arc::new(taken);
        let counts = Arc::clone(&taken);
        let taking: Taking = Arc::new(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let read = || read_new(&path, &known, Some(&*taking)).map(|new| new.plan.jobs.len());
        let refused = read().unwrap_err();
        assert!(refused.contains("lacks 2 of 3 jobs"), "{refused}");
        assert_eq!(
            taken.load(Ordering::Relaxed),
            0,
            "the receivers of messages are those of the file that is in force"
        );
        assert_eq!((read(), taken.load(Ordering::Relaxed)), (Ok(1), 1));
        std::fs::remove_file(&path).unwrap();
    }
}
