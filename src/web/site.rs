//! What is served, and what it is made of: the one thing that every handler is given.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::board::Board;
use crate::clock::Clock;
use crate::config::HttpConfig;
use crate::job::NodeName;
use crate::node::Health;
use crate::store::Store;
use crate::web::activity::Activity;
use crate::web::answers::Answers;
use crate::web::examination::{Examination, Examiner};
use crate::web::exposition::{Exposition, Requests};
use crate::web::gate::Gate;
use crate::web::hosts::KnownHosts;
use crate::web::operations::Operations;
use crate::web::reads::Reads;
use crate::web::streams::Streams;

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
    /// What operators may do; none where that is not served.
    pub operations: Option<Arc<Operations>>,
    /// Tries the store; none where that is not served.
    pub examination: Option<Arc<dyn Examination>>,
    /// What is shown of the cluster.
    pub board: Arc<Board>,
    /// The store, for what the board does not keep.
    pub store: Arc<dyn Store>,
    /// What the store's url begins with: by that it is known how the store names what it keeps.
    pub scheme: String,
    /// What happened on this node.
    pub activity: Arc<Activity>,
    /// This node.
    pub node: NodeName,
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
    pub(super) reads: Reads,
    pub(super) answers: Answers,
    pub(super) streams: Streams,
    /// Fires when the node leaves: nobody is told anything more.
    pub(super) leaving: CancellationToken,
    pub(super) examiner: Option<Examiner>,
}

impl Site {
    /// As the file says.
    pub fn new(http: HttpConfig, gate: Arc<Gate>, sources: Sources) -> Self {
        let answers = Answers::new(Arc::clone(&sources.clock));
        let reads = Reads::new(Arc::clone(&sources.clock), Arc::clone(&sources.board));
        let hosts = KnownHosts::new(http.public_url.as_deref());
        let (requests, streams, leaving) = (Requests::default(), Streams::default(), CancellationToken::new());
        let examiner = sources.examination.clone().map(Examiner::new);
        Self { http, gate, hosts, requests, reads, answers, streams, leaving, examiner, sources }
    }

    /// The address of a path, as it is seen from outside.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.http.base_path.trim_end_matches('/'))
    }

    /// Whether the planner beats.
    pub(super) fn is_beating(&self) -> bool {
        let now = self.sources.clock.now().mono;
        self.sources.health.borrow().last_beat.is_some_and(|last| now.since(last.mono) < STILL)
    }
}
