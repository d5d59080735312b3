//! What the guard asks of a store and what it is answered. Every answer here is knowledge; see [`crate::error::StoreError`] for
//! the lack of it.
//!
//! The answers of a store are not `non_exhaustive`: whoever writes a store, or wraps one, has to know each. Another answer is another
//! protocol. What is told on of them ([`ClaimAnswer`], [`RenewalAnswer`]) may grow.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::job::NodeName;
use crate::slot::{Attempt, Audit, DoneMark, Holder, Lease, Slot, SlotKey, Token, Trigger, Verdict};

/// A request for a slot's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The slot.
    pub slot: Slot,
    /// Made by the caller before the first send; the same for every repetition of this request.
    pub token: Token,
    /// Who claims.
    pub node: NodeName,
    /// TTL of the lease.
    pub lease_ttl: Duration,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Why.
    pub trigger: Trigger,
    /// No other slot of the job may be leased when this one is granted (`concurrency = "forbid"` and `"replace"`). It is decided
    /// in the step that grants: of two such claims at once, for two slots of a job, one is granted.
    pub exclusive: bool,
    /// A person asks for this slot by name though it is over: [`Claim::Closed`] is passed over, every other check is made
    /// (invariant I6). A request of a schedule never says so.
    pub past: bool,
    /// The person who asks, where one does: recorded with the slot in the step that begins the attempt's record. An answer
    /// that grants nothing, and a grant that is found again, record nobody.
    pub audit: Option<Audit>,
}

/// The answer to a claim. The store checks in this order and answers with the first that holds: done, own
/// token, early, closed, held, exhausted, backoff, paused, blocked; otherwise it grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Granted, now or to an earlier send of the same request, whose lease may have lapsed since.
    Claimed {
        /// The number of this claim.
        attempt: Attempt,
        /// Attempts that count against `max_attempts`, this one included.
        used: u32,
        /// When it was granted, by the store's clock.
        at: DateTime<Utc>,
        /// See [`Lease::revision`].
        revision: Option<u64>,
    },
    /// Another claim holds the lease.
    Held {
        /// Who.
        by: Holder,
        /// Until it lapses, unless renewed.
        remaining: Duration,
    },
    /// A run succeeded, or an operator said so.
    Done(DoneMark),
    /// `max_attempts` are used up.
    Exhausted {
        /// Attempts that count.
        used: u32,
    },
    /// An attempt failed and the wait after it is not over; or the token is spent.
    Backoff {
        /// Until it is; zero when a run under this very token has a recorded end, and only then.
        remaining: Duration,
    },
    /// An operator paused the job.
    Paused {
        /// Until the pause ends by itself, if it does.
        remaining: Option<Duration>,
    },
    /// Another slot of the job is leased, and the request is exclusive.
    Blocked {
        /// The other slot; of several the oldest.
        key: SlotKey,
        /// Who runs it.
        by: Holder,
        /// Until that lease lapses, unless renewed.
        remaining: Duration,
    },
    /// The slot has not begun, by the store's clock (invariant I6).
    Early {
        /// Until it begins.
        remaining: Duration,
    },
    /// The slot is over, by the store's clock, and the request is not for the past (invariant I6).
    Closed,
}

/// Which answer to a claim it was, without what came with it: what is told on of a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaimAnswer {
    /// [`Claim::Claimed`].
    Claimed,
    /// [`Claim::Held`].
    Held,
    /// [`Claim::Done`].
    Done,
    /// [`Claim::Exhausted`].
    Exhausted,
    /// [`Claim::Backoff`].
    Backoff,
    /// [`Claim::Paused`].
    Paused,
    /// [`Claim::Blocked`].
    Blocked,
    /// [`Claim::Early`].
    Early,
    /// [`Claim::Closed`].
    Closed,
    /// A word of a later version, in a journal.
    #[serde(other)]
    Unknown,
}

impl ClaimAnswer {
    /// The word in journals, logs and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Held => "held",
            Self::Done => "done",
            Self::Exhausted => "exhausted",
            Self::Backoff => "backoff",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Early => "early",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }
}

