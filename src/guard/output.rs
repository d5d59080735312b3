//! What the machine hands out: actions, which it asks its driver to do; and events, which tell what happened at a slot on this node,
//! for logs, metrics and the journal.

use std::time::Duration;

use crate::error::{ErrorKind, Op};
use crate::job::{NodeName, OnLost};
use crate::reply::{ClaimAnswer, ClaimRequest, RenewalAnswer};
use crate::slot::{Attempt, Fence, Holder, Lease, Outcome, RunContext, RunRecord, Trigger};

/// An order to the driver. Store orders are answered by the `handle_*` of the same name, exactly once each; at most one
/// claim or settlement is on its way at a time, and one renewal of each attempt.
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
}

/// Something worth telling, in the past tense: nothing here asks for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The store answered a claim.
    ClaimAnswered {
        /// Which answer.
        answer: ClaimAnswer,
        /// Who holds or did it, where that is the answer.
        by: Option<NodeName>,
        /// The holder is another program's lock (`exec --key`): what it does in the slot, nobody knows.
        foreign: bool,
        /// How long until the slot begins, by the store's clock, where it has not.
        begins_in: Option<Duration>,
    },
    /// The store granted a claim; the run that follows, if one does, is told by [`Event::RunStarted`]. Told again when
    /// the same claim had to be asked for again.
    Granted {
        /// The lease: its attempt, token, TTL, and when it was granted by the store's clock.
        lease: Lease,
        /// Attempts that count against the maximum, this one included, as the store counts them.
        used: u32,
        /// The maximum.
        max_attempts: u32,
        /// The wait that everybody keeps should this attempt fail.
        retry_delay: Duration,
        /// How often a waiting node looks again; none where the store wakes it.
        poll: Option<Duration>,
        /// What becomes of the run when the lease is lost.
        on_lost: OnLost,
    },
    /// The store could not be asked. Told at the first error in a row, and again when the kind changes.
    StoreFailed {
        /// The operation.
        op: Op,
        /// The kind of error.
        kind: ErrorKind,
        /// The error, in one line.
        message: String,
    },
    /// The command is being started.
    RunStarted {
        /// Which attempt; 0 without a guard.
        attempt: Attempt,
        /// Its fence.
        fence: Fence,
        /// Why.
        trigger: Trigger,
        /// False: the store was away and the policy says to run all the same.
        guarded: bool,
    },
    /// The command ended.
    RunEnded {
        /// Which attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
        /// Its exit code.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// How long it ran.
        duration: Duration,
        /// What went wrong, in words.
        message: Option<String>,
    },
    /// The store answered a renewal.
    RenewalAnswered {
        /// Which answer.
        answer: RenewalAnswer,
    },
    /// The trust in the lease ended without an answer: another node may start.
    LeaseInDoubt {
        /// Which attempt.
        attempt: Attempt,
        /// Whether the command is being killed.
        killing: bool,
    },
    /// The lease is another's, or the attempt was unlocked: two runs may overlap.
    LeaseLost {
        /// Which attempt.
        attempt: Attempt,
        /// Who holds the slot, if anybody.
        to: Option<Holder>,
        /// Whether the command is being killed.
        killing: bool,
    },
    /// The store had forgotten the lease and has it again.
    LeaseRestored {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The command did not end within its timeout and is being stopped.
    RunTimedOut {
        /// Which attempt.
        attempt: Attempt,
    },
    /// The settlement is recorded: the slot is done, or the attempt failed.
    Settled {
        /// Which attempt.
        attempt: Attempt,
        /// How.
        outcome: Outcome,
    },
    /// Another attempt held or did the slot meanwhile: it ran more than once.
    Overtaken {
        /// Our attempt.
        attempt: Attempt,
        /// The other.
        by: Holder,
    },
    /// The last attempt failed: nobody tries this slot again.
    AttemptsUsedUp {
        /// How many were made.
        used: u32,
    },
    /// The settlement could not be recorded in time and was given up: the store does not know how the attempt ended.
    SettlementGivenUp {
        /// Which attempt.
        attempt: Attempt,
        /// How it ended.
        outcome: Outcome,
    },
    /// The start deadline after the tick has passed.
    StartDeadlinePassed,
    /// The node was overloaded: it had no room to ask for the slot until its end, or its start deadline.
    Shed,
}
