//! What is served, and what it is made of: the one thing that every handler is given.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::HttpConfig;
use crate::node::Health;
use crate::web::exposition::{Exposition, Requests};
use crate::web::gate::Gate;
use crate::web::hosts::KnownHosts;
use crate::web::listings::{Cached, Listings};
use crate::web::operations::Operations;

/// A planner that has not beaten for so long stands still. It beats every second.
const STILL: Duration = Duration::from_secs(5);

/// Where the answers come from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// How the node is.
    pub health: watch::Receiver<Health>,
    /// Whose keys.
    pub namespace: String,
    /// What is in the store.
    pub listings: Arc<dyn Listings>,
    /// What operators may do; none where that is not served.
    pub operations: Option<Arc<Operations>>,
    /// Figures of others.
    pub expositions: Vec<Arc<dyn Exposition>>,
}

/// What is served.
#[derive(Debug)]
pub struct Site {
    pub(super) http: HttpConfig,
    pub(super) gate: Arc<Gate>,
    pub(super) sources: Sources,
    pub(super) hosts: KnownHosts,
    pub(super) requests: Requests,
    pub(super) jobs: Cached,
    pub(super) nodes: Cached,
}

impl Site {
    /// As the file says.
    pub fn new(http: HttpConfig, gate: Arc<Gate>, sources: Sources) -> Self {
        let cached = || Cached::new(Arc::clone(&sources.clock));
        let (jobs, nodes) = (cached(), cached());
        let hosts = KnownHosts::new(http.public_url.as_deref());
        Self { http, gate, hosts, requests: Requests::default(), jobs, nodes, sources }
    }

    /// A path as browsers know it: what stands in front may serve other things beside it.
    pub(super) fn below_base(&self, path: &str) -> String {
        if self.http.base_path == "/" { path.to_owned() } else { format!("{}{path}", self.http.base_path) }
    }

    /// Whether the planner beats.
    pub(super) fn is_beating(&self) -> bool {
        let now = self.sources.clock.now().mono;
        self.sources.health.borrow().last_beat.is_some_and(|last| now.since(last.mono) < STILL)
    }
}
