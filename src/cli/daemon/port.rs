//! The daemon's port, and what is shown there.

use std::sync::Arc;

use async_trait::async_trait;

use super::surroundings::Surroundings;
use crate::admin::command_line::CommandLine;
use crate::admin::doctor::{Needs, examine};
use crate::board::{Board, BoardSetting};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::{self, HttpConfig};
use crate::drive::Entropy;
use crate::metrics::{Metrics, Notifications, Setting};
use crate::observe::Observer;
use crate::observe::view::DoctorView;
use crate::store::{Store, StoreOptions};
use crate::web::{self, Activity, Certificate, Examination, Gate, Listening, Operations, PlannedJobs, Site, Sources};

/// What is needed to serve the port, looked at before anything is started.
pub(crate) struct Serving {
    http: HttpConfig,
    gate: Arc<Gate>,
    certificate: Option<Arc<Certificate>>,
    notifications: Option<Arc<dyn Notifications>>,
}

impl Serving {
    /// As the file and the command line say.
    pub(crate) fn prepare(http: HttpConfig) -> Result<Self, Failure> {
        if let Some(objection) = http.objection() {
            return Err(Failure::Configuration(format!("listen {}; {}", objection.what, objection.hint)));
        }
        let gate = Gate::open(&http).map_err(Failure::Configuration)?;
        let certificate = http.tls.as_ref().map(Certificate::open).transpose().map_err(Failure::Configuration)?;
        let (gate, certificate) = (Arc::new(gate), certificate.map(Arc::new));
        Ok(Self { http, gate, certificate, notifications: None })
    }

    /// With figures of the messages that this node sends.
    #[cfg(feature = "notify")]
    pub(super) fn counting(self, notifications: Arc<dyn Notifications>) -> Self {
        Self { notifications: Some(notifications), ..self }
    }

    /// Gathers what is shown; opens no socket.
    pub(super) fn open(self, around: &Surroundings<'_>) -> Port {
        let Self { http, gate, certificate, notifications } = self;
        let (address, clock) = (around.address, around.clock);
        let metrics = Metrics::new(Setting {
            namespace: address.options.namespace.clone(),
            jobs: http.metrics_jobs.clone(),
            clock: Arc::clone(clock),
            health: around.health.clone(),
            journal: around.journal.cloned(),
            notifications,
        });
        let board = Board::new(BoardSetting {
            clock: Arc::clone(clock),
            boot: around.identity.instance.clone(),
            retention: address.options.retention,
        });
        let (activity, planned) = (Arc::new(Activity::new(Arc::clone(clock))), Arc::<PlannedJobs>::default());
        let examination =
            StoreExamination { address: address.clone(), planned: Arc::clone(&planned), clock: Arc::clone(clock) };
        let sources = Sources {
            clock: Arc::clone(clock),
            health: around.health.clone(),
            namespace: address.options.namespace.to_string(),
            board: Arc::clone(&board),
            store: Arc::clone(around.store),
            scheme: address.url.split(':').next().unwrap_or_default().to_owned(),
            activity: Arc::clone(&activity),
            node: around.identity.name.clone(),
            operations: Some(Arc::new(operations(around, &planned))),
            examination: Some(Arc::new(examination)),
            expositions: vec![Arc::<Metrics>::clone(&metrics)],
        };
        let (store, site) = (Arc::clone(around.store), Arc::new(Site::new(http, Arc::clone(&gate), sources)));
        Port { site, gate, certificate, planned, metrics, board, activity, store }
    }
}

/// What operators may do through the port. Commands that are told go to the store of this daemon.
fn operations(around: &Surroundings<'_>, planned: &Arc<PlannedJobs>) -> Operations {
    let (address, file) = (around.address, around.config);
    let namespace = Some(&address.options.namespace).filter(|named| **named != file.store.namespace);
    // Whoever pastes a command is in another folder than the daemon.
    let path = std::path::absolute(around.path).unwrap_or_else(|_| around.path.to_owned());
    let line = CommandLine {
        config: Some(path.to_string_lossy().into_owned()),
        store: address.from_command_line.then(|| address.url.clone()),
        namespace: namespace.cloned(),
    };
    Operations {
        store: Arc::clone(around.store),
        jobs: Arc::clone(planned),
        commands: around.commands.clone(),
        node: file.node.name.clone(),
        labels: file.node.labels.clone(),
        retention: address.options.retention,
        line,
    }
}

/// A port that is not open yet, and what is shown there: each part is kept up to date while somebody looks.
pub(super) struct Port {
    site: Arc<Site>,
    gate: Arc<Gate>,
    certificate: Option<Arc<Certificate>>,
    planned: Arc<PlannedJobs>,
    metrics: Arc<Metrics>,
    board: Arc<Board>,
    activity: Arc<Activity>,
    store: Arc<dyn Store>,
}

impl Port {
    /// Who hears what happens, for what is shown.
    pub(super) fn observers(&self) -> [Arc<dyn Observer>; 4] {
        [
            Arc::<Metrics>::clone(&self.metrics),
            Arc::<Board>::clone(&self.board),
            Arc::<Activity>::clone(&self.activity),
            Arc::<PlannedJobs>::clone(&self.planned),
        ]
    }

    /// The same store, whose calls are counted.
    pub(super) fn around(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.metrics.around(store)
    }

    /// Reads the tokens and the certificate anew, and tells how that went.
    pub(super) fn rereading(&self) -> impl Fn() + Send + Sync + 'static {
        let (gate, certificate) = (Arc::clone(&self.gate), self.certificate.clone());
        move || {
            match gate.reread() {
                Ok(None) => {}
                Ok(Some(count)) => tracing::info!(count, "tokens read"),
                Err(error) => tracing::error!(%error, "the tokens stay as they were"),
            }
            match certificate.as_ref().map(|certificate| certificate.reread()) {
                None => {}
                Some(Ok(())) => tracing::info!("certificate read"),
                Some(Err(error)) => tracing::error!(%error, "the certificate stays as it was"),
            }
        }
    }

    /// Opens the port, and reads for those who look.
    pub(super) fn start(self) -> Listening {
        let Self { site, certificate, metrics, board, store, .. } = self;
        let shown = Arc::clone(&store);
        tokio::spawn(async move { metrics.follow(&*store).await });
        tokio::spawn(async move { board.follow(&*shown).await });
        web::listen(site, certificate)
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
