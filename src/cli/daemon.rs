//! The daemon's surroundings: the runtime, signals, the service manager. What a node does is `node`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle};

#[cfg(feature = "http")]
use crate::board::Board;
use crate::cli::failure::Failure;
use crate::cli::launching::launcher;
use crate::cli::locks::kept_for;
use crate::cli::rereading::read;
#[cfg(feature = "http")]
use crate::cli::serving::{Serving, Shows};
use crate::cli::session::connect_for_long;
use crate::cli::store_args::StoreAddress;
#[cfg(feature = "notify")]
use crate::cli::telling::Messenger;
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, NodeConfig, StoreConfig};
use crate::drive::Entropy;
use crate::event::Event;
use crate::exec::Orphanage;
#[cfg(feature = "http")]
use crate::metrics::Notifications;
use crate::node::{Command, Health, Identity, Node, Plan, Ports};
use crate::observe::{FanOut, Journal, NodeLog, Observer};
use crate::store::layer::Rotation;
use crate::store::{JobEntry, Store};
#[cfg(feature = "http")]
use crate::web::Activity;

/// The loop, its timers and its sockets need little; a second thread keeps renewals going while the first is busy.
const THREADS: usize = 2;

/// What the daemon is started with: the file, with the command line's words in place of its own.
pub(crate) struct Settings {
    /// Where the file is; a reload reads it again.
    pub(crate) path: PathBuf,
    /// The file.
    pub(crate) config: Config,
    /// The store.
    pub(crate) store: StoreAddress,
    /// What is served on a port; none where nothing listens.
    #[cfg(feature = "http")]
    pub(crate) port: Option<Serving>,
}

/// Time for the last lines of the journal: a disk that hangs may not hold the process up.
const LAST_LINES: Duration = Duration::from_secs(1);

/// A file that is read for longer is not read: its disk, or the server that it is on, hangs.
const LONGEST_READ: Duration = Duration::from_secs(30);

/// Runs a node until it is told to leave.
pub(crate) fn start(settings: Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Internal(format!("cannot start: {error}")))?;
    let result = runtime.block_on(serve(settings));
    // A store that hangs may not hold the process up.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    let Settings { path, mut config, store: address, .. } = settings;
    let rotation = connect_for_long(&address).await?;
    let store = rotation.store();
    let plan = plan(&mut config);
    plan.jobs.iter().try_for_each(|job| kept_for(job, &store))?;
    check_access(&*store, &plan).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    let identity = identity(&config.node, &entropy, &*clock);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        node = %identity.name,
        store = store.location(),
        namespace = %address.options.namespace,
        "cronward starts"
    );
    let journal = journal(config.node.journal.as_deref(), &clock, &identity)?;
    let (health, watched) = watch::channel(Health::default());
    #[cfg(feature = "notify")]
    let telling = Messenger::prepare(&config, (&store, &clock, &entropy), &identity.name, &address)?;
    #[cfg(all(feature = "http", feature = "notify"))]
    let counts: Option<Arc<dyn Notifications>> = Some(telling.figures());
    #[cfg(all(feature = "http", not(feature = "notify")))]
    let counts: Option<Arc<dyn Notifications>> = None;
    #[cfg(feature = "http")]
    let metrics = settings.port.as_ref().map(|port| port.metrics(&clock, &watched, journal.as_ref(), &address, counts));
    #[cfg(feature = "http")]
    let activity = Arc::new(Activity::new(Arc::clone(&clock)));
    #[cfg(feature = "http")]
    let board = Serving::board(&clock, &identity.instance, &address);
    #[cfg(feature = "http")]
    let counting = settings.port.as_ref().zip(metrics.clone()).map(|(port, metrics)| {
        let also: [Arc<dyn Observer>; 3] = [metrics, Arc::<Board>::clone(&board), Arc::<Activity>::clone(&activity)];
        port.hearing(also.into())
    });
    #[cfg(feature = "http")]
    let name = identity.name.clone();
    #[cfg(not(feature = "http"))]
    let counting = None;
    let observer = observer(journal.as_ref(), counting);
    #[cfg(feature = "notify")]
    let observer: Arc<dyn Observer> = Arc::new(FanOut(vec![observer, telling.ear()]));
    let (launcher, entropy) = (launcher(&address), Arc::new(entropy));
    #[cfg(feature = "notify")]
    let launcher = telling.hiding(launcher);
    #[cfg(feature = "http")]
    let (shown, time) = (Arc::clone(&store), Arc::clone(&clock));
    #[cfg(feature = "http")]
    let store = metrics.as_ref().map_or(store, |metrics| metrics.around(Arc::clone(&shown)));
    let ports = Ports { store, clock, entropy, launcher, observer: Arc::clone(&observer) };
    let node = Node::new(identity, ports, plan).map_err(|error| Failure::Configuration(error.to_string()))?;
    let (commands, inbox) = mpsc::channel(8);
    #[cfg(feature = "http")]
    let operations =
        settings.port.as_ref().map(|port| port.operations(Arc::clone(&shown), &commands, (&path, &config), &address));
    let signals = Signals::listen()?;
    if let Some(orphanage) = Orphanage::of_first_process().map_err(no_signals)? {
        tokio::spawn(orphanage.tend());
    }
    let rotation = (!address.from_command_line).then_some(rotation);
    #[cfg(feature = "http")]
    let also: Option<Also> = settings.port.as_ref().map(|port| Arc::new(port.reread()) as Also);
    #[cfg(not(feature = "http"))]
    let also = None;
    let (health_of, journal_of) = (watched.clone(), journal.clone());
    #[cfg(feature = "notify")]
    let taking: Option<Taking> = Some(Arc::new(telling.taking()) as Taking);
    #[cfg(not(feature = "notify"))]
    let taking = None;
    let reloader =
        Reloader { path, rotation, file: config, observer, health: health_of, journal: journal_of, also, taking };
    #[cfg(feature = "http")]
    let listening = settings.port.zip(metrics).map(|(port, metrics)| {
        let shows = Shows { metrics, board, activity, node: name, store: shown, operations };
        shows.follow();
        port.start(shows, time, watched.clone(), &address)
    });
    tokio::spawn(signals.obey(commands, reloader));
    tokio::spawn(tell_service_manager(watched));
    #[cfg(feature = "notify")]
    let telling = telling.start();
    let ended = node.run(inbox, health).await.map_err(|error| Failure::Internal(error.to_string()));
    tell(&[NotifyState::Stopping]);
    #[cfg(feature = "notify")]
    telling.stop().await;
    #[cfg(feature = "http")]
    if let Some(listening) = listening {
        listening.stop().await;
    }
    if let Some(journal) = journal {
        journal.flush(LAST_LINES);
    }
    ended
}

