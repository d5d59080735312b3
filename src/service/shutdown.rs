//! The tasks of a guard or of a client for locks, and how they are told to end before the process does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A shutdown returned before the store had confirmed every release. What was not released lapses by itself: a run after
/// [`lease_ttl`](crate::service::GuardBuilder::lease_ttl), a lock after [`ttl`](crate::lock::LocksBuilder::ttl).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{left} not released, or not confirmed by the store: others wait until the leases lapse")]
#[non_exhaustive]
pub struct ShutdownError {
    /// How many runs, or how many requests for locks.
    pub left: usize,
}

/// The tasks of a guard or of a client for locks, and whether they are to end.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    tasks: TaskTracker,
    /// Nothing is begun any more, and what is held is asked to end.
    asked: CancellationToken,
    /// The grace is over: works are dropped.
    over: CancellationToken,
}

impl Shutdown {
    /// Counts this task, unless the shutdown has begun. A shutdown that begins later waits for the task.
    pub(crate) fn track<F: Future>(&self, task: F) -> Option<impl Future<Output = F::Output> + use<F>> {
        // Counted before the check: between the two a shutdown may begin.
        let tracked = self.tasks.track_future(task);
        (!self.is_asked()).then_some(tracked)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    pub(crate) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Asks all tasks to end, and waits for them, at most for `grace`.
    pub(crate) async fn begin(&self, grace: Duration) -> Result<(), ShutdownError> {
        self.asked.cancel();
        self.tasks.close();
        self.wait(grace).await
    }

    /// Drops what still works, and waits at most for `patience`.
    pub(super) async fn finish(&self, patience: Duration) -> Result<(), ShutdownError> {
        self.over.cancel();
        self.wait(patience).await
    }

    async fn wait(&self, span: Duration) -> Result<(), ShutdownError> {
        let ended = tokio::time::timeout(span, self.tasks.wait()).await;
        ended.map_err(|_| ShutdownError { left: self.tasks.len() })
    }
}
