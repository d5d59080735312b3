//! The one error of every store. "Somebody else has it" is a value ([`crate::reply`]); only "I could not find out" is an
//! error. An error never starts a command (invariant I8).

use std::fmt;

use serde::{Deserialize, Serialize};

type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What an operation of a store comes to.
pub type Reply<T> = Result<T, StoreError>;

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
#[error("{store}: {op}: {message}")]
#[non_exhaustive]
pub struct StoreError {
    /// What kind of trouble it is.
    pub kind: ErrorKind,
    /// Whether the operation may have taken effect all the same.
    pub applied: Applied,
    /// The operation.
    pub op: Op,
    /// The store's url, without secrets.
    pub store: String,
    /// A lowercase fragment: what went wrong and, where it is known, what to do.
    pub message: String,
    /// The client library's own error. Never shown to people without a look at what it may reveal.
    #[source]
    pub source: Option<Source>,
}

impl StoreError {
    /// An error without a source.
    pub fn new(kind: ErrorKind, applied: Applied, op: Op, store: &str, message: impl Into<String>) -> Self {
        Self { kind, applied, op, store: store.to_owned(), message: message.into(), source: None }
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Source>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// The same error without what caused it, which nobody can copy.
    #[must_use]
    pub fn without_source(&self) -> Self {
        Self::new(self.kind, self.applied, self.op, &self.store, self.message.clone())
    }

    /// True when asking again later can help without anybody changing anything.
    pub const fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }

    /// See [`ErrorKind::is_refusal`].
    pub const fn is_refusal(&self) -> bool {
        self.kind.is_refusal()
    }
}

/// What kind of trouble a store is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// It cannot be reached, or is starting, or failing over.
    Unavailable,
    /// It did not answer in time.
    Timeout,
    /// It answers that it has no room: memory, clients, disk.
    Overloaded,
    /// It refuses this user: password, permission.
    Denied,
    /// It takes no writes: a replica, a file without write permission.
    ReadOnly,
    /// What is there is not what cronward wrote: wrong type, not decodable.
    Corrupt,
    /// It is the wrong kind or version of server.
    Unsupported,
    /// It refuses the content of this request: too large, or in characters that the store cannot keep. The same content is refused
    /// again; other content is not.
    Content,
    /// A word of a later version, in a journal.
    #[serde(other)]
    #[default]
    Unknown,
}

impl ErrorKind {
    /// See [`StoreError::is_transient`].
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::Timeout | Self::Overloaded)
    }

    /// True when waiting is no cure: somebody has to change something. A server that takes no writes is no refusal, though asking it
    /// again does not help: a failover puts one in its place that does. Neither is a server that refuses the content of one request.
    pub const fn is_refusal(self) -> bool {
        !self.is_transient() && !matches!(self, Self::ReadOnly | Self::Content)
    }

    /// True when the store itself has said so: it is not away.
    pub const fn is_answer(self) -> bool {
        !matches!(self, Self::Unavailable | Self::Timeout | Self::Unknown)
    }

    /// The word used in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Denied => "denied",
            Self::ReadOnly => "read_only",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Content => "content",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether a failed operation may have taken effect. Not `non_exhaustive`: whoever repeats an operation has to decide about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// It did not.
    No,
    /// It may have: repeat it only with the same token, and until then act as not holding.
    Maybe,
}

/// The operations of a store, for errors, logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the method of that name of Store or LockStore")]
#[non_exhaustive]
pub enum Op {
    Open,
    Claim,
    Renew,
    Complete,
    Fail,
    GiveBack,
    Inspect,
    Output,
    Close,
    Reset,
    Unlock,
    MarkDone,
    Pause,
    Resume,
    Pauses,
    Register,
    Jobs,
    Heartbeat,
    Nodes,
    Purge,
    Note,
    Notes,
    Latest,
    Tell,
    Told,
    Untold,
    Subscribe,
    Acquire,
    RenewLock,
    Release,
    Locks,
    Evict,
    /// A word of a later version, in a journal.
    #[serde(other)]
    Unknown,
}

impl Op {
    /// Every operation, in the order of the traits.
    pub const ALL: [Self; 32] = [
        Self::Open,
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Fail,
        Self::GiveBack,
        Self::Inspect,
        Self::Output,
        Self::Close,
        Self::Reset,
        Self::Unlock,
        Self::MarkDone,
        Self::Pause,
        Self::Resume,
        Self::Pauses,
        Self::Register,
        Self::Jobs,
        Self::Heartbeat,
        Self::Nodes,
        Self::Purge,
        Self::Note,
        Self::Notes,
        Self::Latest,
        Self::Tell,
        Self::Told,
        Self::Untold,
        Self::Subscribe,
        Self::Acquire,
        Self::RenewLock,
        Self::Release,
        Self::Locks,
        Self::Evict,
    ];

    /// True when it changes nothing in the store.
    pub const fn is_read(self) -> bool {
        matches!(
            self,
            Self::Open
                | Self::Inspect
                | Self::Output
                | Self::Pauses
                | Self::Jobs
                | Self::Nodes
                | Self::Notes
                | Self::Latest
                | Self::Untold
                | Self::Subscribe
                | Self::Locks
        )
    }

    /// The word used in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::GiveBack => "give_back",
            Self::Inspect => "inspect",
            Self::Output => "output",
            Self::Close => "close",
            Self::Reset => "reset",
            Self::Unlock => "unlock",
            Self::MarkDone => "mark_done",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Pauses => "pauses",
            Self::Register => "register",
            Self::Jobs => "jobs",
            Self::Heartbeat => "heartbeat",
            Self::Nodes => "nodes",
            Self::Purge => "purge",
            Self::Note => "note",
            Self::Notes => "notes",
            Self::Latest => "latest",
            Self::Tell => "tell",
            Self::Told => "told",
            Self::Untold => "untold",
            Self::Subscribe => "subscribe",
            Self::Acquire => "acquire",
            Self::RenewLock => "renew_lock",
            Self::Release => "release",
            Self::Locks => "locks",
            Self::Evict => "evict",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