fn journal(path: Option<&Path>, clock: &Arc<dyn Clock>, identity: &Identity) -> Result<Option<Arc<Journal>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let journal = Journal::open(path, Arc::clone(clock), identity.name.clone(), identity.instance.clone());
    let refused = |error| Failure::Configuration(format!("journal {}: {error}", path.display()));
    journal.map(Arc::new).map(Some).map_err(refused)
}

fn observer(journal: Option<&Arc<Journal>>, counting: Option<Arc<dyn Observer>>) -> Arc<dyn Observer> {
    let journal = journal.map(|journal| Arc::<Journal>::clone(journal) as Arc<dyn Observer>);
    let log: Arc<dyn Observer> = Arc::new(NodeLog);
    Arc::new(FanOut([Some(log), journal, counting].into_iter().flatten().collect()))
}

/// A store that refuses will refuse for ever: that is said now and not in an hour's log. One that is only away is waited
/// for by the node.
async fn check_access(store: &dyn Store, plan: &Plan) -> Result<(), Failure> {
    let now = SystemClock.now().wall;
    let entries: Vec<JobEntry> = plan.jobs.iter().map(|spec| JobEntry::of(spec, now)).collect();
    match store.register(&entries).await {
        Err(error) if !error.is_transient() => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The jobs are moved out of the file: ten thousand of them are not held twice.
fn plan(config: &mut Config) -> Plan {
    let (config_hash, job_hashes) = (config.hash(), config.job_hashes());
    let jobs = std::mem::take(&mut config.jobs).into_values().map(Arc::new).collect();
    Plan { jobs, config_hash, job_hashes, max_running: config.node.max_running }
}

fn identity(node: &NodeConfig, entropy: &Entropy, clock: &dyn Clock) -> Identity {
    Identity {
        name: node.name.clone(),
        instance: entropy.token().to_string(),
        labels: node.labels.clone(),
        started_at: clock.now().wall,
    }
}

/// The signals that a daemon answers.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a reload needs.
struct Reloader {
    path: PathBuf,
    /// Takes the store's url; none where the command line's is used instead.
    rotation: Option<Arc<Rotation>>,
    /// What the daemon was started with, without its jobs.
    file: Config,
    observer: Arc<dyn Observer>,
    health: watch::Receiver<Health>,
    journal: Option<Arc<Journal>>,
    /// What else is read anew, beside the file and whatever is wrong with that.
    also: Option<Also>,
    /// Who takes more of the file than its jobs, or refuses it.
    taking: Option<Taking>,
}

/// Takes what it needs of a file that can be used; else why that cannot be.
type Taking = Arc<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;

/// Reads something anew, and tells how that went.
type Also = Arc<dyn Fn() + Send + Sync>;

/// What a running daemon cannot change.
fn fixed(file: &Config) -> impl PartialEq {
    let (node, store) = (&file.node, &file.store);
    let kept = (node.labels.clone(), node.drain, node.journal.clone());
    let kept = (kept, file.http.clone());
    (kept, store.url_file.clone(), store.namespace.clone(), store.op_timeout, store.retention)
}

fn no_signals(error: std::io::Error) -> Failure {
    Failure::Internal(format!("cannot take signals: {error}"))
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(no_signals);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// TERM and INT drain, a second one stops at once; HUP reads the file again, on a thread of its own: neither renewals nor
    /// TERM wait for a long file or a slow disk.
    async fn obey(mut self, commands: mpsc::Sender<Command>, reloader: Reloader) {
        let mut drain = reloader.file.node.drain;
        let mut reading = Reading::default();
        loop {
            let command = tokio::select! {
                _ = self.terminate.recv() => Some(Command::Shutdown(std::mem::take(&mut drain))),
                _ = self.interrupt.recv() => Some(Command::Shutdown(std::mem::take(&mut drain))),
                _ = self.hang_up.recv() => {
                    reading.ask(&reloader);
                    None
                }
                read = reading.done() => {
                    let command = reloader.take(read);
                    reading.go_on(&reloader);
                    command
                }
            };
            if let Some(command) = command
                && commands.send(command).await.is_err()
            {
                return;
            }
        }
    }
}

/// What came of reading the file: it, and the plan that it makes; else why it cannot be used.
type Read = Result<(Config, Plan), String>;

/// The file being read. One at a time; what is asked for meanwhile is one more.
#[derive(Default)]
struct Reading {
    running: Option<JoinHandle<Read>>,
    again: bool,
}

impl Reading {
    fn ask(&mut self, reloader: &Reloader) {
        if self.running.is_some() {
            self.again = true;
        } else {
            self.running = Some(reloader.begin());
        }
    }

    /// What was read, once it is; never where nothing is read. Nothing is lost when this is dropped.
    async fn done(&mut self) -> Read {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let read = running.await.unwrap_or_else(|error| Err(format!("the file was not read: {error}")));
        self.running = None;
        read
    }

    fn go_on(&mut self, reloader: &Reloader) {
        if std::mem::take(&mut self.again) {
            self.running = Some(reloader.begin());
        }
    }
}

/// The file as it was read, unless that takes too long. What comes later is not taken: the next HUP reads it again.
async fn in_time(reading: impl Future<Output = Result<Read, JoinError>>) -> Read {
    match tokio::time::timeout(LONGEST_READ, reading).await {
        Ok(read) => read.unwrap_or_else(|error| Err(format!("the file was not read: {error}"))),
        Err(_) => Err(format!(
            "the file, or its url_file, was not read within {} s; look after its disk, then send HUP again",
            LONGEST_READ.as_secs()
        )),
    }
}

impl Reloader {
    fn begin(&self) -> JoinHandle<Read> {
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

    /// The file's jobs; none when the file cannot be used, which is told.
    fn take(&self, read: Read) -> Option<Command> {
        if self.has_started() {
            tell(&[NotifyState::Ready]);
        }
        match read {
            Ok((config, plan)) => {
                if fixed(&config) != fixed(&self.file) {
                    tracing::warn!("[node], [store] or [http] changed in the file: that needs a restart");
                }
                self.offer(config.store);
                Some(Command::Reload(plan))
            }
            Err(error) => {
                self.observer.event(None, &Event::ReloadRefused { error });
                None
            }
        }
    }
}

/// Ready once the store is reached; the watchdog is fed by the planner's beats, so that a planner that stands still is
/// restarted.
async fn tell_service_manager(mut watched: watch::Receiver<Health>) {
    let (mut ready, mut last_beat) = (false, 0);
    while watched.changed().await.is_ok() {
        let health = watched.borrow_and_update().clone();
        if health.store_up && !ready {
            ready = true;
            tell(&[NotifyState::Ready]);
        }
        if health.beats != last_beat {
            last_beat = health.beats;
            let store = if health.store_up { "store reached" } else { "store unreachable" };
            let status = format!("{} running; {store}", health.running);
            tell(&[NotifyState::Watchdog, NotifyState::Status(&status)]);
        }
    }
}

/// Without a service manager there is nobody to tell, and nothing depends on being heard.
fn tell(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_not_read_in_time_is_a_refused_reload_and_no_end_of_reloads() {
        let mut reading = Reading { running: Some(tokio::spawn(in_time(std::future::pending()))), again: false };
        let refused = reading.done().await.map(drop).unwrap_err();
        assert!(refused.contains("was not read within 30 s"), "{refused}");
        assert!(reading.running.is_none(), "the next one can be read");
    }
}
