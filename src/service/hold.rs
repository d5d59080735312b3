//! What the work is told of its run, and of its lease while it runs.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::slot::{Attempt, Fence, RunContext, Slot};

/// How the lease of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
