//! Wake-ups at an adapter: those who listen, the task that hears for them, and how long that waits before it connects again.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;

use crate::store::{ChangeHint, Changes, Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// A channel that is made for the first who listens: most stores, and each layer around one, have a few that nobody ever listens to.
#[derive(Debug)]
struct Channel<T> {
    sender: Arc<OnceLock<broadcast::Sender<T>>>,
    /// Hints that a receiver may lag behind by.
    bound: usize,
}

// Not derived: the hints need not be clonable for that.
impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Self { sender: Arc::clone(&self.sender), bound: self.bound }
    }
}

impl<T: Clone> Channel<T> {
    fn of(bound: usize) -> Self {
        Self { sender: Arc::default(), bound }
    }

    fn sender(&self) -> &broadcast::Sender<T> {
        self.sender.get_or_init(|| broadcast::Sender::new(self.bound))
    }

    fn tell(&self, hint: T) {
        // Nobody may be listening just now, or ever have been.
        let _ = self.sender.get().map(|sender| sender.send(hint));
    }

    fn receivers(&self) -> usize {
        self.sender.get().map_or(0, broadcast::Sender::receiver_count)
    }
}

/// Tells those who listen here, and nobody else.
#[derive(Clone, Debug)]
pub(super) struct Teller(Channel<Wake>);

impl Default for Teller {
    fn default() -> Self {
        Self::of(HINTS)
    }
}

impl Teller {
    /// One whose receivers may lag behind by so many hints.
    fn of(hints: usize) -> Self {
        Self(Channel::of(hints))
    }

    pub(super) fn tell(&self, wake: Wake) {
        self.0.tell(wake);
    }

    /// Hints from now on.
    pub(super) fn subscribe(&self) -> Wakeups {
        self.0.sender().subscribe()
    }

