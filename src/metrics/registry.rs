//! The registry of one node: what is counted, where, and what is known elsewhere.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::clock::{Clock, Mono};
use crate::job::{JobSelection, Namespace};
use crate::metrics::figures::{Counters, Stamp};
use crate::metrics::histogram::Histogram;
use crate::metrics::jobs::JobTable;
use crate::metrics::locks::LockFigures;
use crate::metrics::store::{Observe, StoreFigures};
use crate::node::Health;
use crate::observe::Journal;
use crate::store::Store;
use crate::store::layer::Layered;

/// What the store answers to a claim.
const CLAIMS: [&str; 9] = ["claimed", "held", "done", "exhausted", "backoff", "paused", "blocked", "early", "closed"];
/// What it answers to a renewal.
const RENEWALS: [&str; 4] = ["renewed", "restored", "lost", "done"];
/// What a node can be, as the cluster sees it.
pub(super) const STATES: [&str; 4] = ["alive", "draining", "lost", "stopped"];

/// Whose metrics they are, and what is known elsewhere.
#[derive(Debug)]
pub struct Setting {
    /// Whose keys the node uses.
    pub namespace: Namespace,
    /// Which jobs are told of.
    pub jobs: JobSelection,
    /// The node's clocks.
    pub clock: Arc<dyn Clock>,
    /// The node's health.
    pub health: watch::Receiver<Health>,
    /// Its journal.
    pub journal: Option<Arc<Journal>>,
    /// Its messages.
    pub notifications: Option<Arc<dyn Notifications>>,
}

/// Who counts messages.
pub trait Notifications: std::fmt::Debug + Send + Sync {
    /// What there is of each sink.
    fn each(&self, now: Mono) -> Vec<SinkFigures>;
}

/// What is counted of one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkFigures {
    /// Its name.
    pub sink: String,
    /// How many messages came to what.
    pub results: [(&'static str, u64); 4],
    /// How long the oldest one waits.
    pub oldest_pending: Duration,
}

/// The metrics of one node. See [`super`].
#[derive(Debug)]
pub struct Metrics {
    pub(super) setting: Setting,
    /// Replaced as a whole by a reload; what is counted meanwhile goes to jobs that stay.
    table: RwLock<Arc<JobTable>>,
    pub(super) start_delay: Histogram,
    pub(super) claims: Counters<9>,
    pub(super) renewals: Counters<4>,
    pub(super) locks: LockFigures,
    pub(super) store: Arc<StoreFigures>,
    pub(super) reload_refused: AtomicBool,
    pub(super) data_losses: AtomicU64,
    pub(super) reloaded: Stamp,
    pub(super) started: Stamp,
    /// When the text was asked for last, in nanoseconds of the monotonic clock; 0 for never, or long ago.
    pub(super) scraped: AtomicU64,
    /// That it was.
    pub(super) asked: Notify,
    /// How many nodes are in each of [`STATES`].
    nodes: Mutex<Option<[u64; 4]>>,
}

impl Metrics {
    /// A registry without jobs: they come with the plan.
    pub fn new(setting: Setting) -> Arc<Self> {
        let started = Stamp::default();
        started.set(Some(setting.clock.now().wall));
        Arc::new(Self {
            setting,
            table: RwLock::default(),
            start_delay: Histogram::default(),
            claims: Counters::new(&CLAIMS),
            renewals: Counters::new(&RENEWALS),
            locks: LockFigures::default(),
            store: Arc::default(),
            reload_refused: AtomicBool::new(false),
            data_losses: AtomicU64::new(0),
            reloaded: Stamp::default(),
            started,
            scraped: AtomicU64::new(0),
            asked: Notify::new(),
            nodes: Mutex::new(None),
        })
    }

    /// The same store, and each of its operations is timed.
    pub fn around(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let layer = Observe { figures: Arc::clone(&self.store), clock: Arc::clone(&self.setting.clock) };
        Arc::new(Layered::new(store, layer))
    }

    /// [`Metrics::write`] at this moment.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn write_now(&self, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
        self.write(self.setting.clock.now(), out)
    }

    pub(super) fn table(&self) -> Arc<JobTable> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn put_table(&self, table: JobTable) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    pub(super) fn nodes(&self) -> Option<[u64; 4]> {
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put_nodes(&self, nodes: Option<[u64; 4]>) {
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }
}
