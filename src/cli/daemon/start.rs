//! The daemon's surroundings: the runtime, the store, the node and what runs beside it. What a node does is `node`'s.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::{mpsc, watch};

#[cfg(feature = "http")]
use super::port::Serving;
use super::reload::{KnownJobs, Reloader, plan};
use super::service_manager::{tell, tell_of};
use super::services::Services;
use super::signals::{Signals, no_signals};
use super::surroundings::Surroundings;
use super::zones;
use crate::cli::failure::Failure;
use crate::cli::launching::launcher;
use crate::cli::locks::kept_for;
use crate::cli::session::connect_for_long;
use crate::cli::store_args::StoreAddress;
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, NodeConfig};
use crate::drive::Entropy;
use crate::exec::Orphanage;
use crate::node::{Health, Identity, Node, Plan, Ports};
use crate::observe::{FanOut, Journal, NodeLog, Observer};
use crate::store::layer::{Layered, SlowCalls};
use crate::store::{JobEntry, Store};
use crate::zone::Database;

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
    plan.jobs.iter().try_for_each(|job| kept_for(job, &store, &address))?;
    check_access(&*store, &plan).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    let identity = identity(&config.node, &entropy, &*clock);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        node = %identity.name,
        store = store.location(),
        namespace = %address.options.namespace,
        zones = %Database::current(),
        "cronward starts"
    );
    if let Some(folder) = Database::current().passed_over() {
        tracing::warn!(folder = %folder.display(), "TZDIR has no zone files: another database is used");
    }
    let journal = journal(config.node.journal.as_deref(), &clock, &identity)?;
    let (health, watched) = watch::channel(Health::default());
    let (commands, inbox) = mpsc::channel(8);
    let launcher = launcher(&address);
    let services = Services::prepare(
        &Surroundings {
            path: &path,
            config: &config,
            address: &address,
            identity: &identity,
            store: &store,
            clock: &clock,
            launcher: &launcher,
            entropy: &entropy,
            health: &watched,
            journal: journal.as_ref(),
            commands: &commands,
        },
        #[cfg(feature = "http")]
        settings.port,
    )?;
    let observer = observer(journal.as_ref(), services.observers());
    let watched_store = Layered::new(store, SlowCalls::watching(address.options.op_timeout, Arc::clone(&clock)));
    let ports = Ports {
        store: services.around(Arc::new(watched_store)),
        clock,
        entropy: Arc::new(entropy),
        launcher,
        observer: Arc::clone(&observer),
    };
    let known = Arc::new(Mutex::new(KnownJobs::of(&plan)));
    let node = Node::new(identity, ports, plan).map_err(|error| Failure::Configuration(error.to_string()))?;
    let signals = Signals::listen()?;
    if let Some(orphanage) = Orphanage::of_first_process().map_err(no_signals)? {
        tokio::spawn(orphanage.tend());
    }
    let reloader = Reloader {
        path,
        rotation: (!address.from_command_line).then_some(rotation),
        file: config,
        known,
        observer,
        health: watched.clone(),
        journal: journal.clone(),
        also: services.rereading(),
        taking: services.taking(),
    };
    tokio::spawn(zones::follow(watched.clone(), Arc::new(SystemClock), commands.clone()));
    tokio::spawn(signals.obey(commands, reloader));
    tokio::spawn(tell_of(watched));
    let services = services.start();
    let ended = node.run(inbox, health).await.map_err(|error| Failure::Internal(error.to_string()));
    tell(&[NotifyState::Stopping]);
    services.stop().await;
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

fn observer(journal: Option<&Arc<Journal>>, services: Vec<Arc<dyn Observer>>) -> Arc<dyn Observer> {
    let journal = journal.map(|journal| Arc::<Journal>::clone(journal) as Arc<dyn Observer>);
    let log: Arc<dyn Observer> = Arc::new(NodeLog);
    Arc::new(FanOut([Some(log), journal].into_iter().flatten().chain(services).collect()))
}

/// A store that refuses will refuse for ever: that is said now and not in an hour's log. One that is only away is waited
/// for by the node.
async fn check_access(store: &dyn Store, plan: &Plan) -> Result<(), Failure> {
    let now = SystemClock.now().wall;
    let entries: Vec<JobEntry> = plan.jobs.iter().map(|spec| JobEntry::of(spec, now).unseen()).collect();
    match store.register(&entries).await {
        Err(error) if !error.is_transient() => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn identity(node: &NodeConfig, entropy: &Entropy, clock: &dyn Clock) -> Identity {
    Identity {
        name: node.name.clone(),
        instance: entropy.token().to_string(),
        labels: node.labels.clone(),
        started_at: clock.now().wall,
    }
}