    /// Passes one connection's hints on, until it has no more.
    pub(super) async fn pass_on(self, mut from: Wakeups) {
        loop {
            match from.recv().await {
                Ok(wake) => self.tell(wake),
                Err(RecvError::Lagged(_)) => self.tell(Wake::Resync),
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Those who listen, and the task that hears for them: from the first subscription until the store is dropped.
#[derive(Debug, Default)]
pub(super) struct Hints {
    teller: Teller,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Hints {
    /// Of several connections, whose hints come at once.
    #[cfg(feature = "redis-redlock")]
    pub(super) fn of_many() -> Self {
        Self { teller: Teller::of(4 * HINTS), task: Mutex::default() }
    }

    /// Hints from now on. `listen` is begun where nobody hears yet. Outside of a runtime there are none.
    pub(super) fn subscribe<L>(&self, listen: impl FnOnce(Teller) -> L) -> Wakeups
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let hints = self.teller.subscribe();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && task.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            *task = Some(AbortOnDropHandle::new(runtime.spawn(listen(self.teller.clone()))));
        }
        hints
    }

    #[cfg(feature = "zookeeper")]
    pub(super) fn tell(&self, wake: Wake) {
        self.teller.tell(wake);
    }
}

/// Tells those who look on here, and nobody else.
#[derive(Clone, Debug)]
pub(super) struct Onlookers(Channel<ChangeHint>);

impl Default for Onlookers {
    fn default() -> Self {
        Self(Channel::of(HINTS))
    }
}

impl Onlookers {
    pub(super) fn tell(&self, hint: ChangeHint) {
        self.0.tell(hint);
    }

    /// Hints from now on.
    pub(super) fn subscribe(&self) -> Changes {
        self.0.sender().subscribe()
    }

    /// Passes another store's hints on, until it has no more.
    pub(super) async fn pass_on(self, mut from: Changes) {
        loop {
            match from.recv().await {
                Ok(hint) => self.tell(hint),
                Err(RecvError::Lagged(_)) => self.tell(ChangeHint::Resync),
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// What a store answers that tells nobody of changes: closed at once.
pub(super) fn no_changes() -> Changes {
    broadcast::Sender::new(1).subscribe()
}

/// Those who look on, and the task that hears for them: for the first of them it is begun, and with the last it ends.
#[derive(Debug, Default)]
pub(super) struct ChangeTeller {
    onlookers: Onlookers,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl ChangeTeller {
    /// Hints from now on. Outside of a runtime there are none.
    pub(super) fn subscribe<L>(&self, listen: impl FnOnce(Onlookers) -> L) -> Changes
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let hints = self.onlookers.subscribe();
        // The task of those who have left may still be about to end.
        let is_first = self.onlookers.0.receivers() == 1;
        if is_first || task.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            *task = self.begin(listen);
        }
        hints
    }

    /// The task begun anew where somebody looks on: whom it listened to is gone, and hints may be lost.
    pub(super) fn listen_anew<L>(&self, listen: impl FnOnce(Onlookers) -> L)
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if self.onlookers.0.receivers() > 0 {
            *task = self.begin(listen);
            self.onlookers.tell(ChangeHint::Resync);
        }
    }

    fn begin<L>(&self, listen: impl FnOnce(Onlookers) -> L) -> Option<AbortOnDropHandle<()>>
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (listening, onlookers) = (listen(self.onlookers.clone()), self.onlookers.clone());
        Some(AbortOnDropHandle::new(runtime.spawn(async move {
            tokio::select! {
                () = listening => {}
                () = onlookers.0.sender().closed() => {}
            }
        })))
    }
}

/// The wait before a connection is made again; it doubles up to the longest.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long whoever listens waits before it connects again.
#[derive(Debug)]
pub(super) struct Reconnection {
    wait: Duration,
}

impl Default for Reconnection {
    fn default() -> Self {
        Self { wait: SHORTEST_WAIT }
    }
}

impl Reconnection {
    pub(super) const fn connected(&mut self) {
        self.wait = SHORTEST_WAIT;
    }

    pub(super) fn failed(&mut self) {
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    #[allow(clippy::disallowed_methods, reason = "the wait before a connection is made again; the file owns it")]
    pub(super) async fn wait(&self) {
        tokio::time::sleep(self.wait).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::job::JobName;

    /// Counts who listens, and tells of nothing.
    struct Listening(Arc<AtomicUsize>);

    impl Listening {
        fn begin(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(count))
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn comes_to(count: &Arc<AtomicUsize>, wanted: usize) {
        while count.load(Ordering::Relaxed) != wanted {
            tokio::task::yield_now().await;
        }
    }

    fn listen(
        count: &Arc<AtomicUsize>,
    ) -> impl FnOnce(Onlookers) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        let count = Arc::clone(count);
        move |onlookers| {
            Box::pin(async move {
                let _listening = Listening::begin(&count);
                onlookers.tell(ChangeHint::Resync);
                std::future::pending::<()>().await;
            })
        }
    }

    #[tokio::test]
    async fn the_store_is_listened_to_as_long_as_somebody_looks_on() {
        let (teller, count) = (ChangeTeller::default(), Arc::default());
        let mut first = teller.subscribe(listen(&count));
        assert_eq!(first.recv().await.ok(), Some(ChangeHint::Resync));
        let second = teller.subscribe(listen(&count));
        drop(first);
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::Relaxed), 1, "one task for all");
        drop(second);
        comes_to(&count, 0).await;
    }

    #[tokio::test]
    async fn who_comes_as_the_last_one_leaves_is_told_all_the_same() {
        let (teller, count) = (ChangeTeller::default(), Arc::default());
        for _ in 0..100 {
            let mut onlooker = teller.subscribe(listen(&count));
            assert_eq!(onlooker.recv().await.ok(), Some(ChangeHint::Resync));
            // The task has not had its turn since.
            drop(onlooker);
        }
        comes_to(&count, 0).await;
        let _onlooker = teller.subscribe(listen(&count));
        comes_to(&count, 1).await;
        drop(teller);
        comes_to(&count, 0).await;
    }

    #[tokio::test]
    async fn a_listening_begun_anew_says_that_hints_may_be_lost_and_none_is_begun_for_nobody() {
        let (teller, count) = (ChangeTeller::default(), Arc::default());
        teller.listen_anew(listen(&count));
        tokio::task::yield_now().await;
        assert_eq!(count.load(Ordering::Relaxed), 0);
        let mut onlooker = teller.subscribe(|_| std::future::pending());
        let other = ChangeTeller::default();
        let job = ChangeHint::Job(JobName::new("a").unwrap());
        let from = other.subscribe(|_| std::future::pending());
        teller.listen_anew(|onlookers| onlookers.pass_on(from));
        assert_eq!(onlooker.recv().await.ok(), Some(ChangeHint::Resync));
        other.onlookers.tell(job.clone());
        assert_eq!(onlooker.recv().await.ok(), Some(job));
    }
}
