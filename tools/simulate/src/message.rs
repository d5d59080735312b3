//! What nodes and store say to each other: one request for each operation that a node uses.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::job::JobName;
use cronward::node::Looked;
use cronward::resource::{AcquireRequest, Acquired, LockExit, LockHold, LockRelease, LockRenewal};
use cronward::slot::{Lease, RunRecord, Slot, SlotRecord, Token};
use cronward::store::{
    Applied, Claim, ClaimRequest, Closing, ErrorKind, HeartbeatReply, JobEntry, NodeEntry, NodeReport, Op, Release,
    Renewal, Settlement, StoreError,
};

/// One start of a node's daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Which node.
    pub(super) node: usize,
    /// Which start of it.
    pub(super) start: u32,
}

impl Process {
    /// By what a store of locks knows it.
    pub(super) fn instance(self) -> Token {
        Token::from_bits((u128::from(self.start) << 8) | u128::try_from(self.node & 0xff).unwrap_or(0))
    }

    /// Which one that is.
    pub(super) fn of(instance: Token) -> Self {
        let node = usize::try_from(instance.bits() & 0xff).unwrap_or(usize::MAX);
        Self { node, start: u32::try_from(instance.bits() >> 8).unwrap_or(u32::MAX) }
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) from: Process,
    /// Names the request to its sender.
    pub(super) id: u64,
    pub(super) ask: Ask,
    /// The sender's wall clock; no correct store looks at it.
    pub(super) shown: DateTime<Utc>,
    /// When the sender gives up; whatever comes later is not heard.
    pub(super) until: Duration,
    /// The answer will be lost.
    pub(super) unheard: bool,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Claim(ClaimRequest),
    Renew(Lease),
    Complete { lease: Lease, run: RunRecord, done_ttl: Duration },
    Fail { lease: Lease, run: RunRecord, retry_after: Duration },
    GiveBack { lease: Lease, run: RunRecord },
    Close { slot: Slot, max_attempts: u32 },
    Inspect(Vec<Slot>),
    Nodes,
    Heartbeat { report: NodeReport, looks: bool },
    Register(Vec<JobEntry>),
    Acquire(AcquireRequest),
    RenewLock(LockHold),
    Release(LockExit),
    Pauses,
}

impl Ask {
    pub(super) const fn op(&self) -> Op {
        match self {
            Self::Claim(_) => Op::Claim,
            Self::Renew(_) => Op::Renew,
            Self::Complete { .. } => Op::Complete,
            Self::Fail { .. } => Op::Fail,
            Self::GiveBack { .. } => Op::GiveBack,
            Self::Close { .. } => Op::Close,
            Self::Inspect(_) => Op::Inspect,
            Self::Nodes => Op::Nodes,
            Self::Heartbeat { .. } => Op::Heartbeat,
            Self::Register(_) => Op::Register,
            Self::Acquire(_) => Op::Acquire,
            Self::RenewLock(_) => Op::RenewLock,
            Self::Release(_) => Op::Release,
            Self::Pauses => Op::Pauses,
        }
    }

    /// The end of a run: its token, and the length of the output that is sent with it.
    pub(super) fn output(&self) -> Option<(Token, usize)> {
        let (Self::Complete { lease, run, .. } | Self::Fail { lease, run, .. } | Self::GiveBack { lease, run }) = self
        else {
            return None;
        };
        run.output.as_ref().map(|output| (lease.token, output.text.len()))
    }

    /// The token whose lease it asks for, or to be prolonged.
    pub(super) const fn token(&self) -> Option<Token> {
        match self {
            Self::Claim(request) => Some(request.token),
            Self::Renew(lease) => Some(lease.token),
            _ => None,
        }
    }

    /// How long the lease is to last that it asks for, or asks to be prolonged.
    pub(super) const fn lease_ttl(&self) -> Option<Duration> {
        match self {
            Self::Claim(request) => Some(request.lease_ttl),
            Self::Renew(lease) => Some(lease.ttl),
            _ => None,
        }
    }

    /// The one slot that it is about.
    pub(super) const fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Claim(request) => Some(&request.slot),
            Self::Renew(lease)
            | Self::Complete { lease, .. }
            | Self::Fail { lease, .. }
            | Self::GiveBack { lease, .. } => Some(&lease.slot),
            Self::Close { slot, .. } => Some(slot),
            Self::Inspect(_) | Self::Nodes | Self::Heartbeat { .. } | Self::Register(_) | Self::Pauses => None,
            Self::Acquire(_) | Self::RenewLock(_) | Self::Release(_) => None,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Claim(Claim),
    Renewal(Renewal),
    Settlement(Settlement),
    Release(Release),
    Closing(Closing),
    Records(Vec<SlotRecord>),
    /// With what a look at the registry of nodes found before.
    Heartbeat(HeartbeatReply, Option<Looked>),
    Jobs(Vec<JobEntry>),
    Nodes(DateTime<Utc>, Vec<NodeEntry>),
    Acquired(Acquired),
    LockRenewal(LockRenewal),
    LockRelease(LockRelease),
    /// Of which jobs.
    Pauses(Vec<JobName>),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoAnswer {
    pub(super) kind: ErrorKind,
    pub(super) applied: Applied,
}

impl NoAnswer {
    pub(super) const TIMEOUT: Self = Self { kind: ErrorKind::Timeout, applied: Applied::Maybe };
    pub(super) const CONTENT: Self = Self { kind: ErrorKind::Content, applied: Applied::No };
    pub(super) const REFUSED: Self = Self { kind: ErrorKind::Unavailable, applied: Applied::No };

    pub(super) fn error(self, op: Op) -> StoreError {
        StoreError::new(self.kind, self.applied, op, "sim:", "no answer")
    }
}
