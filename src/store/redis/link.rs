//! One connection to the server, made when first needed and made again when it broke. Many calls share it. It leads to one address for
//! ever, to the master that the sentinels name, or to any server of a cluster.
//!
//! Why not the client library's own ConnectionManager: it keeps a failed connection for ever when the failure was an
//! answer (a wrong password that was put right, "max number of clients"), it never gives up a link that silently drops
//! (a time-out is not a broken connection to it), and it does not tell a failed connection, after which nothing was sent,
//! from a failed call. Here:
//! - a connection that failed is tried anew by the next call; calls that wait meanwhile share one attempt;
//! - after an answer that another server is meant (a replica since a failover), the name is looked up anew;
//! - after two calls in a row that were not answered in time, or given up by their caller, a new connection is made;
//! - nothing is ever sent twice.

#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisError, Value};

#[cfg(feature = "redis-sentinel")]
use super::sentinel::Sentinels;
use super::target::{Login, Target};

/// Where a connection leads.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    /// One address, whatever answers there.
    Fixed(Box<Target>),
    /// The master that the sentinels name.
    #[cfg(feature = "redis-sentinel")]
    Master(Arc<Sentinels>),
    /// One after the other: all of them know what one is told.
    #[cfg(feature = "redis-cluster")]
    AnyOf(Arc<AnyOf>),
}

/// The servers that a url of a cluster names.
#[cfg(feature = "redis-cluster")]
#[derive(Debug)]
pub(super) struct AnyOf {
    targets: Vec<Target>,
    turn: std::sync::atomic::AtomicUsize,
    /// Rises when a server that kept something keeps nothing any more.
    replaced: tokio::sync::watch::Sender<u64>,
}

#[cfg(feature = "redis-cluster")]
impl AnyOf {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self { targets, turn: std::sync::atomic::AtomicUsize::new(0), replaced: tokio::sync::watch::Sender::new(0) }
    }

    /// A server was replaced: what it had not passed on is lost, and hints with it.
    pub(super) fn was_replaced(&self) {
        self.replaced.send_modify(|version| *version += 1);
    }
}

impl Endpoint {
    /// Where to connect now. Waits for it no longer than `limit`.
    #[allow(clippy::unused_async, reason = "some wait for an answer; which depends on the features")]
    pub(super) async fn target(&self, limit: Duration) -> Result<Target, RedisError> {
        match self {
            Self::Fixed(target) => {
                let _ = limit;
                Ok((**target).clone())
            }
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.master(limit).await,
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(targets) => {
                let turn = targets.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let target = targets.targets.get(turn % targets.targets.len().max(1));
                target.cloned().ok_or_else(|| RedisError::from(std::io::Error::other("no server is named")))
            }
        }
    }

    /// Changes when connections that stand lead to the wrong server by now, and when a server of a cluster was replaced by one
    /// that may know less: the wake-ups are then subscribed to anew, and `Resync` is told.
    pub(super) fn version(&self) -> u64 {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.version(),
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(servers) => *servers.replaced.borrow(),
            Self::Fixed(_) => 0,
        }
    }

    /// Ends when [`Self::version`] is another than this.
    pub(super) async fn moved(&self, version: u64) {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.moved(version).await,
            #[cfg(feature = "redis-cluster")]
            Self::AnyOf(servers) => {
                // The sender lives as long as this does.
                let _ = servers.replaced.subscribe().wait_for(|now| *now != version).await;
            }
            Self::Fixed(_) => {
                let _ = version;
                std::future::pending::<()>().await;
            }
        }
    }

    /// Something failed that a change of master explains.
    pub(super) fn doubt(&self) {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(sentinels) => sentinels.ask_again(),
            _ => {}
        }
    }

    /// Whether whoever answers must say that it is the master.
    const fn wants_master(&self) -> bool {
        match self {
            #[cfg(feature = "redis-sentinel")]
            Self::Master(_) => true,
            _ => false,
        }
    }
}

/// Calls in a row without an answer after which the link is given up for dead.
const UNANSWERED_LIMIT: u32 = 2;

/// Why a call has no answer.
#[derive(Clone, Debug)]
pub(super) enum LinkError {
    /// There is no connection: nothing was sent.
    Connect(RedisError),
    /// It was sent; the server answered with an error, or did not answer.
    Call(RedisError),
}

type Pending = Shared<BoxFuture<'static, Result<MultiplexedConnection, RedisError>>>;

#[derive(Default)]
struct State {
    /// The connection, or the attempt at one.
    pending: Option<Pending>,
    /// Counts connections, so that a late failure of an old one does not break a new one.
    generation: u64,
    /// The endpoint's version when it was made.
    version: u64,
    unanswered: u32,
}

/// The connection and what is needed to make it again.
pub(super) struct Link {
    endpoint: Endpoint,
    op_timeout: Duration,
    state: Mutex<State>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("op_timeout", &self.op_timeout).finish_non_exhaustive()
    }
}

impl Link {
    /// A link that does not connect before its first call.
    pub(super) fn new(endpoint: Endpoint, op_timeout: Duration) -> Self {
        Self { endpoint, op_timeout, state: Mutex::default() }
    }

    /// Whether it is asked anew which server is the master.
    pub(super) const fn finds_masters(&self) -> bool {
        self.endpoint.wants_master()
    }

    /// Sends one command and waits for its answer, at most `op_timeout` after the connection stands.
    pub(super) async fn call(&self, command: &Cmd) -> Result<Value, LinkError> {
        let send = async |mut connection: MultiplexedConnection| connection.send_packed_command(command).await;
        self.send(send).await
    }

