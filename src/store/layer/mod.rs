//! Decorators over any store. Each is a [`Layer`]: it is handed every operation as a call that it may make, bound,
//! measure, lose or repeat, and knows nothing of what the operation means. Nothing here repeats what may have been applied.
//!
//! - [`Timeout`] bounds every call.
//! - [`Chaos`] loses requests and replies, repeats and delays, from a seed or by a script.
//! - [`SlowCalls`] warns of a store whose calls come near their time limit.
//! - [`Rotation`] goes on with another password once the store refuses the old one.

mod chaos;
mod locks;
mod rotation;
mod slow;

pub use crate::error::Reply;
pub use chaos::{Chaos, ChaosFault, ChaosStore, Odds};
pub use rotation::{Credentials, Rotation};
pub use slow::SlowCalls;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;

use crate::job::{JobName, NodeName};
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::contract::operations;
use crate::store::hints::{ChangeTeller, Teller};
use crate::store::{
    Applied, Capability, Changes, Claim, ClaimRequest, Closing, ErrorKind, HeartbeatReply, Intervention, JobEntry,
    LockStore, NodeEntry, NodeReport, Op, Pause, Release, Renewal, Settlement, Store, StoreError, Wakeups,
};

/// One operation with its arguments. It may be made any number of times; each is a request of its own.
pub type Call<'a, T> = &'a (dyn Fn() -> BoxFuture<'a, Reply<T>> + Send + Sync);

/// The same, of the store that it is given.
type CallOn<'a, T> = &'a (dyn Fn(Arc<dyn Store>) -> BoxFuture<'a, Reply<T>> + Send + Sync);

/// What a decorator does with each operation.
#[async_trait]
pub trait Layer: Debug + Send + Sync + 'static {
    /// Carries out `call`, which is operation `op` on the store at `location`.
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T>;
}

/// A store with a layer around each of its operations.
#[derive(Clone, Debug)]
pub struct Layered<L> {
    inner: Arc<Current>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Puts `layer` around `inner`.
    pub fn new(inner: Arc<dyn Store>, layer: L) -> Self {
        Self::over(Arc::new(Current::fixed(inner)), layer)
    }

    /// Puts `layer` around whichever store is the current one at the time of a call.
    const fn over(inner: Arc<Current>, layer: L) -> Self {
        Self { inner, layer }
    }

    /// The layer.
    pub const fn layer(&self) -> &L {
        &self.layer
    }

    async fn around<'a, T: Send + 'a>(&'a self, op: Op, ask: CallOn<'a, T>) -> Reply<T> {
        self.layer.around(op, self.inner.location(), &|| ask(self.inner.store())).await
    }
}

/// Passes every operation on.
macro_rules! layered {
    ($($part:ident { $($op:ident $name:ident $(as $own:ident)? ($($arg:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        #[async_trait]
        impl<L: Layer> Store for Layered<L> {
            fn capability(&self) -> Capability {
                self.inner.store().capability()
            }

            fn location(&self) -> &str {
                self.inner.location()
            }

            $($(async fn $name(&self, $($arg: $type),*) -> Reply<$answer> {
                self.around(Op::$op, &|store| Box::pin(async move { store.$name($($arg),*).await })).await
            })*)*

            fn subscribe(&self) -> Wakeups {
                self.inner.subscribe()
            }

            fn changes(&self) -> Changes {
                self.inner.changes()
            }

            fn lock_store(self: Arc<Self>) -> Option<Arc<dyn LockStore>> {
                self.inner.store().lock_store()?;
                Some(self)
            }
        }
    };
}
operations!(layered);

/// The store that calls go to.
#[derive(Debug)]
struct Current {
    /// Of the first one: all are at one place.
    location: String,
    /// None where the store stays the same: its own hints need no relay.
    hints: Option<Teller>,
    /// Those who look on, and the relay for them, where the store may be replaced.
    onlookers: ChangeTeller,
    state: Mutex<InUse>,
}

#[derive(Debug)]
struct InUse {
    store: Arc<dyn Store>,
    /// How many there were before it.
    generation: u64,
    /// Passes its hints on, from the first subscription.
    relay: Option<AbortOnDropHandle<()>>,
}

impl Current {
    /// One that stays.
    fn fixed(store: Arc<dyn Store>) -> Self {
        let location = store.location().to_owned();
        Self {
            location,
            hints: None,
            onlookers: ChangeTeller::default(),
            state: Mutex::new(InUse { store, generation: 0, relay: None }),
        }
    }

    /// One that may be replaced.
    fn replaceable(store: Arc<dyn Store>) -> Self {
        Self { hints: Some(Teller::default()), ..Self::fixed(store) }
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.lock().store)
    }

    /// Another one for each store that took over.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// From now on calls go to `store`. Whoever listens hears its hints; the first of them tells that some may have been lost.
    fn replace(&self, store: Arc<dyn Store>) {
        let mut state = self.lock();
        let relay = state.relay.is_some().then(|| self.relay(&store)).flatten();
        let generation = state.generation + 1;
        if self.hints.is_some() {
            self.onlookers.listen_anew(|teller| teller.pass_on(store.changes()));
        }
        *state = InUse { store, generation, relay };
    }

    /// Hints for whoever looks on, from now on.
    fn changes(&self) -> Changes {
        let store = self.store();
        if self.hints.is_none() {
            return store.changes();
        }
        self.onlookers.subscribe(|teller| teller.pass_on(store.changes()))
    }

    /// Hints from now on. Outside of a runtime there are none.
    fn subscribe(&self) -> Wakeups {
        let Some(hints) = &self.hints else { return self.store().subscribe() };
        let receiver = hints.subscribe();
        let mut state = self.lock();
        if state.relay.is_none() {
            state.relay = self.relay(&state.store);
        }
        receiver
    }

    fn relay(&self, store: &Arc<dyn Store>) -> Option<AbortOnDropHandle<()>> {
        let (hints, runtime) = (self.hints.clone()?, tokio::runtime::Handle::try_current().ok()?);
        Some(AbortOnDropHandle::new(runtime.spawn(hints.pass_on(store.subscribe()))))
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up on each call after a time. What was sent may still be carried out: [`Applied::Maybe`], except for reads.
///
/// `Layered::new(store, Timeout::after(options.op_timeout))`.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// A bound of `limit` per call; usually [`crate::store::StoreOptions::op_timeout`].
    pub const fn after(limit: Duration) -> Self {
        Self { limit }
    }
}

#[async_trait]
impl Layer for Timeout {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        match tokio::time::timeout(self.limit, call()).await {
            Ok(reply) => reply,
            Err(_) => {
                let applied = if op.is_read() { Applied::No } else { Applied::Maybe };
                let message = format!("no answer within {:?}", self.limit);
                Err(StoreError::new(ErrorKind::Timeout, applied, op, location, message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
