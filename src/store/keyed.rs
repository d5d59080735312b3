//! What stores of keys and values have in common: the frame of a call, with one time limit and whether it may have been applied,
//! in one place. Each adapter brings its few own steps ([`Keyed`], [`Records`], [`Registry`], [`Notes`]); this knows no server, keeps nothing
//! and decides nothing about slots: that is done by [`rules`](super::rules), on a [`state`](super::state).

use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::JobName;
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::contract::operations;
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Claim, ClaimRequest, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, Pause,
    StoreError, Wakeups,
};

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

/// What goes wrong below the trait.
pub(in crate::store) trait Trouble: Send {
    /// Nothing was heard for so long.
    fn timed_out(limit: Duration) -> Self;

    /// The one error of every store; `sent` where something has no answer.
    fn into_error(self, op: Op, sent: bool, location: &str) -> StoreError;
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
    pub(in crate::store) async fn within<T, F: Trouble>(
        &self,
        frame: Frame<'_>,
        work: impl Future<Output = Result<T, F>>,
    ) -> Result<T, StoreError> {
        let Frame { location, limit } = frame;
        let answer = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(F::timed_out(limit)));
        answer.map_err(|fault| fault.into_error(self.op, self.is_sent(), location))
    }
}

/// How calls are framed.
pub(in crate::store) trait Framed: Debug + Send + Sync + 'static {
    type Fault: Trouble;

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
}

/// The other steps of an adapter, each of one call, and [`Ruled`] by them: each in the call's frame.
macro_rules! keyed {
    (
        Decided $decided:tt
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
                    ) -> impl Future<Output = Result<$answer, Self::Fault>> + Send;
                )*
            }
        )*

        impl<S: Keyed> Ruled for S {
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
        }
    };
}
operations!(keyed);
