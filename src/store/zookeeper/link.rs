//! A session with the servers, begun when first needed, and a new one when it has ended. Many calls share it.
//!
//! The client library keeps a session over lost connections by itself; what was under way then has no answer. A session
//! that the servers have ended is terminal: only a new one helps. Nothing that excludes anybody belongs to a session, so no
//! lease is lost with it. Nothing is ever sent twice.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

use super::fault::Fault;
use super::paths::Paths;
use super::target::Target;

/// How long the servers keep a session that they do not hear of; they may make it shorter.
const SESSION: Duration = Duration::from_secs(10);

type Pending = Shared<BoxFuture<'static, Result<Client, Error>>>;

#[derive(Default)]
struct State {
    pending: Option<Pending>,
    /// Counts sessions, so that a late failure of an old one does not end a new one.
    generation: u64,
}

/// The session and what is needed to begin it again.
pub(super) struct Link {
    target: Target,
    paths: Paths,
    state: Mutex<State>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A session that stands, and which one it is.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) generation: u64,
}

impl Link {
    /// A link that does not connect before its first call.
    pub(super) fn new(target: Target, paths: Paths) -> Self {
        Self { target, paths, state: Mutex::default() }
    }

    /// The session that stands, or a new one.
    pub(super) async fn session(&self) -> Result<Session, Fault> {
        let (generation, pending) = self.pending();
        match pending.await {
            Ok(client) if !client.state().is_terminated() => Ok(Session { client, generation }),
            Ok(_) => {
                self.forget(generation);
                let (generation, pending) = self.pending();
                let client = pending.await.map_err(|error| self.failed(generation, error))?;
                Ok(Session { client, generation })
            }
            Err(error) => Err(self.failed(generation, error)),
        }
    }

    /// How nodes are made: for the user alone, where there is one.
    pub(super) fn options(&self) -> CreateOptions<'static> {
        CreateMode::Persistent.with_acls(self.acls())
    }

    /// How a node is made that goes with its session.
    pub(super) fn ephemeral(&self) -> CreateOptions<'static> {
        CreateMode::Ephemeral.with_acls(self.acls())
    }

    const fn acls(&self) -> Acls<'static> {
        if self.target.login.is_some() { Acls::creator_all() } else { Acls::anyone_all() }
    }

    /// Makes the folders of the namespace, where they are missing.
    pub(super) async fn prepare(&self, client: &Client) -> Result<(), Fault> {
        let options = self.options();
        for folder in self.paths.folders() {
            client.mkdir(&folder, &options).await?;
        }
        for (path, text) in [(self.paths.pauses(), "{}"), (self.paths.clock(), "")] {
            match client.create(&path, text.as_bytes(), &options).await {
                Ok(_) | Err(Error::NodeExists) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn failed(&self, generation: u64, error: Error) -> Fault {
        self.forget(generation);
        Fault::no_session(error)
    }

    fn pending(&self) -> (u64, Pending) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pending) = &state.pending {
            return (state.generation, pending.clone());
        }
        // In a task of its own, so that a caller who gives up does not stop it for the others.
        let attempt = tokio::spawn(connect(self.target.clone()));
        let pending = attempt.map(|joined| joined.unwrap_or(Err(Error::ClientClosed))).boxed().shared();
        *state = State { pending: Some(pending.clone()), generation: state.generation + 1 };
        (state.generation, pending)
    }

    /// The next call begins a new session.
    pub(super) fn forget(&self, generation: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.generation == generation {
            state.pending = None;
        }
    }
}

async fn connect(target: Target) -> Result<Client, Error> {
    let connector = Client::connector().with_session_timeout(SESSION).with_fail_eagerly();
    let connector = match &target.login {
        Some(login) => connector.with_auth("digest", login.as_bytes()),
        None => connector,
    };
    connector.connect(&target.servers).await
}
