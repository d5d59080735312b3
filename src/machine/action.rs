//! What the machine asks its driver to do.

use std::time::Duration;

use crate::machine::LockAction;
use crate::reply::ClaimRequest;
use crate::slot::{Lease, RunContext, RunRecord};

/// An order to the driver. Store orders are answered by the `handle_*` of the same name, exactly once each; at most one
/// claim or settlement is on its way at a time, one renewal of each attempt, one order of each request for locks, and one
/// question for a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Ask the store for the lease; answer with `handle_claim`.
    Claim(ClaimRequest),
    /// Renew the lease, within this time; answer with `handle_renewal` and the lease's token.
    Renew {
        /// The lease.
        lease: Lease,
        /// What is left of the trust in it; an answer after that is worth nothing.
        within: Duration,
    },
    /// Start the command; answer with `handle_started`, later with `handle_exit`.
    Spawn(RunContext),
    /// Send TERM to the command's group.
    Terminate,
    /// Send KILL to the command's group.
    Kill,
    /// Record success; answer with `handle_settlement`.
    Complete {
        /// The lease; its attempt is 0 for a run without a guard.
        lease: Lease,
        /// The run.
        run: RunRecord,
        /// TTL of the done marker.
        done_ttl: Duration,
    },
    /// Record a failed run and release; answer with `handle_release`.
    Fail {
        /// The lease; its attempt is 0 for a run without a guard.
        lease: Lease,
        /// The run.
        run: RunRecord,
        /// The wait that everybody keeps.
        retry_after: Duration,
    },
    /// Release and refund; answer with `handle_release`.
    GiveBack {
        /// The lease.
        lease: Lease,
        /// The run.
        run: RunRecord,
    },
    /// Ask the store whether the job is paused; answer with `handle_pause`. Asked of a job that waits for its locks alone.
    AskPause,
    /// Ask the store about locks; answer with `handle_lock_reply` and the order's token.
    Lock(LockAction),
}
