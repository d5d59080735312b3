//! Why a request was not answered as it wished, as a value: it shows itself in English, as programs and the log read it; pages say the same
//! in the language of their reader (`pages/texts`). What a store, a library or a person wrote is passed through.

use crate::admin::actions::{HeldSlot, NotBegun};
use crate::admin::lookup::SlotRefError;
use crate::admin::{PauseEndError, UnknownTarget};
use crate::board::FilterError;
use crate::job::{JobName, NameError, NodeName};
use crate::node::TriggerRefusal;
use crate::slot::Slot;

/// Why a request was not answered as it wished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProblemDetail {
    #[error("there is nothing of this name")]
    NotFound,
    #[error("no job {0} is known")]
    NoJob(JobName),
    #[error("{0}")]
    Unknown(#[from] UnknownTarget),
    #[error("{0}")]
    JobName(#[from] NameError),
    #[error("{0}")]
    SlotRef(#[from] SlotRefError),
    #[error("{0} has no such attempt")]
    NoAttempt(Slot),
    #[error("this store keeps no locks")]
    NoLocks,
    /// Of a read: why stands in the log, and on the page of the store.
    #[error("the store refuses this node: `cronward doctor` says what to change")]
    StoreRefusesReads,
    /// `maybe`: an action may have been done.
    #[error("the store does not answer; the node goes on asking it{}", perhaps_done(*maybe))]
    StoreAway { maybe: bool },
    /// It answers, and has no room, or takes no writes.
    #[error("the store cannot be used now: {error}; the node goes on asking it{}", perhaps_done(*maybe))]
    StoreUnusable { error: String, maybe: bool },
    #[error(
        "the store holds what cronward did not write: {error}; look at it with the store's own client, and move it away"
    )]
    StoreCorrupt { error: String },
    #[error("the store refuses: {error}{}", perhaps_done(*maybe))]
    StoreRefuses { error: String, maybe: bool },
    #[error("plan: the planner stands still")]
    PlannerStands,
    /// What the node lacks: words of the interface.
    #[error("{0}")]
    NotReady(String),
    /// In the words of whoever met it.
    #[error("{0}")]
    Internal(String),
    #[error("the answer could not be written")]
    AnswerUnwritten,
    #[error("the figures could not be written")]
    FiguresUnwritten,
    #[error("the page could not be written")]
    PageUnwritten,
    #[error("it took longer than 10 s")]
    Late,
    #[error("an address has 2048 bytes at the most")]
    LongAddress,
    #[error("this machine is not known by that name; [http] public_url adds one")]
    UnknownHost,
    #[error("a body has 16 KiB at the most")]
    LargeBody,
    #[error("the body broke off")]
    BrokenBody,
    #[error("this cannot be done with it")]
    WrongMethod,
    #[error("nobody may ask for this")]
    ForNobody,
    #[error("send a token: Authorization: Bearer …")]
    NoToken,
    #[error("too many wrong tokens came from this address")]
    WrongTokens,
    #[error("every user of the machine can read the tokens file, and could sign a login: chmod o-r the file")]
    OpenTokens,
    #[error("the proxy named no user: its user header is missing, empty, there twice, too long, or no text")]
    NoProxyUser,
    #[error("users come through a proxy alone, and this address is none of [http.auth.proxy] from")]
    NotTheProxy,
    #[error("the proxy tells no role of yours: it is viewer or operator, and told once")]
    NoRole,
    #[error("your role may not do this")]
    SmallRole,
    #[error("actions need a token: name who may ask in [http.auth] tokens_file")]
    TokenForActions,
    #[error("this port is read-only: [http] read_only = false allows actions")]
    ReadOnly,
    #[error("send a form: Content-Type: application/x-www-form-urlencoded")]
    NoForm,
    #[error("send JSON: Content-Type: application/json")]
    NoJson,
    #[error("send the header X-Cronward: 1, which no page of another site can send")]
    NoOwnHeader,
    #[error("the browser does not say which page this comes from")]
    UnknownOrigin,
    #[error("this comes from a page of another site")]
    OtherOrigin,
    #[error("the form is not of this login: open it again")]
    OtherLogin,
    #[error("the store is being examined for somebody else: try again in some seconds")]
    Examining,
    #[error("there are 64 streams already: ask for /api/v1/jobs every ten seconds instead")]
    ManyStreams,
    /// In the words of axum.
    #[error("{0}")]
    Query(String),
    #[error("the body is not as it has to be: write an object")]
    NoObject,
    /// In the words of serde.
    #[error("the body is not as it has to be: {0}")]
    Body(String),
    #[error("q: {0}")]
    Filter(FilterError),
    #[error("page begins with 1, and per_page is 1 to 500")]
    PageRange,
    #[error("limit is 1 to 500")]
    LimitRange,
    #[error("count is 1 to 1000")]
    CountRange,
    #[error("before: no slot of the job contains that time")]
    NoSlotBefore,
    /// A field, and why its value cannot be read.
    #[error("{0}: {1}")]
    Unreadable(&'static str, String),
    #[error("state: {0:?} is none of pending, running, retrying, done, failed, missed, skipped, or all")]
    State(String),
    #[error("since goes back 31d at the most")]
    LongSince,
    #[error("more than 2400 slots would have to be looked at: name a job, or a shorter time with since")]
    ManySlots,
    #[error("write /go?at=JOB, or /go?at=JOB@SLOT")]
    GoWhere,
    #[error("say why: this needs a reason")]
    NoReason,
    #[error("type the job's name to confirm")]
    NotConfirmed,
    #[error("until: {0}")]
    PauseEnd(#[from] PauseEndError),
    /// The word of a slot's state; a job has none.
    #[error("{target} is {}, not {expected}", is.unwrap_or("a job, which has no state"))]
    NotAsExpected { target: String, is: Option<&'static str>, expected: String },
    #[error("{0}")]
    Held(HeldSlot),
    #[error("{0}")]
    NotBegun(NotBegun),
    #[error("{0} is paused: resume the job first")]
    Paused(JobName),
    #[error("{0} is done: reset it first to run it again")]
    Done(Slot),
    #[error("{0} has no attempts left: reset it first")]
    NoAttemptsLeft(Slot),
    #[error("{0} has ended: ask for past to run it all the same")]
    Ended(Slot),
    #[error("{0} has just failed and waits to be tried again: reset it to end the wait")]
    JustFailed(Slot),
    /// Why this node does not run it, and, where another one may, which could.
    #[error("{node}: {why}{}", elsewhere(others.as_deref()))]
    NodeRefuses { node: NodeName, why: TriggerRefusal, others: Option<Vec<NodeName>> },
}

impl ProblemDetail {
    /// Whether somebody has to change something before it is otherwise.
    pub(super) const fn needs_somebody(&self) -> bool {
        matches!(self, Self::StoreRefusesReads | Self::StoreRefuses { .. } | Self::StoreCorrupt { .. })
    }

    /// What of it a store, a library or the node's own check said, which is English in every language.
    pub(super) fn quoted(&self) -> Option<&str> {
        match self {
            Self::StoreRefuses { error: said, .. }
            | Self::StoreUnusable { error: said, .. }
            | Self::StoreCorrupt { error: said }
            | Self::NotReady(said)
            | Self::Internal(said)
            | Self::Query(said) => Some(said),
            Self::Body(said) | Self::Unreadable(_, said) => Some(said),
            _ => None,
        }
    }
}

const fn perhaps_done(maybe: bool) -> &'static str {
    if maybe { "; it may have been done all the same: look before you ask again" } else { "" }
}

fn elsewhere(others: Option<&[NodeName]>) -> String {
    match others {
        None => String::new(),
        Some([]) => "; no other node that is alive can run the job".to_owned(),
        Some(nodes) => format!("; these nodes can run the job, ask one of them: {}", listed(nodes, ", ")),
    }
}

/// The names of nodes in a row.
pub(super) fn listed(nodes: &[NodeName], between: &str) -> String {
    nodes.iter().map(NodeName::as_str).collect::<Vec<_>>().join(between)
}
