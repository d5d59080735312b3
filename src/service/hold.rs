//! The two ends of one run: what the work is told of it, and of its lease while it runs; and the work as the task that drives the
//! slot sees it: started, asked to end and ended in the caller's task, over channels.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::drive::{Renewals, Started, Work, timers};
use crate::machine::TrustWindow;
use crate::slot::{Attempt, Exit, ExitStatus, Fence, RunContext, Slot};

/// How the lease of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is held, as far as this process can tell.
    Held,
    /// It was not renewed in time, or nothing renews it any more: another process may start.
    InDoubt,
    /// It is another's, or an operator took it: two runs may overlap.
    Lost,
}

/// A run under its lease. The lease is held until the work has ended, however long that takes.
#[derive(Clone, Debug)]
pub struct Hold {
    pub(super) run: Arc<RunContext>,
    /// How long the lease can be trusted unless it is renewed; closed once the attempt has ended.
    pub(super) trust: watch::Receiver<Option<TrustWindow>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ending: CancellationToken,
}

impl Hold {
    /// The slot.
    pub fn slot(&self) -> &Slot {
        &self.run.slot
    }

    /// Which attempt of the slot this is, counted over all processes from 1.
    pub fn attempt(&self) -> Attempt {
        self.run.attempt
    }

    /// A number that is larger for every later attempt and slot of the job. A resource that keeps the largest it has seen, and
    /// refuses a smaller one, is safe from a run that stalled past its lease.
    pub fn fence(&self) -> Fence {
        self.run.fence
    }

    /// The store's own number of the grant, where it has one ([`crate::slot::Lease::revision`]): in etcd a transaction that
    /// compares the mark's `mod_revision` with it fails once the slot is somebody else's.
    pub fn fence_revision(&self) -> Option<u64> {
        self.run.fence_revision
    }

    /// All that is known of the run.
    pub fn context(&self) -> &RunContext {
        &self.run
    }

    /// The state of the lease now, by the clock: true also right after the process was stopped, or after the work kept the runtime
    /// from renewing. Ask before a step that must not happen twice; only a resource that checks [`Hold::fence`] makes such a step safe.
    ///
    /// [`Standing::InDoubt`] once the attempt has ended, or the runtime that renews the lease.
    pub fn standing(&self) -> Standing {
        let trust = *self.trust.borrow();
        match trust {
            None => Standing::Lost,
            Some(trust) if self.trust.has_changed().is_ok() && trust.holds(self.clock.now().mono) => Standing::Held,
            Some(_) => Standing::InDoubt,
        }
    }

    /// Returns once [`Hold::standing`] is no longer [`Standing::Held`], and what it is then. Needs a tokio runtime with timers.
    pub async fn lost(&self) -> Standing {
        let mut trust = self.trust.clone();
        loop {
            let until = trust.borrow_and_update().map(TrustWindow::deadline);
            let standing = self.standing();
            if standing != Standing::Held {
                return standing;
            }
            tokio::select! {
                _ = trust.changed() => {}
                () = timers::until(&*self.clock, until) => {}
            }
        }
    }

    /// Returns once the work is asked to end: its timeout has passed, or its lease is lost and the policy is
    /// [`crate::service::OnLost::Kill`]. Its future is dropped `kill_after` later, or sooner where the lease ends; not while the process
    /// or its runtime stands still.
    pub async fn cancelled(&self) {
        self.ending.cancelled().await;
    }

    /// Whether the work is asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// The same for tasks and threads that the work has spawned. Cancelled also when the work's future is dropped.
    pub fn token(&self) -> CancellationToken {
        self.ending.child_token()
    }
}

/// An order to the caller's task: start the work.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) run: RunContext,
    /// How long its lease can be trusted.
    pub(super) trust: watch::Receiver<Option<TrustWindow>>,
    /// Cancelled to ask the work to end.
    pub(super) ending: CancellationToken,
    /// Cancelled to drop it.
    pub(super) killed: CancellationToken,
    /// How it ended.
    pub(super) ended: oneshot::Sender<Exit>,
}

/// Sends orders.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) orders: mpsc::UnboundedSender<Start>,
}

#[async_trait]
impl Work for Remote {
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started> {
        let (ended, end) = oneshot::channel();
        let (ending, killed) = (CancellationToken::new(), CancellationToken::new());
        // Where the caller is gone, the order is dropped with its end: see `wait`.
        let _ =
            self.orders.send(Start { run, trust: lease.trust, ending: ending.clone(), killed: killed.clone(), ended });
        Box::new(Running { ending, killed, end: Some(end), exit: None })
    }
}

/// A work that runs in the caller's task. Dropping it drops the work.
struct Running {
    ending: CancellationToken,
    killed: CancellationToken,
    /// None once the caller has dropped its end: it is asked only once.
    end: Option<oneshot::Receiver<Exit>>,
    exit: Option<Exit>,
}

#[async_trait]
impl Started for Running {
    fn begun(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn terminate(&self) {
        self.ending.cancel();
    }

    fn kill(&self) {
        self.ending.cancel();
        self.killed.cancel();
    }

    async fn wait(&mut self) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        if let Some(end) = &mut self.end {
            if let Ok(exit) = end.await {
                return self.exit.insert(exit).clone();
            }
            self.end = None;
        }
        // The caller has dropped its future. It is asked to leave because of that, and only then the run is one that was given
        // back and not one that failed.
        self.ending.cancelled().await;
        self.exit.insert(interrupted()).clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The end of a work that was dropped: as of a command that was killed.
pub(super) fn interrupted() -> Exit {
    exit(ExitStatus::Signal(9), Some("the work's future was dropped".to_owned()))
}

pub(super) fn exit(status: ExitStatus, note: Option<String>) -> Exit {
    Exit { note, ..Exit::of(status) }
}
