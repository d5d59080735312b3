//! A store in this process's memory: for tests, examples, the model and the simulator.
//!
//! - [`Ledger`] keeps the slots and the registry as plain data; the time is a parameter. No lock, no runtime. What it answers
//!   about a slot is decided by `store::rules`, as in every store that does not decide by itself.
//! - [`MemoryStore`] is a ledger behind a lock and a clock: the [`super::Store`].

mod ledger;
mod locks;
mod messages;

pub use ledger::Ledger;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};

use crate::clock::{Clock, later};
use crate::job::{JobName, Namespace};
use crate::slot::{Attempt, Audit, JobLatest, NotePage, OutputTail, Slot, SlotRecord, Token};
use crate::store::backend::{Backend, KeptPart, Opened};
use crate::store::contract::OUTPUT_BYTES;
use crate::store::hints::{Onlookers, Teller};
use crate::store::locks::LockHints;
use crate::store::ruled::{Reply, Ruled};
use crate::store::rules::SlotStep;
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, Changes, HeartbeatReply, Intervention, JobEntry, NodeEntry, NodeReport, Op, OpenError, Pause, Reach,
    StoreClock, StoreOptions, Wakeups,
};
use ledger::{Kept, id};

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
    /// Slots and jobs of which nothing can be read.
    #[cfg(test)]
    spoilt: Mutex<Vec<String>>,
}

/// One namespace's data and its listeners.
#[derive(Debug)]
struct Room {
    ledger: Ledger,
    wakes: Teller,
    lock_hints: LockHints,
    onlookers: Onlookers,
}

impl Room {
    fn new(retention: Duration) -> Self {
        Self {
            ledger: Ledger::new(retention),
            wakes: Teller::default(),
            lock_hints: LockHints::default(),
            onlookers: Onlookers::default(),
        }
    }
}

impl MemoryStore {
    /// An empty store that judges time by `clock`.
    pub fn new(options: StoreOptions, clock: Arc<dyn Clock>) -> Self {
        let rooms = Mutex::new(BTreeMap::new());
        let shared = Shared {
            clock,
            retention: options.retention,
            rooms,
            #[cfg(test)]
            spoilt: Mutex::default(),
        };
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
            for change in room.ledger.take_changes() {
                room.onlookers.tell(change);
            }
            for wake in room.ledger.take_wakes() {
                room.wakes.tell(wake);
            }
            room.lock_hints.tell(room.ledger.take_lock_wakes());
            answer
        })
    }

    /// From now on nothing of these slots and jobs can be read, as where somebody else has written in their place; and everything else
    /// can.
    #[cfg(test)]
    pub(crate) fn spoil(&self, names: &[&str]) {
        *self.shared.spoilt.lock().unwrap() = names.iter().map(|name| (*name).to_owned()).collect();
    }

    /// As a server answers: the error is about all that was asked for, and names the first.
    #[cfg(test)]
    fn read_each<T: ToString>(&self, op: Op, asked: &[T]) -> Reply<()> {
        let spoilt = self.shared.spoilt.lock().unwrap();
        match asked.first().filter(|_| asked.iter().any(|asked| spoilt.contains(&asked.to_string()))) {
            Some(first) => {
                let message = format!("{}: a key of another type", first.to_string());
                let kind = crate::error::ErrorKind::Corrupt;
                Err(crate::error::StoreError::new(kind, crate::error::Applied::No, op, self.location(), message))
            }
            None => Ok(()),
        }
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
const CAPABILITY: Capability = Capability {
    name: "memory",
    reach: Reach::Process,
    clock: StoreClock::Host,
    push: true,
    poll: Duration::from_secs(1),
    durable: false,
    expires_records: false,
    locks: true,
    tells_changes: true,
    output_bytes: OUTPUT_BYTES,
    messages: true,
};

impl Ruled for MemoryStore {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn location(&self) -> &str {
        "memory:"
    }

    async fn on_slot<T: Send + 'static>(
        &self,
        _op: Op,
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        Ok(self.with_ledger(|ledger, now| ledger.on_slot(&query, now, rule)))
    }

    async fn records(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        #[cfg(test)]
        self.read_each(Op::Inspect, slots)?;
        Ok(self.with_ledger(|ledger, now| (now, ledger.inspect(slots, now))))
    }

    async fn output_kept(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        Ok(self.with_ledger(|ledger, now| ledger.output(slot, attempt, token, now)))
    }

    async fn set_pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        Ok(self.with_ledger(|ledger, now| ledger.pause(job, until, audit, now)))
    }

    async fn end_pause(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        Ok(self.with_ledger(|ledger, now| ledger.resume(job, audit, now)))
    }

    async fn pauses_known(&self) -> Reply<Vec<(JobName, Pause)>> {
        Ok(self.with_ledger(|ledger, _| ledger.pauses()))
    }

    async fn pause_known(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        Ok(self.with_ledger(|ledger, now| (now, ledger.pause_of(job))))
    }

    async fn register_jobs(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        Ok(self.with_ledger(|ledger, now| ledger.register(jobs, now)))
    }

    async fn jobs_known(&self) -> Reply<Vec<JobEntry>> {
        Ok(self.with_ledger(|ledger, _| ledger.jobs()))
    }

    async fn beat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        Ok(self.with_ledger(|ledger, now| ledger.heartbeat(report, now)))
    }

    async fn nodes_known(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        Ok(self.with_ledger(|ledger, now| (now, ledger.nodes(now))))
    }

    async fn remove_old(&self) -> Reply<u64> {
        Ok(self.with_ledger(|ledger, now| ledger.purge(now)))
    }

    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.with_ledger(|ledger, now| ledger.note(pages, now));
        Ok(())
    }

    async fn notes_known(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        Ok(self.with_ledger(|ledger, now| ledger.notes(slot, now)))
    }

    async fn latest_known(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        #[cfg(test)]
        self.read_each(Op::Latest, jobs)?;
        Ok(self.with_ledger(|ledger, _| ledger.latest(jobs)))
    }

    fn hints(&self) -> Wakeups {
        self.enter(|room, _| room.wakes.subscribe())
    }

    fn change_hints(&self) -> Changes {
        self.enter(|room, _| room.onlookers.subscribe())
    }
}

