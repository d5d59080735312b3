//! Goes on with another password: a store that refuses its own is opened again with the one that is written by then, and what
//! it refused is asked once more.
//!
//! - The url is read again when it is refused, at most once a second, and with each heartbeat: before the old password ends,
//!   and where nothing but the listening for wake-ups is refused. [`Rotation::offer`] is for whoever has read it.
//! - It may differ in a password and in nothing else. Another user, host, database or option is not taken: leases stand where they
//!   were made, and another user may be led to another place (PostgreSQL looks for tables by the user's name).
//! - A new password is taken once the store has answered to it, and nothing is made or changed for that. Until then the old one
//!   stays, so that a slip of the pen costs nothing while it is good.
//! - What was begun with the old one ends with it. Wake-ups are subscribed to anew, and the first tells that some may have
//!   been lost.
//!
//! What is asked once more was refused before anything was done ([`Applied::No`]): nothing that may have been applied is repeated.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use crate::clock::{Clock, Mono};
use crate::store::layer::Reply;
use crate::store::layer::{Call, Current, Layer, Layered};
use crate::store::url::differ_in_password;
use crate::store::{Applied, ErrorKind, Op, OpenError, Store};

/// Why a url is not taken whatever its password.
const ELSEWHERE: &str =
    "the url differs in more than its password: another user, host, database or option needs a restart";
/// Between two readings of a url that is refused.
const AGAIN: Duration = Duration::from_secs(1);
/// A call that was refused waits so long for a new password to be tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where credentials come from, and what they open.
#[async_trait]
pub trait Credentials: Debug + Send + Sync + 'static {
    /// The url as it is written now; none where it is written nowhere that could change.
    ///
    /// # Errors
    /// Why it cannot be read, in one line without secrets.
    async fn read(&self) -> Result<Option<String>, String>;

    /// Opens the store at a url, as [`crate::store::open()`], and makes nothing there ([`StoreOptions::as_it_is`]).
    ///
    /// [`StoreOptions::as_it_is`]: crate::store::StoreOptions::as_it_is
    async fn open(&self, url: &str) -> Result<Arc<dyn Store>, OpenError>;
}

/// The store in use, and how to go on with another password.
#[derive(Debug)]
pub struct Rotation {
    current: Arc<Current>,
    source: Box<dyn Credentials>,
    clock: Arc<dyn Clock>,
    held: tokio::sync::Mutex<InForce>,
    reading: Mutex<Reading>,
}

/// What is known of urls.
struct InForce {
    /// The one in use.
    url: String,
    /// What was told last of another one: the same is not told each second.
    told: String,
}

impl Debug for InForce {
    /// Without the url: it holds secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InForce").field("told", &self.told).finish_non_exhaustive()
    }
}

/// The last time that the url was read here.
#[derive(Debug, Default)]
struct Reading {
    begun: Option<Mono>,
    /// All who were refused meanwhile wait for the same.
    pending: Option<Shared<BoxFuture<'static, ()>>>,
}

impl Rotation {
    /// Begins with a store that was opened at `url`.
    pub fn of(store: Arc<dyn Store>, url: &str, source: Box<dyn Credentials>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let held = InForce { url: url.to_owned(), told: String::new() };
        Arc::new(Self {
            current: Arc::new(Current::replaceable(store)),
            source,
            clock,
            held: tokio::sync::Mutex::new(held),
            reading: Mutex::default(),
        })
    }

    /// The store with whichever password is good.
    pub fn store(self: &Arc<Self>) -> Arc<dyn Store> {
        Arc::new(Layered::over(Arc::clone(&self.current), Arc::clone(self)))
    }

    /// Takes the password of a url that was read, unless it is the one in use. What is not taken is logged.
    pub async fn offer(&self, url: &str) {
        let mut held = self.held.lock().await;
        // Whoever asks for it hears of it, also a second time.
        held.told.clear();
        self.judge(&mut held, url).await;
    }

    /// Whether there is another password by now than that of this generation.
    async fn renewed(self: &Arc<Self>, generation: u64) -> bool {
        if self.current.generation() != generation {
            // Somebody else was refused first, and has read it.
            return true;
        }
        if let Some(pending) = self.read_again() {
            let _ = tokio::time::timeout(PATIENCE, pending).await;
        }
        self.current.generation() != generation
    }

