//! A session with the servers, begun when first needed, and a new one when it has ended. Many calls share it.
//!
//! - What it needs is read from the url: `zookeeper://[user:password@]host[:port][,host[:port]…][/chroot]`, port 2181 unless given.
//!   Anything else in a url is refused rather than ignored.
//! - The client library keeps a session over lost connections by itself; what was under way then has no answer. A session
//!   that the servers have ended is terminal: only a new one helps. Nothing that excludes anybody belongs to a session, so no
//!   lease is lost with it. Nothing is ever sent twice.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use url::form_urlencoded;
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, CreateOptions, Error, EventType, PersistentWatcher, SessionState,
};

use super::fault::Fault;
use super::nodes::Paths;
use crate::slot::Token;
use crate::store::hints::{Hints, Reconnection, Teller};
use crate::store::locks::{LockHints, LockWakeups};
use crate::store::url::host_and_port;
use crate::store::{OpenError, Wake, Wakeups, redact};

const PORT: u16 = 2_181;

/// How a url is written.
pub(super) const FORM: &str = "write zookeeper://HOST:2181/chroot, or several hosts with commas between them";

/// What sessions are made from.
#[derive(Clone)]
pub(super) struct SessionTarget {
    /// The servers, as the client library takes them.
    servers: String,
    /// Below which node everything is; empty, or with a slash before each part.
    pub(super) chroot: String,
    /// `user:password` for the scheme `digest`.
    pub(super) login: Option<String>,
}

impl std::fmt::Debug for SessionTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("servers", &self.servers).field("chroot", &self.chroot).finish_non_exhaustive()
    }
}

