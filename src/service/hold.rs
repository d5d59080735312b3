//! The two ends of one run: what the work is told of it, and of its lease while it runs; and the work as the task that drives the
//! slot sees it: started, asked to end and ended in the caller's task, over channels.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::drive::{Renewals, Started, Work};
use crate::event::Event;
use crate::observe::Observer;
use crate::reply::RenewalAnswer;
use crate::slot::{Attempt, Exit, ExitStatus, Fence, RunContext, Slot};

/// How the lease of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is held, as far as this process can tell.
    Held,
    /// It could not be renewed in time: another process may start.
    InDoubt,
    /// It is another's, or an operator took it: two runs may overlap.
    Lost,
}

/// A run under its lease. The lease is held until the work has ended, however long that takes.
#[derive(Clone, Debug)]
pub struct Hold {
    pub(super) run: Arc<RunContext>,
    pub(super) standing: watch::Receiver<Standing>,
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

    /// How the lease stands now. To be asked before a step that must not be done twice; the fence alone makes it safe.
    pub fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    /// Returns once the lease is lost or in doubt; never while it is held.
    pub async fn lost(&self) -> Standing {
        let mut standing = self.standing.clone();
        match standing.wait_for(|standing| *standing != Standing::Held).await {
            Ok(standing) => *standing,
            // The run is over: nothing can be lost any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns once the work is asked to end: its timeout has passed, or its lease is lost and the policy is
    /// [`crate::service::OnLost::Kill`]. Its future is dropped `kill_after` later, or sooner where the lease ends.
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
    async fn start(&self, run: RunContext, _lease: Renewals) -> Box<dyn Started> {
        let (ended, end) = oneshot::channel();
        let (ending, killed) = (CancellationToken::new(), CancellationToken::new());
        // Where the caller is gone, the order is dropped with its end: see `wait`.
        let _ = self.orders.send(Start { run, ending: ending.clone(), killed: killed.clone(), ended });
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

/// Passes every event on, and what it says of the lease to the work.
pub(super) struct Ear {
    pub(super) standing: watch::Sender<Standing>,
    pub(super) other: Arc<dyn Observer>,
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("other", &self.other).finish_non_exhaustive()
    }
}

impl Observer for Ear {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        match event {
            Event::RunStarted { .. } | Event::LeaseRestored { .. } => drop(self.standing.send_replace(Standing::Held)),
            // Found by a renewal after all.
            Event::RenewalAnswered { answer: RenewalAnswer::Renewed } => {
                self.standing.send_replace(Standing::Held);
            }
            Event::LeaseInDoubt { .. } => drop(self.standing.send_replace(Standing::InDoubt)),
            Event::LeaseLost { .. } => drop(self.standing.send_replace(Standing::Lost)),
            _ => {}
        }
        self.other.event(slot, event);
    }
}