    /// The reading that is under way, or another one if it is time.
    fn read_again(self: &Arc<Self>) -> Option<Shared<BoxFuture<'static, ()>>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it is over is seen by asking it: nobody may have waited for it.
        if let Some(pending) = reading.pending.clone().filter(|pending| pending.clone().now_or_never().is_none()) {
            return Some(pending);
        }
        let now = self.clock.now().mono;
        if reading.begun.is_some_and(|begun| now.since(begun) < AGAIN) {
            return None;
        }
        // In a task of its own: a caller who gives up does not stop it for the others.
        let this = Arc::clone(self);
        let pending = tokio::spawn(async move { this.take_written().await }).map(|_| ()).boxed().shared();
        *reading = Reading { begun: Some(now), pending: Some(pending.clone()) };
        Some(pending)
    }

    async fn take_written(&self) {
        let read = self.source.read().await;
        let mut held = self.held.lock().await;
        match read {
            Ok(None) => {}
            Ok(Some(url)) => self.judge(&mut held, &url).await,
            Err(error) => self.refuse(&mut held, &error),
        }
    }

    async fn judge(&self, held: &mut InForce, url: &str) {
        if held.url == url {
            held.told.clear();
            return;
        }
        if !differ_in_password(&held.url, url) {
            return self.refuse(held, ELSEWHERE);
        }
        match self.opened(url).await {
            Ok(store) => {
                self.current.replace(store);
                *held = InForce { url: url.to_owned(), told: String::new() };
                tracing::info!(store = self.current.location(), "the store's new password is in use");
            }
            Err(error) => self.refuse(held, &error.to_string()),
        }
    }

    /// A store that has answered.
    async fn opened(&self, url: &str) -> Result<Arc<dyn Store>, OpenError> {
        let store = self.source.open(url).await?;
        store.nodes().await?;
        Ok(store)
    }

    fn refuse(&self, held: &mut InForce, why: &str) {
        if held.told == why {
            return;
        }
        why.clone_into(&mut held.told);
        let store = self.current.location();
        if why == ELSEWHERE {
            tracing::error!(store, error = why, "the store's url changed and is not taken: the old one stays");
        } else {
            // It may be right by the next reading.
            tracing::warn!(store, error = why, "the store's url changed and is not taken: the old one stays");
        }
    }
}

#[async_trait]
impl Layer for Arc<Rotation> {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let generation = self.current.generation();
        let reply = call().await;
        if op == Op::Heartbeat {
            // Nobody waits for what comes of it.
            drop(self.read_again());
        }
        let refused = matches!(&reply, Err(error) if error.kind == ErrorKind::Denied && error.applied == Applied::No);
        if refused && self.renewed(generation).await { call().await } else { reply }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::clock::ManualClock;
    use crate::job::{JobName, NodeName};
    use crate::resource::{AcquireRequest, Acquired, LockRenewal};
    use crate::slot::{Outcome, RunRecord, Slot, Token, Trigger};
    use crate::store::memory::MemoryStore;
    use crate::store::{ChangeHint, Claim, ClaimRequest, Renewal, StoreError, StoreOptions, Wake, WakeKind};

    const OLD: &str = "redis://u:old@h";
    const NEW: &str = "redis://u:new@h";

    /// A server whose password can be changed, and a file with the url.
    #[derive(Debug)]
    struct Server {
        memory: MemoryStore,
        clock: ManualClock,
        passwords: Mutex<Vec<&'static str>>,
        file: Mutex<Result<Option<String>, String>>,
        read: AtomicU32,
    }

    /// What stands between a connection and the server.
    #[derive(Debug)]
    struct Login {
        server: Arc<Server>,
        password: String,
    }

    #[derive(Debug)]
    struct File(Arc<Server>);

