//! What is held. Dropping it releases it; what that comes to only [`Held::release`] tells.

use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lock::client::Locks;
use crate::machine::TrustWindow;
use crate::resource::{LockHold, LockHolder, LockRelease, OwnerId};
use crate::service::Standing;
use crate::slot::Fence;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// What a release comes to.
pub(super) type Answered = Result<LockRelease, StoreError>;

/// How a lease stands, as its task has seen it last.
#[derive(Clone, Debug)]
pub(super) struct LeaseView {
    pub(super) standing: Standing,
    /// Who has it now, where it is lost and that is known.
    pub(super) taken_by: Option<LockHolder>,
}

impl LeaseView {
    pub(super) const fn held() -> Self {
        Self { standing: Standing::Held, taken_by: None }
    }
}

/// Locks that are held until this is dropped. Owned, without a lifetime: it may be moved into another task and dropped there.
///
/// A task of the runtime on which it was taken renews it, and releases it in the end: where that runtime is gone it lapses.
#[derive(Debug)]
#[must_use = "dropped at once, the lock is released at once"]
pub struct Held {
    pub(super) locks: Locks,
    pub(super) hold: LockHold,
    pub(super) standing: watch::Receiver<LeaseView>,
    /// How long it may be believed in, unless it is renewed.
    pub(super) trust: watch::Receiver<Option<TrustWindow>>,
    /// Cancelled when it is lost, in doubt, or left.
    pub(super) lost: CancellationToken,
    /// Dropped, it has the task leave.
    pub(super) leave: DropGuard,
    pub(super) answered: oneshot::Receiver<Answered>,
}

impl Held {
    /// One number for all that is held, larger than that of every earlier grant that it excludes. A resource that keeps the largest it
    /// has seen, and refuses a smaller one, is safe from a holder that stalled past its lease.
    pub const fn fence(&self) -> Fence {
        self.hold.fence
    }

    /// Whose it is: another request of the same owner may hold beside it.
    pub const fn owner(&self) -> OwnerId {
        self.hold.owner
    }

    /// How it stands now, by the clock: also right after this process was stopped, or kept the runtime from renewing. To be asked before
    /// a step that must not be done twice; the fence alone makes that safe.
    pub fn standing(&self) -> Standing {
        let told = self.standing.borrow().standing;
        // Its task may have had no turn, or be gone.
        let now = self.locks.shared.clock.now().mono;
        let trusted = self.trust.has_changed().is_ok() && self.trust.borrow().is_some_and(|trust| trust.holds(now));
        if told == Standing::Held && !trusted { Standing::InDoubt } else { told }
    }

    /// Who has it now, where it is lost and that is known.
    pub fn taken_by(&self) -> Option<LockHolder> {
        self.standing.borrow().taken_by.clone()
    }

    /// How long it may be believed in, unless it is renewed; moves on with each renewal, and is none once it is lost.
    #[cfg(feature = "daemon")]
    pub(crate) fn trust(&self) -> watch::Receiver<Option<TrustWindow>> {
        self.trust.clone()
    }

    /// Returns once it is lost or in doubt; never while it is held.
    pub async fn lost(&self) -> Standing {
        let mut standing = self.standing.clone();
        match standing.wait_for(|view| view.standing != Standing::Held).await {
            Ok(view) => view.standing,
            // Its task is gone, and so is its renewal.
            Err(_) => Standing::InDoubt,
        }
    }

    /// For what was spawned under the lock: cancelled once it is lost or in doubt, also where it is held again later, and once it is left.
    pub fn token(&self) -> CancellationToken {
        self.lost.child_token()
    }

    /// Releases it, and tells what dropping cannot: whether it was held until now. Waits for a store that is away, but not for longer
    /// than the lease would last.
    ///
    /// # Errors
    /// [`StoreError`] where the store did not answer; the lease lapses then by itself.
    pub async fn release(self) -> Result<LockRelease, StoreError> {
        let Self { leave, answered, .. } = self;
        drop(leave);
        answered.await.unwrap_or_else(|_| Err(unknown("the runtime is shutting down")))
    }
}

/// The store was not told that it is over.
pub(super) fn unknown(why: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, Applied::Maybe, Op::Release, "locks", why)
}
