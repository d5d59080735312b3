//! A ledger behind a lock and a clock, as a [`Store`]. Nothing here decides anything: that is the ledger's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::job::{JobName, Namespace, NodeName};
use crate::slot::{Attempt, Audit, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::memory::Ledger;
use crate::store::{
    Capability, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Pause,
    Reach, Release, Renewal, Settlement, Store, StoreClock, StoreError, StoreOptions, Wake, Wakeups,
};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// A store in this process's memory. A clone is another connection to the same data.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    namespace: Namespace,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    retention: Duration,
    rooms: Mutex<BTreeMap<Namespace, Room>>,
}

/// One namespace's data and its listeners.
#[derive(Debug)]
struct Room {
    ledger: Ledger,
    wakes: broadcast::Sender<Wake>,
}

impl Room {
    fn new(retention: Duration) -> Self {
        Self { ledger: Ledger::new(retention), wakes: broadcast::Sender::new(HINTS) }
    }
}

impl MemoryStore {
    /// An empty store that judges time by `clock`.
    pub fn new(options: StoreOptions, clock: Arc<dyn Clock>) -> Self {
        let rooms = Mutex::new(BTreeMap::new());
        let shared = Shared { clock, retention: options.retention, rooms };
        Self { shared: Arc::new(shared), namespace: options.namespace }
    }

    /// The same store as seen from another namespace.
    #[must_use]
    pub fn beside(&self, namespace: Namespace) -> Self {
        Self { shared: Arc::clone(&self.shared), namespace }
    }

    /// Works on the namespace's ledger itself, at the store's time, and publishes what is to be told: for probes, the
    /// simulator, and stores that are broken on purpose.
    pub fn with_ledger<T>(&self, work: impl FnOnce(&mut Ledger, DateTime<Utc>) -> T) -> T {
        self.enter(|room, now| {
            let answer = work(&mut room.ledger, now);
            for wake in room.ledger.take_wakes() {
                // No receiver is no fault: nobody waits.
                let _ = room.wakes.send(wake);
            }
            answer
        })
    }

    fn enter<T>(&self, work: impl FnOnce(&mut Room, DateTime<Utc>) -> T) -> T {
        let mut rooms = self.shared.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that time does not go back between two operations. Milliseconds, as every store has.
        let now = self.shared.clock.now().wall.trunc_subsecs(3);
        let room = rooms.entry(self.namespace.clone()).or_insert_with(|| Room::new(self.shared.retention));
        work(room, now)
    }
}

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "memory",
    reach: Reach::Process,
    clock: StoreClock::Host,
    push: true,
    poll: Duration::from_secs(1),
    durable: false,
    expires_records: false,
};

#[async_trait]
impl Store for MemoryStore {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn location(&self) -> &str {
        "memory:"
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.claim(request, now)))
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewal, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.renew(lease, now)))
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Result<Settlement, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.complete(lease, run, done_ttl, now)))
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Result<Release, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.fail(lease, run, retry_after, now)))
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Result<Release, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.give_back(lease, run, now)))
    }

    async fn inspect(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError> {
        Ok(self.with_ledger(|ledger, now| (now, ledger.inspect(slots, now))))
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.output(slot, attempt, token, now)))
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Result<Closing, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.close(slot, max_attempts, by, now)))
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.reset(slot, audit, now)))
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.unlock(slot, audit, now)))
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Result<Intervention, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.mark_done(slot, audit, done_ttl, now)))
    }

    async fn pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.pause(job, until, audit, now)))
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.resume(job, audit, now)))
    }

    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError> {
        Ok(self.with_ledger(|ledger, _| ledger.pauses()))
    }

    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.register(jobs, now)))
    }

    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError> {
        Ok(self.with_ledger(|ledger, _| ledger.jobs()))
    }

    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.heartbeat(report, now)))
    }

    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError> {
        Ok(self.with_ledger(|ledger, now| (now, ledger.nodes(now))))
    }

    async fn purge(&self) -> Result<u64, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.purge(now)))
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        self.with_ledger(|ledger, now| ledger.note(pages, now));
        Ok(())
    }

    async fn notes(&self, slot: &Slot) -> Result<Vec<NotePage>, StoreError> {
        Ok(self.with_ledger(|ledger, now| ledger.notes(slot, now)))
    }

    fn subscribe(&self) -> Wakeups {
        self.enter(|room, _| room.wakes.subscribe())
    }
}
