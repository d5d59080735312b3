//! The specification with a flaw: every operation that a flaw may change goes through it, the rest is passed on.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use cronward::clock::Clock;
use cronward::job::{JobName, Namespace, NodeName};
use cronward::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use cronward::store::conformance::{MemorySetup, Probe, Scale, Setup};
use cronward::store::layer::Reply;
use cronward::store::memory::{Ledger, MemoryStore};
use cronward::store::{
    Capability, Changes, Claim, ClaimRequest, Closing, Delivery, DeliveryReply, HeartbeatReply, Intervention, JobEntry,
    MessageKey, NodeEntry, NodeReport, Pause, Release, Renewal, Settlement, Store, Telling, Topic, UntoldMessage,
    Wakeups,
};

/// A flaw with the cases that must catch it.
#[derive(Clone, Debug)]
pub struct Control {
    /// What is broken.
    pub flaw: Arc<dyn Flaw>,
    /// Cases that fail because of it, among others.
    pub caught_by: &'static [&'static str],
}

/// What is broken. Each method is the right one unless a flaw says otherwise.
pub trait Flaw: Debug + Send + Sync + 'static {
    /// `claim`.
    fn claim(&self, ledger: &mut Ledger, request: &ClaimRequest, now: DateTime<Utc>) -> Claim {
        ledger.claim(request, now)
    }

    /// `renew`.
    fn renew(&self, ledger: &mut Ledger, lease: &Lease, now: DateTime<Utc>) -> Renewal {
        ledger.renew(lease, now)
    }

    /// `complete`, with the TTL of the done marker.
    fn complete(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Settlement {
        ledger.complete(lease, run, done_ttl, now)
    }

    /// `fail`, with the wait.
    fn fail(
        &self,
        ledger: &mut Ledger,
        (lease, run): (&Lease, &RunRecord),
        retry_after: Duration,
        now: DateTime<Utc>,
    ) -> Release {
        ledger.fail(lease, run, retry_after, now)
    }

    /// `give_back`.
    fn give_back(&self, ledger: &mut Ledger, lease: &Lease, run: &RunRecord, now: DateTime<Utc>) -> Release {
        ledger.give_back(lease, run, now)
    }

    /// `close`.
    fn close(
        &self,
        ledger: &mut Ledger,
        (slot, max_attempts): (&Slot, u32),
        by: &NodeName,
        now: DateTime<Utc>,
    ) -> Closing {
        ledger.close(slot, max_attempts, by, now)
    }

    /// `mark_done`.
    fn mark_done(
        &self,
        ledger: &mut Ledger,
        (slot, audit): (&Slot, &Audit),
        done_ttl: Duration,
        now: DateTime<Utc>,
    ) -> Intervention {
        ledger.mark_done(slot, audit, done_ttl, now)
    }

    /// Whether a claim looks first and writes later, with others in between.
    fn looks_before_it_writes(&self) -> bool {
        false
    }

    /// `note`.
    fn note(&self, ledger: &mut Ledger, pages: &[(Slot, NotePage)], now: DateTime<Utc>) {
        ledger.note(pages, now);
    }

    /// `register`.
    fn register(&self, ledger: &mut Ledger, jobs: &[JobEntry], now: DateTime<Utc>) -> Vec<JobEntry> {
        ledger.register(jobs, now)
    }

    /// `resume`.
    fn resume(&self, ledger: &mut Ledger, job: &JobName, audit: &Audit, now: DateTime<Utc>) -> Intervention {
        ledger.resume(job, audit, now)
    }

    /// `tell`.
    fn tell(
        &self,
        ledger: &mut Ledger,
        key: &MessageKey,
        by: (&NodeName, Token),
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Telling {
        ledger.tell(key, by, lease, now)
    }

    /// `told`.
    fn told(
        &self,
        ledger: &mut Ledger,
        (key, token): (&MessageKey, Token),
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> DeliveryReply {
        ledger.told(key, token, delivery, now)
    }

    /// Whether nobody is told of anything.
    fn is_silent(&self) -> bool {
        false
    }

    /// The namespace that is worked in instead of this one.
    fn namespace(&self, namespace: &Namespace) -> Namespace {
        namespace.clone()
    }
}

/// Connections to a ledger with a flaw.
#[derive(Debug)]
pub struct BrokenSetup {
    right: MemorySetup,
    flaw: Arc<dyn Flaw>,
}

impl BrokenSetup {
    /// An empty ledger with this flaw.
    pub fn new(flaw: Arc<dyn Flaw>, clock: Arc<dyn Clock>) -> Self {
        Self { right: MemorySetup::new(clock), flaw }
    }
}

#[async_trait]
impl Setup for BrokenSetup {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        let right = self.right.room(&self.flaw.namespace(namespace));
        Ok(Arc::new(Broken { right, flaw: Arc::clone(&self.flaw) }))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        self.right.probe(&self.flaw.namespace(namespace)).await
    }

    /// Small and impatient: a flaw shows at once or not at all.
    fn scale(&self) -> Scale {
        Scale { claimers: 16, slots: 64, patience: Duration::from_millis(800), ..Scale::default() }
    }
}

/// The specification with a flaw.
#[derive(Debug)]
pub struct Broken {
    right: MemoryStore,
    flaw: Arc<dyn Flaw>,
}

impl Broken {
    fn apply<T>(&self, work: impl FnOnce(&dyn Flaw, &mut Ledger, DateTime<Utc>) -> T) -> T {
        self.right.with_ledger(|ledger, now| {
            let answer = work(&*self.flaw, ledger, now);
            if self.flaw.is_silent() {
                // And with them what is for whoever looks on.
                drop(ledger.take_wakes());
            }
            answer
        })
    }
}

#[async_trait]
impl Store for Broken {
    fn capability(&self) -> Capability {
        self.right.capability()
    }

    fn location(&self) -> &str {
        self.right.location()
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        if self.flaw.looks_before_it_writes() {
            // Judges a copy, and writes what it decided from it over whatever happened since.
            let (mut copy, then) = self.right.with_ledger(|ledger, now| (ledger.clone(), now));
            let decided = copy.claim(request, then);
            tokio::task::yield_now().await;
            if let Claim::Claimed { .. } = decided {
                self.right.with_ledger(|ledger, _| *ledger = copy);
            }
            return Ok(decided);
        }
        Ok(self.apply(|flaw, ledger, now| flaw.claim(ledger, request, now)))
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        Ok(self.apply(|flaw, ledger, now| flaw.renew(ledger, lease, now)))
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        let run = run.bounded(self.right.capability().output_bytes);
        Ok(self.apply(|flaw, ledger, now| flaw.complete(ledger, (lease, &run), done_ttl, now)))
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        let run = run.bounded(self.right.capability().output_bytes);
        Ok(self.apply(|flaw, ledger, now| flaw.fail(ledger, (lease, &run), retry_after, now)))
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        let run = run.bounded(self.right.capability().output_bytes);
        Ok(self.apply(|flaw, ledger, now| flaw.give_back(ledger, lease, &run, now)))
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.right.inspect(slots).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        self.right.output(slot, attempt, token).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        Ok(self.apply(|flaw, ledger, now| flaw.close(ledger, (slot, max_attempts), by, now)))
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        Ok(self.apply(|_, ledger, now| ledger.reset(slot, audit, now)))
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        Ok(self.apply(|_, ledger, now| ledger.unlock(slot, audit, now)))
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        Ok(self.apply(|flaw, ledger, now| flaw.mark_done(ledger, (slot, audit), done_ttl, now)))
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        Ok(self.apply(|_, ledger, now| ledger.pause(job, until, audit, now)))
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        Ok(self.apply(|flaw, ledger, now| flaw.resume(ledger, job, audit, now)))
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.right.pauses().await
    }

    async fn pause_of(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        self.right.pause_of(job).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        Ok(self.apply(|flaw, ledger, now| flaw.register(ledger, jobs, now)))
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        self.right.jobs().await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        self.right.heartbeat(report).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        self.right.nodes().await
    }

    async fn purge(&self) -> Reply<u64> {
        self.right.purge().await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.apply(|flaw, ledger, now| flaw.note(ledger, pages, now));
        Ok(())
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        self.right.notes(slot).await
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        self.right.latest(jobs).await
    }

    async fn tell(&self, message: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Reply<Telling> {
        Ok(self.apply(|flaw, ledger, now| flaw.tell(ledger, message, (by, token), lease, now)))
    }

    async fn told(&self, message: &MessageKey, token: Token, delivery: &Delivery) -> Reply<DeliveryReply> {
        Ok(self.apply(|flaw, ledger, now| flaw.told(ledger, (message, token), delivery, now)))
    }

    async fn untold(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        self.right.untold(topics).await
    }

    fn changes(&self) -> Changes {
        self.right.changes()
    }

    fn subscribe(&self) -> Wakeups {
        self.right.subscribe()
    }
}
