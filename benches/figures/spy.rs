//! A store that notes each claim and counts every other operation; all go to the store beneath. It can answer `Done` to
//! every claim, so that a node's claims are measured without the commands that a grant would start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use cronward::clock::between;
use cronward::job::{JobName, NodeName};
use cronward::slot::{
    Attempt, Audit, DoneMark, Holder, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token,
};
use cronward::store::{
    Capability, Changes, Claim, ClaimRequest, Closing, Delivery, DeliveryReply, HeartbeatReply, Intervention, JobEntry,
    MessageKey, NodeEntry, NodeReport, Pause, Release, Renewal, Settlement, Store, StoreError, Telling, Topic,
    UntoldMessage, Wakeups,
};

use crate::work::wall;

type Reply<T> = Result<T, StoreError>;

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    /// It is asked and its answer passed on.
    Asked,
    /// It is asked, and the answer is `Done` whatever it was.
    AskedThenDone,
    /// The answer is `Done`; nobody is asked.
    Done,
}

/// One claim.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) slot: Slot,
    pub(crate) sent: DateTime<Utc>,
    pub(crate) answered: DateTime<Utc>,
    pub(crate) answer: &'static str,
}

impl Noted {
    /// From the tick to the sending, for a slot that begins with its tick.
    pub(crate) fn lateness(&self) -> Duration {
        between(self.slot.start(), self.sent)
    }
}

#[derive(Debug)]
pub(crate) struct Spy {
    inner: Arc<dyn Store>,
    claims: Claims,
    noted: Mutex<Vec<Noted>>,
    /// Operations about a slot that are no claims.
    others: Mutex<BTreeMap<&'static str, usize>>,
}

impl Spy {
    pub(crate) fn on(inner: Arc<dyn Store>, claims: Claims) -> Arc<Self> {
        Arc::new(Self { inner, claims, noted: Mutex::default(), others: Mutex::default() })
    }

    /// The claims so far; they are forgotten.
    pub(crate) fn take(&self) -> Vec<Noted> {
        std::mem::take(&mut *self.noted.lock().unwrap())
    }

    /// Operations about slots so far that were no claims.
    pub(crate) fn others(&self) -> BTreeMap<&'static str, usize> {
        self.others.lock().unwrap().clone()
    }

    fn count(&self, what: &'static str) {
        *self.others.lock().unwrap().entry(what).or_default() += 1;
    }
}

#[async_trait]
impl Store for Spy {
    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn location(&self) -> &str {
        self.inner.location()
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        let sent = wall();
        let real = if self.claims == Claims::Done { None } else { Some(self.inner.claim(request).await?) };
        let answered = wall();
        let by = Holder { node: request.node.clone(), attempt: 1 };
        let done = || Claim::Done(DoneMark { by, at: answered, token: None });
        let answer = real.filter(|_| self.claims == Claims::Asked).unwrap_or_else(done);
        let noted = Noted { slot: request.slot.clone(), sent, answered, answer: answer.as_str() };
        self.noted.lock().unwrap().push(noted);
        Ok(answer)
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        self.count("renew");
        self.inner.renew(lease).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        self.count("complete");
        self.inner.complete(lease, run, done_ttl).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        self.count("fail");
        self.inner.fail(lease, run, retry_after).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        self.count("give_back");
        self.inner.give_back(lease, run).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        self.inner.inspect(slots).await
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        self.inner.output(slot, attempt, token).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        self.count("close");
        self.inner.close(slot, max_attempts, by).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.inner.reset(slot, audit).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.inner.unlock(slot, audit).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        self.inner.mark_done(slot, audit, done_ttl).await
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        self.inner.pause(job, until, audit).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        self.inner.resume(job, audit).await
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        self.inner.pauses().await
    }

    async fn pause_of(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        self.inner.pause_of(job).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        self.inner.register(jobs).await
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        self.inner.jobs().await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        self.inner.heartbeat(report).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        self.inner.nodes().await
    }

    async fn purge(&self) -> Reply<u64> {
        self.inner.purge().await
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.count("note");
        self.inner.note(pages).await
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        self.inner.notes(slot).await
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        self.inner.latest(jobs).await
    }

    async fn tell(&self, message: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Reply<Telling> {
        self.inner.tell(message, by, token, lease).await
    }

    async fn told(&self, message: &MessageKey, token: Token, delivery: &Delivery) -> Reply<DeliveryReply> {
        self.inner.told(message, token, delivery).await
    }

    async fn untold(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        self.inner.untold(topics).await
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn subscribe(&self) -> Wakeups {
        self.inner.subscribe()
    }
}
