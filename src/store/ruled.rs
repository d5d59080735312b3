//! The one seam for stores that do not decide by themselves: [`Store`] for whoever can do one [rule](super::rules) on one slot in
//! one atomic step. An adapter brings that step, and what is no slot's: the registry, the notes, the hints.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::rules::SlotStep;
use super::state::SlotQuery;
pub(super) use crate::error::Reply;
use crate::job::{JobName, NodeName};
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::contract::operations;
use crate::store::hints::no_changes;
use crate::store::locks::LockRuled;
use crate::store::messages::{self, MessageRuled};
use crate::store::{
    Capability, Changes, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, LockStore, NodeEntry,
    NodeReport, Op, Pause, Release, Renewal, Settlement, Store, Wakeups,
};

/// What an adapter does by itself, and [`Store`] by it.
macro_rules! ruled {
    (
        Decided $decided:tt
        Messages $messages:tt
        $($part:ident { $($op:ident $name:ident as $own:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        /// What an adapter does by itself. What is documented by its link alone is that method of [`Store`]. Whoever can do a rule on a
        /// slot can do one on locks and on messages.
        pub(super) trait Ruled: LockRuled + MessageRuled {
            fn capability(&self) -> Capability;

            fn location(&self) -> &str;

            /// Reads a slot, lets the rule change it, and writes what it has changed under the condition that nothing of what was
            /// read has changed since; otherwise all over again. The rule is pure, and may be asked more than once.
            fn on_slot<T: Send + 'static>(
                &self,
                op: Op,
                query: SlotQuery,
                rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
            ) -> impl Future<Output = Reply<T>> + Send;

            /// A claim. A store with a way of its own to grant one overrides it.
            fn grant(&self, request: &ClaimRequest) -> impl Future<Output = Reply<Claim>> + Send {
                let (query, request) = (SlotQuery::claim(request), request.clone());
                self.on_slot(Op::Claim, query, move |step| step.claim(&request))
            }

            $($(
                #[doc = concat!("[`Store::", stringify!($name), "`].")]
                fn $own(&self, $($arg: $type),*) -> impl Future<Output = Reply<$answer>> + Send;
            )*)*

            /// [`Store::subscribe`].
            fn hints(&self) -> Wakeups;

            /// [`Store::changes`]. A store that tells of none leaves it so.
            fn change_hints(&self) -> Changes {
                no_changes()
            }
        }

        #[async_trait]
        impl<S: Ruled> Store for S {
            fn capability(&self) -> Capability {
                Ruled::capability(self)
            }

            fn location(&self) -> &str {
                Ruled::location(self)
            }

            async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
                self.grant(request).await
            }

            async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
                let own = lease.clone();
                self.on_slot(Op::Renew, SlotQuery::lease(lease), move |step| step.renew(&own)).await
            }

            async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
                let (own, run) = (lease.clone(), run.bounded(Ruled::capability(self).output_bytes));
                self.on_slot(Op::Complete, SlotQuery::end(lease), move |step| step.complete(&own, &run, done_ttl)).await
            }

            async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
                let (own, run) = (lease.clone(), run.bounded(Ruled::capability(self).output_bytes));
                self.on_slot(Op::Fail, SlotQuery::end(lease), move |step| step.fail(&own, &run, retry_after)).await
            }

            async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
                let (own, run) = (lease.clone(), run.bounded(Ruled::capability(self).output_bytes));
                self.on_slot(Op::GiveBack, SlotQuery::end(lease), move |step| step.give_back(&own, &run)).await
            }

            async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
                let by = by.clone();
                self.on_slot(Op::Close, SlotQuery::close(slot), move |step| step.close(max_attempts, &by)).await
            }

            async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
                let audit = audit.clone();
                self.on_slot(Op::Reset, SlotQuery::operate(slot), move |step| step.reset(&audit)).await
            }

            async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
                let audit = audit.clone();
                self.on_slot(Op::Unlock, SlotQuery::slot(slot), move |step| step.unlock(&audit)).await
            }

            async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
                let audit = audit.clone();
                self.on_slot(Op::MarkDone, SlotQuery::operate(slot), move |step| step.mark_done(&audit, done_ttl)).await
            }

            $($(
                async fn $name(&self, $($arg: $type),*) -> Reply<$answer> {
                    self.$own($($arg),*).await
                }
            )*)*

            async fn tell(&self, message: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Reply<Telling> {
                messages::tell(self, message, by, token, lease).await
            }

            async fn told(&self, message: &MessageKey, token: Token, delivery: &Delivery) -> Reply<DeliveryReply> {
                messages::told(self, message, token, delivery).await
            }

            async fn untold(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
                self.untold_known(topics).await
            }

            fn subscribe(&self) -> Wakeups {
                self.hints()
            }

            fn changes(&self) -> Changes {
                self.change_hints()
            }

            fn lock_store(self: Arc<Self>) -> Option<Arc<dyn LockStore>> {
                Some(self)
            }
        }
    };
}
operations!(ruled);
