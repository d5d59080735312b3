//! The daemon's port, and what is shown there.

use std::sync::Arc;

use tokio::sync::watch;

use crate::board::{Board, BoardSetting};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::HttpConfig;
use crate::metrics::{Metrics, Setting};
use crate::node::Health;
use crate::observe::Journal;
use crate::store::Store;
use crate::web::{self, Gate, Listening, Site, Sources};

/// What is needed to serve the port, looked at before anything is started.
pub(crate) struct Serving {
    http: HttpConfig,
    gate: Arc<Gate>,
}

/// What is shown on the port. Each is kept up to date while somebody looks.
pub(crate) struct Shows {
    /// Figures.
    pub(crate) metrics: Arc<Metrics>,
    /// The cluster.
    pub(crate) board: Arc<Board>,
    /// Where everything else is read.
    pub(crate) store: Arc<dyn Store>,
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
    ) -> Arc<Metrics> {
        Metrics::new(Setting {
            namespace: address.options.namespace.clone(),
            jobs: self.http.metrics_jobs.clone(),
            clock: Arc::clone(clock),
            health: health.clone(),
            journal: journal.cloned(),
        })
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
        let Shows { metrics, board, store } = shows;
        let namespace = address.options.namespace.to_string();
        let sources = Sources { clock, health, namespace, board, store, expositions: vec![metrics] };
        web::listen(Arc::new(Site::new(self.http, self.gate, sources)))
    }
}
