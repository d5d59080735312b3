//! The daemon's port, and what is shown there.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};

use crate::admin::command_line::CommandLine;
use crate::admin::doctor::{Needs, examine};
use crate::board::{Board, BoardSetting};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::{self, Config, HttpConfig};
use crate::drive::Entropy;
use crate::job::NodeName;
use crate::metrics::{Metrics, Notifications, Setting};
use crate::node::{Command, Health};
use crate::observe::view::DoctorView;
use crate::observe::{FanOut, Journal, Observer};
use crate::store::{Store, StoreOptions};
use crate::web::{self, Activity, Examination, Exposition, Gate, Listening, Operations, PlannedJobs, Site, Sources};

/// What is needed to serve the port, looked at before anything is started.
pub(crate) struct Serving {
    http: HttpConfig,
    gate: Arc<Gate>,
    planned: Arc<PlannedJobs>,
}

/// What is shown on the port. Each is kept up to date while somebody looks.
pub(crate) struct Shows {
    /// Figures.
    pub(crate) metrics: Arc<Metrics>,
    /// The cluster.
    pub(crate) board: Arc<Board>,
    /// What happened on this node.
    pub(crate) activity: Arc<Activity>,
    /// This node.
    pub(crate) node: NodeName,
    /// Where everything else is read.
    pub(crate) store: Arc<dyn Store>,
    /// What operators may do.
    pub(crate) operations: Option<Operations>,
}

impl Shows {
    /// Reads for those who look; for ever.
    pub(crate) fn follow(&self) {
        let (metrics, board) = (Arc::clone(&self.metrics), Arc::clone(&self.board));
        let (for_metrics, for_board) = (Arc::clone(&self.store), Arc::clone(&self.store));
        tokio::spawn(async move { metrics.follow(&*for_metrics).await });
        tokio::spawn(async move { board.follow(&*for_board).await });
    }
}

impl Serving {
    /// As the file and the command line say.
    pub(crate) fn prepare(http: HttpConfig) -> Result<Self, Failure> {
        if let Some(objection) = http.objection() {
            return Err(Failure::Configuration(format!("listen {}; {}", objection.what, objection.hint)));
        }
        let gate = Gate::open(&http).map_err(Failure::Configuration)?;
        Ok(Self { http, gate: Arc::new(gate), planned: Arc::default() })
    }

    /// Reads the tokens anew, and tells how that went.
    pub(crate) fn reread(&self) -> impl Fn() + Send + Sync + 'static {
        let gate = Arc::clone(&self.gate);
        move || match gate.reread() {
            Ok(None) => {}
            Ok(Some(count)) => tracing::info!(count, "tokens read"),
            Err(error) => tracing::error!(%error, "the tokens stay as they were"),
        }
    }

    /// The registry of what `/metrics` shows.
    pub(crate) fn metrics(
        &self,
        clock: &Arc<dyn Clock>,
        health: &watch::Receiver<Health>,
        journal: Option<&Arc<Journal>>,
        address: &StoreAddress,
        notifications: Option<Arc<dyn Notifications>>,
    ) -> Arc<Metrics> {
        Metrics::new(Setting {
            namespace: address.options.namespace.clone(),
            jobs: self.http.metrics_jobs.clone(),
            clock: Arc::clone(clock),
            health: health.clone(),
            journal: journal.cloned(),
            notifications,
        })
    }

    /// Hears what happens, for what is served.
    pub(crate) fn hearing(&self, mut others: Vec<Arc<dyn Observer>>) -> Arc<dyn Observer> {
        others.push(Arc::<PlannedJobs>::clone(&self.planned));
        Arc::new(FanOut(others))
    }

    /// What operators may do through the port.
    pub(crate) fn operations(
        &self,
        store: Arc<dyn Store>,
        commands: &mpsc::Sender<Command>,
        (path, file): (&Path, &Config),
        address: &StoreAddress,
    ) -> Operations {
        let namespace = Some(&address.options.namespace).filter(|named| **named != file.store.namespace);
        // Commands that are told go to the store of this daemon.
        let line = CommandLine {
            config: Some(path.to_string_lossy().into_owned()),
            store: address.from_command_line.then(|| address.url.clone()),
            namespace: namespace.cloned(),
        };
        let (jobs, commands, node) = (Arc::clone(&self.planned), commands.clone(), file.node.name.clone());
        Operations { store, jobs, commands, node, line }
    }

    /// What is shown of the cluster. `boot` tells this process from others.
    pub(crate) fn board(clock: &Arc<dyn Clock>, boot: &str, address: &StoreAddress) -> Arc<Board> {
        let (clock, boot) = (Arc::clone(clock), boot.to_owned());
        Board::new(BoardSetting { clock, boot, retention: address.options.retention })
    }

    /// Serves.
    pub(crate) fn start(
        self,
        shows: Shows,
        clock: Arc<dyn Clock>,
        health: watch::Receiver<Health>,
        address: &StoreAddress,
    ) -> Listening {
        let Shows { metrics, board, activity, node, store, operations } = shows;
        let (address_of, planned, time) = (address.clone(), Arc::clone(&self.planned), Arc::clone(&clock));
        let examination: Arc<dyn Examination> =
            Arc::new(StoreExamination { address: address_of, planned, clock: time });
        let namespace = address.options.namespace.to_string();
        let (operations, examination) = (operations.map(Arc::new), Some(examination));
        let expositions = vec![metrics as Arc<dyn Exposition>];
        let sources =
            Sources { clock, health, namespace, board, store, activity, node, operations, examination, expositions };
        web::listen(Arc::new(Site::new(self.http, self.gate, sources)))
    }
}

/// Tries the daemon's store.
struct StoreExamination {
    address: StoreAddress,
    planned: Arc<PlannedJobs>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for StoreExamination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreExamination").finish_non_exhaustive()
    }
}

#[async_trait]
impl Examination for StoreExamination {
    async fn examine(&self) -> Result<DoctorView, String> {
        let entropy = Entropy::from_system().map_err(|error| format!("no random source: {error}"))?;
        let (url, options) = (self.written_url().await, self.address.options.clone());
        let options = StoreOptions { create: false, ..options };
        let jobs = self.planned.all();
        let needs = Needs::of(jobs.iter().map(|spec| &**spec));
        let found = examine(&url, &options, needs, Arc::clone(&self.clock), &entropy).await;
        found.map_err(|error| error.to_string())
    }
}

impl StoreExamination {
    /// The url as it is now: its password may have changed since the start.
    async fn written_url(&self) -> String {
        let Some(path) = self.address.url_file.clone() else { return self.address.url.clone() };
        let read = tokio::task::spawn_blocking(move || config::read_url_file(&path)).await;
        read.ok().and_then(Result::ok).unwrap_or_else(|| self.address.url.clone())
    }
}
