//! The daemon's port: what it shows is what the listings print, read with the daemon's own store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use crate::admin::command_line::CommandLine;
use crate::admin::{self, AdminError, AdminSession};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::{Config, HttpConfig};
use crate::metrics::{Metrics, Notifications, Setting};
use crate::node::{Command, Health};
use crate::observe::view::NodeView;
use crate::observe::{FanOut, Journal, Observer};
use crate::store::Store;
use crate::web::{self, Away, Gate, Listening, Listings, Operations, PlannedJobs, Site, Sources};

/// What is needed to serve the port, looked at before anything is started.
pub(crate) struct Serving {
    http: HttpConfig,
    gate: Arc<Gate>,
    planned: Arc<PlannedJobs>,
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
    pub(crate) fn hearing(&self, metrics: Arc<Metrics>) -> Arc<dyn Observer> {
        Arc::new(FanOut(vec![metrics, Arc::<PlannedJobs>::clone(&self.planned)]))
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

    /// Serves.
    pub(crate) fn start(
        self,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        health: watch::Receiver<Health>,
        store: Arc<dyn Store>,
        address: &StoreAddress,
        operations: Option<Operations>,
    ) -> Listening {
        let namespace = address.options.namespace.to_string();
        let listings: Arc<dyn Listings> = Arc::new(StoreListings { store });
        let operations = operations.map(Arc::new);
        let sources = Sources { clock, health, namespace, listings, operations, expositions: vec![metrics] };
        web::listen(Arc::new(Site::new(self.http, self.gate, sources)))
    }
}

/// The listings of one store.
struct StoreListings {
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for StoreListings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreListings").field("store", &self.store.location()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Listings for StoreListings {
    async fn jobs(&self) -> Result<Vec<u8>, Away> {
        let read = async {
            let session = AdminSession::begin(Arc::clone(&self.store), None, "cronward jobs".to_owned()).await?;
            admin::jobs::views(&session).await
        };
        written(read.await)
    }

    async fn nodes(&self) -> Result<Vec<u8>, Away> {
        written(self.store.nodes().await.map(|(now, nodes)| NodeView::all(&nodes, now)).map_err(AdminError::from))
    }
}

fn written<T: Serialize>(read: Result<Vec<T>, AdminError>) -> Result<Vec<u8>, Away> {
    let json = read.map_err(|error| error.to_string());
    let json = json.and_then(|views| serde_json::to_vec(&views).map_err(|error| error.to_string()));
    json.map_err(|error| {
        tracing::debug!(error, "a listing was not read");
        Away
    })
}
