//! What stores of keys and values have in common: the frame of a call, with one time limit and whether it may have been applied,
//! and what goes wrong there. Each adapter brings its few own steps ([`Keyed`], [`Records`], [`Registry`], [`Notes`]); this knows no server, keeps nothing
//! and decides nothing about slots: that is done by [`rules`](super::rules), on a [`state`](super::state).

use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::contract::operations;
use crate::store::hints::no_changes;
use crate::store::locks::LockRuled;
use crate::store::messages::MessageRuled;
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Applied, Capability, Changes, Claim, ClaimRequest, ErrorKind, HeartbeatReply, Intervention, JobEntry, NodeEntry,
    NodeReport, Op, Pause, StoreError, Wakeups,
};
use crate::text::message;

/// One call: what it is, and whether something was sent that may be applied and has no answer.
pub(in crate::store) struct Call {
    op: Op,
    sent: AtomicBool,
}

/// Where a call goes, without secrets, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Frame<'s> {
    pub(in crate::store) location: &'s str,
    pub(in crate::store) limit: Duration,
}

impl Call {
    pub(in crate::store) const fn new(op: Op) -> Self {
        Self { op, sent: AtomicBool::new(false) }
    }

    #[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "others write a lease's end themselves"))]
    pub(in crate::store) fn is_a(&self, op: Op) -> bool {
        self.op == op
    }

    pub(in crate::store) fn sending(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(in crate::store) fn answered(&self) {
        self.sent.store(false, Ordering::Release);
    }

    pub(in crate::store) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    pub(in crate::store) async fn within<T>(
        &self,
        frame: Frame<'_>,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        let Frame { location, limit } = frame;
        let answer = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(Fault::timed_out(limit)));
        answer.map_err(|fault| fault.into_error(self.op, self.is_sent(), location))
    }
}

/// The longest name that becomes part of a message; those of cronward's own are shorter.
const LONGEST_NAME: usize = 300;

/// The longest foreign text that becomes part of a message.
const SHOWN: usize = 160;

/// What goes wrong below the trait. It knows neither the operation nor what that had sent before.
#[derive(Debug)]
pub(in crate::store) struct Fault {
    pub(in crate::store) kind: ErrorKind,
    pub(in crate::store) message: String,
    /// The server, or the lack of a connection, tells that nothing of the request was done.
    pub(in crate::store) refused: bool,
    /// Another server may know better.
    #[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "another client looks for a server itself"))]
    pub(in crate::store) elsewhere: bool,
    pub(in crate::store) source: Option<Box<dyn std::error::Error + Send + Sync + 'static>>,
}

impl Fault {
    pub(in crate::store) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), refused: true, elsewhere: false, source: None }
    }

    /// Something foreign at a key.
    pub(in crate::store) fn foreign(key: &str, why: &str) -> Self {
        let key = message(key, LONGEST_NAME);
        Self::new(ErrorKind::Corrupt, format!("{key} holds what cronward did not write: {}", one_line(why)))
    }

    /// Others change the same slot or lock, again and again.
    pub(in crate::store) fn contended() -> Self {
        Self::new(ErrorKind::Overloaded, "others changed the same each time before this could")
    }

    /// Nothing was heard for so long.
    pub(in crate::store) fn timed_out(limit: Duration) -> Self {
        let message = format!("no answer within {} ms", limit.as_millis());
        Self { refused: false, elsewhere: true, ..Self::new(ErrorKind::Timeout, message) }
    }

    /// The one error of every store; `sent` where something has no answer.
    pub(in crate::store) fn into_error(self, op: Op, sent: bool, location: &str) -> StoreError {
        let applied = if sent && !self.refused { Applied::Maybe } else { Applied::No };
        let error = StoreError::new(self.kind, applied, op, location, self.message);
        match self.source {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Foreign text as a part of a message.
pub(in crate::store) fn one_line(text: &str) -> String {
    message(text.trim(), SHOWN)
}

/// A record's JSON. Its types have no key or number that JSON lacks.
pub(in crate::store) fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::foreign("a record", &error.to_string()))
}

/// How calls are framed.
pub(in crate::store) trait Framed: Debug + Send + Sync + 'static {
    fn frame(&self) -> Frame<'_>;
}

/// The slots, and the rest.
pub(in crate::store) trait Keyed: Records + Registry + Notes {
    fn capability() -> Capability;

    /// One rule on one slot, in one atomic step.
    fn on_slot<T: Send>(
        &self,
        call: Call,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// A claim. A store that can grant one without reading first has its own way.
    fn grant(&self, request: &ClaimRequest) -> impl Future<Output = Result<Claim, StoreError>> + Send {
        self.on_slot(Call::new(Op::Claim), SlotQuery::claim(request), |step| step.claim(request))
    }

    fn subscribe(&self) -> Wakeups;

    /// A store that tells of none leaves it so.
    fn changes(&self) -> Changes {
        no_changes()
    }
}

/// The other steps of an adapter, each of one call, and [`Ruled`] by them: each in the call's frame.
macro_rules! keyed {
    (
        Decided $decided:tt
        Messages $messages:tt
        $($part:ident { $($op:ident $name:ident as $own:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        $(
            pub(in crate::store) trait $part: Framed {
                $(
                    #[doc = concat!("[`Ruled::", stringify!($own), "`].")]
                    fn $own(
                        &self,
                        call: &Call,
                        $($arg: $type),*
                    ) -> impl Future<Output = Result<$answer, Fault>> + Send;
                )*
            }
        )*

        impl<S: Keyed + LockRuled + MessageRuled> Ruled for S {
            fn capability(&self) -> Capability {
                <S as Keyed>::capability()
            }

            fn location(&self) -> &str {
                self.frame().location
            }

            async fn on_slot<T: Send + 'static>(
                &self,
                op: Op,
                query: SlotQuery,
                rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
            ) -> Reply<T> {
                Keyed::on_slot(self, Call::new(op), query, rule).await
            }

            async fn grant(&self, request: &ClaimRequest) -> Reply<Claim> {
                Keyed::grant(self, request).await
            }

            $($(
                async fn $own(&self, $($arg: $type),*) -> Reply<$answer> {
                    let call = Call::new(Op::$op);
                    call.within(self.frame(), $part::$own(self, &call, $($arg),*)).await
                }
            )*)*

            fn hints(&self) -> Wakeups {
                Keyed::subscribe(self)
            }

            fn change_hints(&self) -> Changes {
                Keyed::changes(self)
            }
        }
    };
}
operations!(keyed);