    /// The same, with leave to use keys that are being moved to this server.
    #[cfg(feature = "redis-cluster")]
    pub(super) async fn call_asking(&self, command: &Cmd) -> Result<Value, LinkError> {
        let mut pipeline = redis::Pipeline::with_capacity(2);
        pipeline.add_command(redis::cmd("ASKING")).add_command(command.clone());
        let send = async |mut connection: MultiplexedConnection| {
            let mut answers = connection.send_packed_commands(&pipeline, 1, 1).await?;
            answers.pop().ok_or_else(closed)
        };
        self.send(send).await
    }

    async fn send(
        &self,
        send: impl AsyncFnOnce(MultiplexedConnection) -> Result<Value, RedisError>,
    ) -> Result<Value, LinkError> {
        let (generation, pending) = self.connection();
        let connection = match pending.await {
            Ok(connection) => connection,
            Err(error) => {
                self.forget(generation);
                self.endpoint.doubt();
                return Err(LinkError::Connect(error));
            }
        };
        let unanswered = Unanswered { link: self, generation };
        let answer = send(connection).await.and_then(Value::extract_error);
        let doubtful = |error: &RedisError| !is_answer(error) || is_elsewhere(error) || error.code() == Some("LOADING");
        if answer.as_ref().is_err_and(doubtful) {
            self.endpoint.doubt();
        }
        match &answer {
            Err(error) if error.is_timeout() => drop(unanswered),
            Err(error) if !is_answer(error) || is_elsewhere(error) => {
                unanswered.settle();
                self.forget(generation);
            }
            _ => unanswered.settle(),
        }
        answer.map_err(LinkError::Call)
    }

    /// The standing connection, or an attempt at one that all who wait share.
    fn connection(&self) -> (u64, Pending) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.endpoint.version();
        if let Some(pending) = state.pending.as_ref().filter(|_| state.version == version) {
            return (state.generation, pending.clone());
        }
        // In a task of its own, so that a caller who gives up does not stop it for the others.
        let attempt = tokio::spawn(connect(self.endpoint.clone(), self.op_timeout));
        let pending = attempt.map(|joined| joined.unwrap_or_else(|_| Err(closed()))).boxed().shared();
        *state = State { pending: Some(pending.clone()), generation: state.generation + 1, version, unanswered: 0 };
        (state.generation, pending)
    }

    fn forget(&self, generation: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.generation == generation {
            state.pending = None;
        }
    }

    fn count(&self, generation: u64, answered: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.generation != generation {
            return;
        }
        state.unanswered = if answered { 0 } else { state.unanswered + 1 };
        if state.unanswered >= UNANSWERED_LIMIT {
            state.pending = None;
        }
    }
}

/// A call under way. Dropped without an answer, also by a caller who gave up, it counts against the link.
struct Unanswered<'a> {
    link: &'a Link,
    generation: u64,
}

impl Unanswered<'_> {
    fn settle(self) {
        self.link.count(self.generation, true);
        std::mem::forget(self);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.link.count(self.generation, false);
    }
}

/// True for an error that the server itself sent: the connection is in order.
pub(super) fn is_answer(error: &RedisError) -> bool {
    error.code().is_some()
}

/// True when the server says that it is not, or no longer, the one to ask: its name may lead to another by now.
fn is_elsewhere(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "NOAUTH"))
}

fn closed() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

/// Connects, logs in and names the connection. Half of `op_timeout` at most, so that a call that has to connect first
/// can still be answered within the whole.
async fn connect(endpoint: Endpoint, op_timeout: Duration) -> Result<MultiplexedConnection, RedisError> {
    let limit = op_timeout / 2;
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(Some(op_timeout));
    let greeted = async {
        let target = endpoint.target(limit).await?;
        let mut connection = target.connect_anonymously(config, limit).await?;
        if let Err(error) = greet(&mut connection, &target.login).await {
            return Err(target.explain(error, limit).await);
        }
        if endpoint.wants_master() {
            check_role(&mut connection).await?;
        }
        Ok(connection)
    };
    tokio::time::timeout(limit, greeted)
        .await
        .unwrap_or_else(|_| Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))))
}

/// Logs in, here rather than in the client library, which hides why the server refused; and waits for one answer, so
/// that a server that has no room for one more client is found out before anything is sent that may be applied. One
/// command at a time: of an answer that is not Redis' the client library tells a single command, and a pipeline only that
/// the connection broke.
async fn greet(connection: &mut MultiplexedConnection, login: &Login) -> Result<(), RedisError> {
    let mut greeting = login.greeting();
    let naming = greeting.pop();
    for command in &greeting {
        connection.send_packed_command(command).await?.extract_error()?;
    }
    let Some(naming) = naming else { return Ok(()) };
    match connection.send_packed_command(&naming).await?.extract_error() {
        // The name is a courtesy to readers of CLIENT LIST: a connection that may not set it goes without.
        Err(error) if !forbids_command(&error) => Err(error),
        _ => Ok(()),
    }
}

/// True where the user may not run the command, or the server has it not (`rename-command CLIENT ""`, and some proxies).
fn forbids_command(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or("").to_lowercase();
    let is_missing =
        ["unknown command", "unknown subcommand", "unsupported command"].iter().any(|text| detail.contains(text));
    error.code() == Some("NOPERM") || is_missing
}

/// A server may have been the master when the sentinels were asked and be none by now.
async fn check_role(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    let role = connection.send_packed_command(&redis::cmd("ROLE")).await?.extract_error()?;
    let is_master = match &role {
        Value::Array(items) => matches!(items.first(), Some(Value::BulkString(role)) if role == b"master"),
        _ => false,
    };
    let other = || RedisError::from(std::io::Error::other("the server that the sentinels name is no master (yet)"));
    if is_master { Ok(()) } else { Err(other()) }
}
