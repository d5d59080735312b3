//! What a granted slot starts, as the driver sees it: a command, or a future of a service.

use std::fmt::Debug;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::machine::{SlotMachine, TrustWindow};
use crate::slot::{Exit, LeaseDeadline, RunContext};

/// The lease of one attempt, as its driver sees it. Each renewal moves both values on; the channels close with the attempt.
#[derive(Clone, Debug)]
pub struct Renewals {
    /// When the work must have ended unless the lease is renewed; none where the work may outlast its lease.
    pub deadline: watch::Receiver<Option<LeaseDeadline>>,
    /// How long the lease can be trusted unless it is renewed; none once it is lost.
    pub trust: watch::Receiver<Option<TrustWindow>>,
}

impl Renewals {
    /// Of a work without a lease of its own.
    #[cfg(feature = "daemon")]
    pub fn none() -> Self {
        Self { deadline: watch::channel(None).1, trust: watch::channel(None).1 }
    }
}

/// The sending half of [`Renewals`].
#[derive(Debug)]
pub(super) struct LeaseFeed {
    deadline: watch::Sender<Option<LeaseDeadline>>,
    trust: watch::Sender<Option<TrustWindow>>,
}

impl LeaseFeed {
    /// Of the attempt that the machine starts now.
    pub(super) fn open(machine: &SlotMachine) -> (Self, Renewals) {
        let (deadline, on_deadline) = watch::channel(machine.lease_deadline());
        let (trust, on_trust) = watch::channel(machine.lease_trust());
        (Self { deadline, trust }, Renewals { deadline: on_deadline, trust: on_trust })
    }

    /// Passes on what the machine knows now.
    pub(super) fn publish(&self, machine: &SlotMachine) {
        if let Some(deadline) = machine.lease_deadline() {
            self.deadline.send_if_modified(|known| known.replace(deadline) != Some(deadline));
        }
        let trust = machine.lease_trust();
        self.trust.send_if_modified(|known| std::mem::replace(known, trust) != trust);
    }
}

/// Something that can be started, once for each attempt.
#[async_trait]
pub trait Work: Debug + Send + Sync + 'static {
    /// Starts it. That it cannot be started is no error: its [`Started::wait`] says so, also where the machine lacks a resource. Does not wait for its end.
    ///
    /// A keeper in another process stops the work at the deadline of `lease`, also while this process stands still.
    async fn start(&self, run: RunContext, lease: Renewals) -> Box<dyn Started>;
}

/// One attempt that was started. Dropping it stops it at once.
#[async_trait]
pub trait Started: Send {
    /// Ends once the command itself runs. Of a command that never does only [`Started::wait`] ends.
    fn begun(&self) -> BoxFuture<'static, ()>;

    /// Asks it to end.
    fn terminate(&self);

    /// Ends it.
    fn kill(&self);

    /// Waits for its end. Cancel-safe; once ended it answers the same again.
    async fn wait(&mut self) -> Exit;
}