impl SessionTarget {
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        Self::read(url).map_err(|message| OpenError::Url { url: redact(url), message })
    }

    fn read(url: &str) -> Result<Self, String> {
        let form = || format!("it names no host: {FORM}");
        let (_, rest) = url.split_once("://").ok_or_else(form)?;
        if rest.contains(['?', '#']) {
            return Err("it has parameters, and none is known here".to_owned());
        }
        let (user_info, rest) = match rest.rsplit_once('@') {
            Some((user_info, rest)) => (Some(user_info), rest),
            None => (None, rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        if hosts.is_empty() {
            return Err(form());
        }
        let servers = hosts.split(',').map(|host| host_and_port(host, PORT)).collect::<Result<Vec<_>, _>>()?.join(",");
        Ok(Self { servers, chroot: chroot(path)?, login: user_info.map(login).transpose()? })
    }
}

fn chroot(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(String::new());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let sound = |part: &str| !part.is_empty() && !matches!(part, "." | "..") && part.chars().all(allowed);
    if path.split('/').all(sound) {
        Ok(format!("/{path}"))
    } else {
        Err(format!("its path /{path} cannot be a node: use letters, digits and . _ - between slashes"))
    }
}

fn login(user_info: &str) -> Result<String, String> {
    let named = user_info.split_once(':').filter(|(user, _)| !user.is_empty());
    let (user, password) =
        named.ok_or_else(|| "it names no user with a password: write zookeeper://user:password@host".to_owned())?;
    Ok(format!("{}:{}", decoded(user), decoded(password)))
}

fn decoded(text: &str) -> String {
    // A plus sign is itself in this part of a url.
    let escaped = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
    let pair = form_urlencoded::parse(escaped.as_bytes()).next();
    pair.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// How long the servers keep a session that they do not hear of; they may make it shorter.
const SESSION: Duration = Duration::from_secs(10);

type Pending = Shared<BoxFuture<'static, Result<Client, Error>>>;

#[derive(Default)]
struct LinkState {
    pending: Option<Pending>,
    /// Counts sessions, so that a late failure of an old one does not end a new one.
    generation: u64,
}

/// The session and what is needed to begin it again.
pub(super) struct SessionLink {
    target: SessionTarget,
    paths: Paths,
    state: Mutex<LinkState>,
}

impl std::fmt::Debug for SessionLink {
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

impl SessionLink {
    /// A link that does not connect before its first call.
    pub(super) fn new(target: SessionTarget, paths: Paths) -> Self {
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
        *state = LinkState { pending: Some(pending.clone()), generation: state.generation + 1 };
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

async fn connect(target: SessionTarget) -> Result<Client, Error> {
    let connector = Client::connector().with_session_timeout(SESSION).with_fail_eagerly();
    let connector = match &target.login {
        Some(login) => connector.with_auth("digest", login.as_bytes()),
        None => connector,
    };
    connector.connect(&target.servers).await
}

/// Listens for wake-ups by a persistent watch on a session of its own: in the background, from the first subscription until
/// the store is dropped. A watch ends with its session, and what happens while the connection is away is not told afterwards;
/// a watch may even stay deaf once it is back (seen with a server that was restarted). So after each of both a new session
/// is begun, and `Resync` tells that hints may have been lost: holders renew at once.
///
/// Nothing depends on a hint, so nothing here is an error.
#[derive(Debug)]
pub(super) struct Listener {
    link: Arc<SessionLink>,
    paths: Paths,
    hints: Hints,
    lock_hints: Arc<LockHints>,
}

impl Listener {
    /// A listener that does not connect before the first subscription.
    pub(super) fn new(link: SessionLink, paths: Paths) -> Self {
        Self { link: Arc::new(link), paths, hints: Hints::default(), lock_hints: Arc::default() }
    }

    /// Hints from now on.
    pub(super) fn subscribe(&self) -> Wakeups {
        let (link, paths) = (Arc::clone(&self.link), self.paths.clone());
        let lock_hints = Arc::clone(&self.lock_hints);
        self.hints.subscribe(|hints| Watch { link, paths, hints, lock_hints }.listen())
    }

    /// Hints on locks to this instance from now on.
    pub(super) fn listen_locks(&self, instance: Token) -> LockWakeups {
        // Before anything is heard: what comes first is that hints may have been lost.
        let wakeups = self.lock_hints.listen(instance);
        drop(self.subscribe());
        wakeups
    }

    /// Tells those who listen here.
    pub(super) fn tell(&self, wake: Wake) {
        self.hints.tell(wake);
    }
}

/// What the task has of the listener.
struct Watch {
    link: Arc<SessionLink>,
    paths: Paths,
    hints: Teller,
    lock_hints: Arc<LockHints>,
}

impl Watch {
    /// Listens until the task is stopped.
    async fn listen(self) {
        let mut again = Reconnection::default();
        loop {
            match self.open().await {
                // The session is kept for as long as its watch: it ends when its client is dropped.
                Ok((session, events)) => {
                    again.connected();
                    self.hints.tell(Wake::Resync);
                    self.lock_hints.resync();
                    self.relay(events).await;
                    self.link.forget(session.generation);
                    tracing::debug!(session = ?session.client.session_id(), "the session for wake-ups ended");
                }
                Err(error) => {
                    tracing::debug!(%error, "no session for wake-ups");
                    again.failed();
                }
            }
            again.wait().await;
        }
    }

    async fn open(&self) -> Result<(Session, PersistentWatcher), Fault> {
        let session = self.link.session().await?;
        self.link.prepare(&session.client).await?;
        let events = session.client.watch(&self.paths.wakes(), AddWatchMode::PersistentRecursive).await?;
        Ok((session, events))
    }

    /// Passes hints on until the connection is lost.
    async fn relay(&self, mut events: PersistentWatcher) {
        loop {
            let event = events.changed().await;
            match event.event_type {
                EventType::Session if event.session_state != SessionState::SyncConnected => return,
                EventType::NodeCreated => {
                    // What somebody else makes there is no hint.
                    let message = self.paths.message_of(&event.path).unwrap_or_default();
                    if !self.lock_hints.hear(message)
                        && let Ok(wake) = message.parse()
                    {
                        self.hints.tell(wake);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_is_read() {
        let target = SessionTarget::parse("zookeeper://a,b:1,[::1]/ops/cron/").unwrap();
        assert_eq!((target.servers.as_str(), target.chroot.as_str()), ("a:2181,b:1,[::1]:2181", "/ops/cron"));
        let target = SessionTarget::parse("zookeeper://us%40er:p%2Fw@h").unwrap();
        assert_eq!((target.login.as_deref(), target.chroot.as_str()), (Some("us@er:p/w"), ""));
        assert!(!format!("{target:?}").contains("p/w"));
    }

    #[test]
    fn a_refused_url_is_told_without_its_password_and_with_a_way_out() {
        for (url, way_out) in [
            ("zookeeper://u:hunter2@", "HOST:2181"),
            ("zookeeper://u:hunter2@h:port", "HOST:PORT"),
            ("zookeeper://u:hunter2@h/a//b", "letters, digits"),
            ("zookeeper://u:hunter2@h/..", "letters, digits"),
            ("zookeeper://u:hunter2@h?tls=1", "none is known"),
            ("zookeeper://hunter2@h", "user:password"),
        ] {
            let told = SessionTarget::parse(url).unwrap_err().to_string();
            assert!(told.contains(way_out) && !told.contains("hunter2") && !told.contains('\n'), "{told}");
        }
    }
}