    #[async_trait]
    impl Layer for Login {
        async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
            if self.server.passwords.lock().unwrap().contains(&&*self.password) {
                return call().await;
            }
            Err(StoreError::new(ErrorKind::Denied, Applied::No, op, location, "wrong user or password"))
        }
    }

    #[async_trait]
    impl Credentials for File {
        async fn read(&self) -> Result<Option<String>, String> {
            self.0.read.fetch_add(1, Ordering::Relaxed);
            self.0.file.lock().unwrap().clone()
        }

        async fn open(&self, url: &str) -> Result<Arc<dyn Store>, OpenError> {
            Ok(self.0.at(url))
        }
    }

    impl Server {
        fn start() -> Arc<Self> {
            let clock = ManualClock::at("2026-11-21T14:10:00Z".parse().unwrap());
            Arc::new(Self {
                memory: MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())),
                clock,
                passwords: Mutex::new(vec!["old"]),
                file: Mutex::new(Ok(Some(OLD.to_owned()))),
                read: AtomicU32::new(0),
            })
        }

        fn at(self: &Arc<Self>, url: &str) -> Arc<dyn Store> {
            let password = url.split([':', '@']).nth(2).unwrap().to_owned();
            Arc::new(Layered::new(Arc::new(self.memory.clone()), Login { server: Arc::clone(self), password }))
        }

        fn rotation(self: &Arc<Self>) -> Arc<Rotation> {
            Rotation::of(self.at(OLD), OLD, Box::new(File(Arc::clone(self))), Arc::new(self.clock.clone()))
        }

        fn change_password(&self) {
            *self.passwords.lock().unwrap() = vec!["new"];
        }

        fn write(&self, url: &str) {
            *self.file.lock().unwrap() = Ok(Some(url.to_owned()));
        }

        fn times_read(&self) -> u32 {
            self.read.load(Ordering::Relaxed)
        }
    }

    fn slot() -> Slot {
        Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    fn request() -> ClaimRequest {
        ClaimRequest {
            slot: slot(),
            token: Token::from_bits(1),
            node: NodeName::new("a").unwrap(),
            lease_ttl: Duration::from_secs(60),
            max_attempts: 3,
            trigger: Trigger::Schedule,
            exclusive: false,
            past: false,
            audit: None,
        }
    }

    async fn claimed(store: &dyn Store) -> crate::slot::Lease {
        match store.claim(&request()).await {
            Ok(Claim::Claimed { attempt, at, .. }) => request().granted(attempt, at),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_refused_call_is_made_again_with_the_credentials_that_are_written_by_then() {
        let server = Server::start();
        let store = server.rotation().store();
        let lease = claimed(&*store).await;
        server.change_password();
        server.write(NEW);
        assert_eq!(store.renew(&lease).await.unwrap(), Renewal::Renewed, "under the same lease");
        assert!(store.nodes().await.is_ok());
        assert_eq!(server.times_read(), 1, "nothing is read while nothing is refused");
    }

    #[tokio::test]
    async fn locks_are_held_on_with_the_new_password() {
        let server = Server::start();
        let locks = server.rotation().store().lock_store().unwrap();
        let (node, demand) = (NodeName::new("a").unwrap(), "db".parse::<crate::resource::Demand>().unwrap());
        let token = Token::from_bits(1);
        let request = AcquireRequest::new(token, node, token, Duration::from_secs(60), demand.into());
        let Acquired::Held { fence, places, .. } = locks.acquire(&request).await.unwrap() else { panic!() };
        server.change_password();
        server.write(NEW);
        assert_eq!(locks.renew_lock(&request.granted(fence, places)).await.unwrap(), LockRenewal::Renewed);
    }

    #[tokio::test]
    async fn what_is_written_before_the_old_password_ends_is_taken_with_a_heartbeat() {
        let server = Server::start();
        let rotation = server.rotation();
        server.passwords.lock().unwrap().push("new");
        server.write(NEW);
        rotation.around(Op::Heartbeat, "", &|| Box::pin(async { Ok(()) })).await.unwrap();
        assert!(rotation.renewed(0).await);
        server.change_password();
        assert!(rotation.store().nodes().await.is_ok());
        assert_eq!(server.times_read(), 1, "nothing was refused");
    }

    #[tokio::test]
    async fn who_is_refused_after_another_has_taken_the_new_password_goes_on_with_it_and_reads_nothing() {
        let server = Server::start();
        let rotation = server.rotation();
        server.change_password();
        server.write(NEW);
        let (late, store) = (server.at(OLD), rotation.store());
        let call = || -> BoxFuture<'_, Reply<_>> {
            Box::pin(async {
                if rotation.current.generation() > 0 {
                    return store.nodes().await;
                }
                // Under way with the old one while another is refused.
                store.nodes().await.unwrap();
                server.clock.advance(AGAIN);
                late.nodes().await
            })
        };
        assert!(rotation.around(Op::Nodes, "", &call).await.is_ok());
        assert_eq!(server.times_read(), 1, "by the other");
    }

    #[tokio::test]
    async fn each_heartbeat_has_the_file_read_though_nobody_waits_for_it() {
        let server = Server::start();
        let rotation = server.rotation();
        for times in 1..=3 {
            rotation.around(Op::Heartbeat, "", &|| Box::pin(async { Ok(()) })).await.unwrap();
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(server.times_read(), times);
            server.clock.advance(AGAIN);
        }
    }

    #[tokio::test]
    async fn while_nothing_else_is_written_the_file_is_read_once_a_second() {
        let server = Server::start();
        let store = server.rotation().store();
        server.change_password();
        for _ in 0..100 {
            assert_eq!(store.nodes().await.unwrap_err().kind, ErrorKind::Denied);
        }
        assert_eq!(server.times_read(), 1);
        server.write(NEW);
        assert!(store.nodes().await.is_err(), "the second is not over");
        server.clock.advance(AGAIN);
        assert!(store.nodes().await.is_ok());
        assert_eq!(server.times_read(), 2);
    }

    #[tokio::test]
    async fn another_place_is_never_taken_and_neither_is_a_file_that_cannot_be_read() {
        let server = Server::start();
        let rotation = server.rotation();
        let store = rotation.store();
        for elsewhere in ["redis://u:new@other", "redis://u:new@h/1", "rediss://u:new@h", "redis://v:new@h", ""] {
            rotation.offer(elsewhere).await;
            assert_eq!(rotation.held.lock().await.told, ELSEWHERE, "{elsewhere:?}");
            assert!(store.nodes().await.is_ok(), "{elsewhere:?}: the old one stays");
        }
        server.change_password();
        server.write("redis://u:new@other");
        assert!(store.nodes().await.is_err());
        *server.file.lock().unwrap() = Err("there is no such file".to_owned());
        server.clock.advance(AGAIN);
        assert!(store.nodes().await.is_err());
        assert!(rotation.held.lock().await.told.contains("no such file"));
    }

    #[tokio::test]
    async fn a_password_that_the_store_does_not_know_is_not_taken_and_not_shown() {
        let server = Server::start();
        let rotation = server.rotation();
        rotation.offer(NEW).await;
        assert!(rotation.store().nodes().await.is_ok(), "the old one is still good");
        let told = rotation.held.lock().await.told.clone();
        assert!(told.contains("wrong user or password") && !told.contains("new"), "{told}");
        server.change_password();
        rotation.offer(NEW).await;
        assert!(rotation.store().nodes().await.is_ok());
        assert_eq!(server.times_read(), 0, "who offers has read it");
        assert!(!format!("{rotation:?}").contains("new@"));
    }

    #[tokio::test]
    async fn who_listens_goes_on_hearing_hints() {
        let server = Server::start();
        let rotation = server.rotation();
        let store = rotation.store();
        let (mut wakeups, mut changes) = (store.subscribe(), store.changes());
        server.change_password();
        rotation.offer(NEW).await;
        let lease = claimed(&*store).await;
        let run = RunRecord { outcome: Some(Outcome::Success), ..RunRecord::begun(&lease) };
        store.complete(&lease, &run, Duration::from_secs(60)).await.unwrap();
        let done = Wake::Slot { job: JobName::new("job").unwrap(), key: slot().key(), what: WakeKind::Done };
        while wakeups.recv().await.unwrap() != done {}
        while changes.recv().await.unwrap() != ChangeHint::of(&slot()) {}
    }
}
