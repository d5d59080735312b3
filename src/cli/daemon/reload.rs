//! HUP: the file is read again while the node runs, on a thread of its own. What is wrong with it is one line.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::service_manager::tell;
use super::zones;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, LoadError, StoreConfig};
use crate::event::Event;
use crate::job::JobSpec;
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
    pub(super) observer: Arc<dyn Observer>,
    pub(super) health: watch::Receiver<Health>,
    pub(super) journal: Option<Arc<Journal>>,
    /// What else is read anew, beside the file and whatever is wrong with that.
    pub(super) also: Option<Also>,
    /// Who takes more of the file than its jobs, or refuses it.
    pub(super) taking: Option<Taking>,
}

/// Takes what it needs of a file that can be used; else why that cannot be.
pub(super) type Taking = Arc<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;

/// Reads something anew, and tells how that went.
pub(super) type Also = Arc<dyn Fn() + Send + Sync>;

/// What a running daemon cannot change.
fn fixed(file: &Config) -> impl PartialEq {
    let (node, store) = (&file.node, &file.store);
    let kept = (node.labels.clone(), node.drain, node.journal.clone());
    let kept = (kept, file.http.clone());
    (kept, store.url_file.clone(), store.namespace.clone(), store.op_timeout, store.retention)
}

/// What came of reading the file: it, and the plan that it makes; else why it cannot be used.
type FileRead = Result<(Config, Plan), String>;

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
        let (path, also, taking) = (self.path.clone(), self.also.clone(), self.taking.clone());
        let reading = tokio::task::spawn_blocking(move || {
            if let Some(also) = also {
                also();
            }
            zones::look();
            let mut config = read(&path)?;
            taking.map_or(Ok(()), |take| take(&config))?;
            let plan = plan(&mut config);
            Ok((config, plan))
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
    pub(super) fn take(&self, read: FileRead) -> Command {
        if self.has_started() {
            tell(&[NotifyState::Ready]);
        }
        match read {
            Ok((config, plan)) => {
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

/// The file; else why it cannot be used.
fn read(path: &Path) -> Result<Config, String> {
    let environment = config::Environment::of_process(SystemClock.now().wall);
    match config::load(path, &environment) {
        Ok((config, _warnings)) => Ok(config),
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
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_not_read_in_time_is_a_refused_reload_and_no_end_of_reloads() {
        let mut reading = FileReading { running: Some(tokio::spawn(in_time(std::future::pending()))), again: false };
        let refused = reading.done().await.map(drop).unwrap_err();
        assert!(refused.contains("was not read within 30 s"), "{refused}");
        assert!(reading.running.is_none(), "the next one can be read");
    }
}