impl Opened for MemoryStore {}

/// The store in memory.
pub(in crate::store) struct MemoryBackend;

#[async_trait]
impl Backend for MemoryBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    async fn open(&self, _: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(MemoryStore::new(options, clock)))
    }

    fn where_kept(&self, _location: &str, _namespace: &Namespace, _slot: &Slot) -> Vec<(String, KeptPart)> {
        Vec::new()
    }
}

/// What happens to a store behind cronward's back: keys that run out, are evicted or wiped. For tests and the simulator;
/// nothing of the protocol is decided here.
impl Ledger {
    /// What stands at the slot's key runs out now. False when nothing stood there.
    pub fn expire_mark(&mut self, slot: &Slot, now: DateTime<Utc>) -> bool {
        self.mark_ttl(slot, now).is_some() && self.set_mark_ttl(slot, Duration::ZERO, now)
    }

    /// A job's entry is removed by hand.
    pub fn forget_job(&mut self, job: &JobName) {
        self.jobs.remove(job);
    }

    /// The counter is lost while the rest is kept, as by an eviction.
    pub fn forget_counter(&mut self, slot: &Slot) {
        self.set_counter(slot, 0);
    }

    /// The counter becomes this number while the rest is kept.
    pub fn set_counter(&mut self, slot: &Slot, counter: Attempt) {
        self.disturb(slot, |kept| kept.state.counter = counter);
    }

    /// Attempts that do not count become this many.
    pub fn set_forgiven(&mut self, slot: &Slot, forgiven: u32) {
        self.disturb(slot, |kept| kept.state.forgiven = forgiven);
    }

    /// What stood at the slot's key lasts for `ttl` from now on, also when it had run out. False when nothing ever stood
    /// there.
    pub fn set_mark_ttl(&mut self, slot: &Slot, ttl: Duration, now: DateTime<Utc>) -> bool {
        let mark = self.slots.get_mut(&id(slot)).and_then(|kept| kept.state.mark.as_mut());
        mark.is_some_and(|mark| {
            mark.until = later(now, ttl);
            true
        })
    }

    /// The slot's verdict is lost while the rest is kept.
    pub fn forget_verdict(&mut self, slot: &Slot) {
        self.disturb(slot, |kept| kept.state.verdict = None);
    }

    /// All that is known of the slot besides its mark is gone.
    pub fn forget_log(&mut self, slot: &Slot) {
        self.disturb(slot, Kept::forget);
    }

    /// What the job has come to lately becomes this.
    pub fn set_latest(&mut self, job: &JobName, latest: JobLatest, now: DateTime<Utc>) {
        self.latest.insert(job.clone(), (latest, now));
    }

    /// Records an operator's verb that did nothing.
    pub fn add_audit(&mut self, slot: &Slot, audit: &Audit, now: DateTime<Utc>) {
        let kept = self.slots.entry(id(slot)).or_default();
        kept.state.audit.push(Audit { at: now, ..audit.clone() });
        kept.state.touched = Some(now.max(slot.end()));
    }

    /// The counter as it is stored; none when there is none.
    pub fn counter(&self, slot: &Slot) -> Option<Attempt> {
        self.slots.get(&id(slot)).map(|kept| kept.state.counter).filter(|counter| *counter > 0)
    }

    /// How long what stands at the slot's key lasts; none when nothing does.
    pub fn mark_ttl(&self, slot: &Slot, now: DateTime<Utc>) -> Option<Duration> {
        let mark = self.slots.get(&id(slot))?.state.mark(now)?;
        Some(mark.remaining(now))
    }

    fn disturb(&mut self, slot: &Slot, work: impl FnOnce(&mut Kept)) {
        if let Some(kept) = self.slots.get_mut(&id(slot)) {
            work(kept);
        }
    }
}

#[cfg(test)]
mod tests;