impl Claim {
    /// Which answer it is.
    pub const fn answer(&self) -> ClaimAnswer {
        match self {
            Self::Claimed { .. } => ClaimAnswer::Claimed,
            Self::Held { .. } => ClaimAnswer::Held,
            Self::Done(_) => ClaimAnswer::Done,
            Self::Exhausted { .. } => ClaimAnswer::Exhausted,
            Self::Backoff { .. } => ClaimAnswer::Backoff,
            Self::Paused { .. } => ClaimAnswer::Paused,
            Self::Blocked { .. } => ClaimAnswer::Blocked,
            Self::Early { .. } => ClaimAnswer::Early,
            Self::Closed => ClaimAnswer::Closed,
        }
    }

    /// Its word: [`ClaimAnswer::as_str`].
    pub const fn as_str(&self) -> &'static str {
        self.answer().as_str()
    }
}

impl ClaimRequest {
    /// A schedule's request for a slot that has not ended, beside whatever else of the job runs.
    pub const fn new(slot: Slot, token: Token, node: NodeName, lease_ttl: Duration, max_attempts: u32) -> Self {
        let trigger = Trigger::Schedule;
        Self { slot, token, node, lease_ttl, max_attempts, trigger, exclusive: false, past: false, audit: None }
    }

    /// The lease that a grant of this request is.
    pub fn granted(&self, attempt: Attempt, at: DateTime<Utc>) -> Lease {
        Lease {
            slot: self.slot.clone(),
            token: self.token,
            node: self.node.clone(),
            attempt,
            trigger: self.trigger,
            claimed_at: at,
            ttl: self.lease_ttl,
            revision: None,
        }
    }
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease lasts for its TTL from now on (or longer: it is never shortened).
    Renewed,
    /// It was gone, the attempt was neither settled nor followed by a newer one, and it is set again: the store
    /// restarted empty, or the lease lapsed unseen.
    Restored,
    /// It is no longer this lease: another claim was granted, or this attempt was settled or unlocked.
    Lost {
        /// Who holds the slot now, if anybody does.
        to: Option<Holder>,
    },
    /// The slot is done.
    Done(DoneMark),
}

/// Which answer to a renewal it was, without what came with it: what is told on of a [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RenewalAnswer {
    /// [`Renewal::Renewed`].
    Renewed,
    /// [`Renewal::Restored`].
    Restored,
    /// [`Renewal::Lost`].
    Lost,
    /// [`Renewal::Done`].
    Done,
    /// A word of a later version, in a journal.
    #[serde(other)]
    Unknown,
}

impl RenewalAnswer {
    /// The word in journals and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Restored => "restored",
            Self::Lost => "lost",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }
}

/// The answer to a completion. The slot is done in both cases (invariant I3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The done marker names this attempt.
    Recorded,
    /// The slot was claimed or done by another attempt meanwhile: it ran more than once. If the other was not done, the
    /// done marker names this attempt.
    Overtaken {
        /// The other.
        by: Holder,
    },
}

/// The answer to a failure or to an attempt given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// The lease is gone; others may claim after the wait.
    Released,
    /// It had lapsed already; nobody else has claimed.
    Expired,
    /// Another attempt holds the slot or has done it: nothing of theirs was changed (invariant I4).
    Overtaken {
        /// The other.
        by: Holder,
    },
}

/// The answer to a close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// This call recorded the verdict: its caller tells.
    First(Verdict),
    /// It was recorded before.
    Already(Verdict),
    /// The slot is over but a run still holds its lease: ask again later.
    Running {
        /// Who.
        by: Holder,
        /// Until the lease lapses, unless renewed.
        remaining: Duration,
    },
    /// The slot is not over, by the store's clock.
    Open {
        /// Until it is.
        remaining: Duration,
    },
}

/// The answer to an operator's verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Changed.
    Applied,
    /// It was so already.
    Unchanged,
    /// Refused: a node holds the lease (`unlock` it first, or wait).
    Held {
        /// Who.
        by: Holder,
        /// Until the lease lapses, unless renewed.
        remaining: Duration,
    },
}
