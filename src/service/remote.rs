//! The work as the task that drives the slot sees it: started, asked to end and ended in the caller's task, over channels.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::drive::{Renewals, Started, Work};
use crate::guard::Event;
use crate::observe::{NodeEvent, Observer};
use crate::reply::RenewalAnswer;
use crate::service::Standing;
use crate::slot::{Exit, ExitStatus, RunContext, Slot, Verdict};

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
    fn slot(&self, slot: &Slot, event: &Event) {
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
        self.other.slot(slot, event);
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        self.other.closed(slot, verdict);
    }

    fn node(&self, event: &NodeEvent) {
        self.other.node(event);
    }
}
