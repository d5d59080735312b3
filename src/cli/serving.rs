//! The daemon's port: what it shows is what the listings print, read with the daemon's own store.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::watch;

use crate::admin::{self, AdminError, AdminSession};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::HttpConfig;
use crate::metrics::{Metrics, Notifications, Setting};
use crate::node::Health;
use crate::observe::Journal;
use crate::observe::view::NodeView;
use crate::store::Store;
use crate::web::{self, Away, Gate, Listening, Listings, Site, Sources};

/// What is needed to serve the port, looked at before anything is started.
pub(crate) struct Serving {
    http: HttpConfig,
    gate: Arc<Gate>,
}

impl Serving {
    /// As the file and the command line say.
    pub(crate) fn prepare(http: HttpConfig) -> Result<Self, Failure> {
        if let Some(objection) = http.objection() {
            return Err(Failure::Configuration(format!("listen {}; {}", objection.what, objection.hint)));
        }
        let gate = Gate::open(&http).map_err(Failure::Configuration)?;
        Ok(Self { http, gate: Arc::new(gate) })
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

    /// Serves.
    pub(crate) fn start(
        self,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        health: watch::Receiver<Health>,
        store: Arc<dyn Store>,
        address: &StoreAddress,
    ) -> Listening {
        let namespace = address.options.namespace.to_string();
        let listings: Arc<dyn Listings> = Arc::new(StoreListings { store });
        let sources = Sources { clock, health, namespace, listings, expositions: vec![metrics] };
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
