//! Decorators over any store. Each is a [`Layer`]: it is handed every operation as a call that it may make, bound,
//! measure, lose or repeat, and knows nothing of what the operation means. Nothing here repeats what may have been applied.
//!
//! - [`Timeout`] bounds every call.
//! - [`Chaos`] loses requests and replies, repeats and delays, from a seed or by a script.
//! - [`Rotation`] goes on with another password once the store refuses the old one.

mod chaos;
mod rotation;

pub use crate::store::contract::Reply;
pub use chaos::{Chaos, ChaosStore, Fault, Odds};
pub use rotation::{Credentials, Rotation};

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::contract::pass_on;
use crate::store::{
    Applied, Capability, Claim, ClaimRequest, Closing, ErrorKind, HeartbeatReply, Intervention, JobEntry, NodeEntry,
    NodeReport, Op, Pause, Release, Renewal, Settlement, Store, StoreError, Wake, Wakeups,
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

#[async_trait]
impl<L: Layer> Store for Layered<L> {
    fn capability(&self) -> Capability {
        self.inner.store().capability()
    }

    fn location(&self) -> &str {
        self.inner.location()
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        self.around(Op::Claim, &|store| Box::pin(async move { store.claim(request).await })).await
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        self.around(Op::Renew, &|store| Box::pin(async move { store.renew(lease).await })).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        self.around(Op::Complete, &|store| Box::pin(async move { store.complete(lease, run, done_ttl).await })).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        self.around(Op::Fail, &|store| Box::pin(async move { store.fail(lease, run, retry_after).await })).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        self.around(Op::GiveBack, &|store| Box::pin(async move { store.give_back(lease, run).await })).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.around(Op::Inspect, &|store| Box::pin(async move { store.inspect(slots).await })).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        self.around(Op::Output, &|store| Box::pin(async move { store.output(slot, attempt, token).await })).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        self.around(Op::Close, &|store| Box::pin(async move { store.close(slot, max_attempts, by).await })).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Reset, &|store| Box::pin(async move { store.reset(slot, audit).await })).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Unlock, &|store| Box::pin(async move { store.unlock(slot, audit).await })).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        self.around(Op::MarkDone, &|store| Box::pin(async move { store.mark_done(slot, audit, done_ttl).await })).await
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Pause, &|store| Box::pin(async move { store.pause(job, until, audit).await })).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        self.around(Op::Resume, &|store| Box::pin(async move { store.resume(job, audit).await })).await
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.around(Op::Pauses, &|store| Box::pin(async move { store.pauses().await })).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        self.around(Op::Register, &|store| Box::pin(async move { store.register(jobs).await })).await
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        self.around(Op::Jobs, &|store| Box::pin(async move { store.jobs().await })).await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        self.around(Op::Heartbeat, &|store| Box::pin(async move { store.heartbeat(report).await })).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        self.around(Op::Nodes, &|store| Box::pin(async move { store.nodes().await })).await
    }

    async fn purge(&self) -> Reply<u64> {
        self.around(Op::Purge, &|store| Box::pin(async move { store.purge().await })).await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.around(Op::Note, &|store| Box::pin(async move { store.note(pages).await })).await
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        self.around(Op::Notes, &|store| Box::pin(async move { store.notes(slot).await })).await
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        self.around(Op::Latest, &|store| Box::pin(async move { store.latest(jobs).await })).await
    }

    fn subscribe(&self) -> Wakeups {
        self.inner.subscribe()
    }
}

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// The store that calls go to.
#[derive(Debug)]
struct Current {
    /// Of the first one: all are at one place.
    location: String,
    /// None where the store stays the same: its own hints need no relay.
    hints: Option<broadcast::Sender<Wake>>,
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
        Self { location, hints: None, state: Mutex::new(InUse { store, generation: 0, relay: None }) }
    }

    /// One that may be replaced.
    fn replaceable(store: Arc<dyn Store>) -> Self {
        Self { hints: Some(broadcast::Sender::new(HINTS)), ..Self::fixed(store) }
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
        *state = InUse { store, generation, relay };
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
        Some(AbortOnDropHandle::new(runtime.spawn(pass_on(store.subscribe(), hints))))
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
