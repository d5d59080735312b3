//! The contract that every store keeps. Each method is one atomic step, judged by the store's clock.
//!
//! **Errors.** A method fails only when the answer is not known, and says whether it may have been applied all the
//! same. Every method may be repeated with the same arguments after such an error; what a repetition may not change is
//! said at each. Nothing in a store retries: that is the guard's to decide.
//!
//! **What stays.** Everything about a slot is kept for the store's `retention` after its last change or its end,
//! whichever is later, except the mark at its key, which has its own TTL. So no counter is forgotten within its slot.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::broadcast;

use crate::job::{JobName, NodeName};
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::{Attempt, Audit, JobLatest, Lease, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::{
    ChangeHint, Claim, ClaimRequest, Closing, HeartbeatReply, Intervention, JobEntry, LockStore, NodeEntry, NodeReport,
    Pause, Release, Renewal, Settlement, StoreError, Wake,
};

/// The receiving end of wake-ups. A receiver that lags has lost hints: treat that as [`Wake::Resync`].
pub type Wakeups = broadcast::Receiver<Wake>;

/// The receiving end of hints for whoever looks on. A receiver that lags has lost some: treat that as [`ChangeHint::Resync`].
pub type Changes = broadcast::Receiver<ChangeHint>;

/// The most bytes of an output's JSON where a store has no limit of its own: twice the longest `output_limit`.
pub(super) const OUTPUT_BYTES: usize = 2 * 1_024 * 1_024;

/// How long what a job has come to lately is kept after its last change.
pub const LATEST_KEPT: Duration = Duration::from_secs(400 * 86_400);

/// A shared store of leases and records.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// What it can and cannot do.
    fn capability(&self) -> Capability;

    /// Where it is, without secrets; for messages.
    fn location(&self) -> &str;

    /// Asks for the slot's lease. [`Claim`] has the order in which the checks are made; a request for the past
    /// ([`ClaimRequest::past`]) passes `Closed` over and obeys the rest.
    ///
    /// The attempt counter rises only when the lease is granted; it goes on from the largest attempt that the store
    /// knows of. The same token again, while its lease stands, answers `Claimed` with the same attempt (I5): its lease lasts for
    /// the TTL that is asked for from now on, no longer, and never shorter than before. The same holds once its lease has lapsed, the number and the instant of the grant unchanged, while nothing
    /// stands at the key, its attempt is the newest and counts, and no other token has that number: `max_attempts` and the
    /// limit of the counter are not asked, pauses and other slots are. Otherwise it is a new attempt; once its run has a
    /// recorded end, `Backoff` with nothing left: a late copy of a request is no new one. A counter that has reached 999
    /// answers `Exhausted`, so that fences stay in order.
    ///
    /// A slot is done by its marker, and by the verdict `done` where the marker is gone (I3); nothing is put back.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError>;

    /// Makes the lease last for its TTL from now on; never shortens it. When the key is absent, the lease is set again
    /// if the slot is not done, its attempt has no recorded end and there is no newer attempt; the counter becomes at least
    /// its attempt.
    async fn renew(&self, lease: &Lease) -> Result<Renewal, StoreError>;

    /// Records success: the run, the done marker for `done_ttl`, the verdict `done`; wakes the others. Written even when
    /// the lease was lost meanwhile, and whatever the hour; a done marker of another attempt is left as it is (I3). The
    /// counter becomes at least the lease's attempt. Again with the same token: `Recorded`, the marker unchanged; also where an operator has opened the slot since, which stays open.
    /// `Overtaken` also when the other attempt, granted after this one, is over by now: it held the slot meanwhile. After is by
    /// number, or by the instant of the grant: numbers begin anew in a store that lost its data.
    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Result<Settlement, StoreError>;

    /// Records a failed run and releases the lease if it is still this one: a wait of `retry_after` stands in its place
    /// (none when zero), and the others are woken. The run's own record is written in any case, but never over success.
    /// Again with the same token: `Released`, and the wait is not begun anew. `Overtaken` when the lease, wait or done
    /// marker of another attempt stands there, or one that was granted after this one is over by now.
    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Result<Release, StoreError>;

    /// As [`Store::fail`] without a wait, and the attempt is refunded, once, if the lease was still this one.
    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Result<Release, StoreError>;

    /// What is known of each slot, in the order asked; also of those never touched. Reads only. The first part is the
    /// store's clock at the time of reading. The attempts are the larger of the counter and the largest attempt recorded,
    /// as a claim counts them. Without outputs, which may be long: a run whose output was not kept says how much went.
    async fn inspect(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError>;

    /// The end of the output of one run of the slot; none where the run left none, or none was kept. Reads only, and alone reads
    /// outputs: no other operation's time depends on their length.
    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Result<Option<OutputTail>, StoreError>;

    /// After the slot's end: records the verdict, once (L2). `done` when done; otherwise `failed` when attempts that
    /// count have reached `max_attempts`, `skipped` when none was made and a pause touched the slot, else `missed`.
    /// Checked in this order: not over (`Open`), recorded (`Already`), a lease stands (`Running`).
    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Result<Closing, StoreError>;

    /// Operator: forgives all attempts so far, ends a wait, takes back a done marker and a verdict; wakes the others.
    /// The counter is kept, so that fences go on rising. A foreign key that was kept with the marker goes with it. `Held` when a node holds the lease, with nothing changed;
    /// otherwise always `Applied`, and recorded each time.
    async fn reset(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError>;

    /// Operator: takes the lease from its holder, whose next renewal answers `Lost`; wakes the others. The attempt
    /// counts. Its record gets the outcome `lost_lease`. A foreign key that is held with the lease goes with it, unless it is
    /// somebody else's by now. `Unchanged` when nobody holds it.
    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Result<Intervention, StoreError>;

    /// Operator: sets the done marker and the verdict `done` without a run; wakes the others. The marker's holder is
    /// `audit.who` cut to a node name, attempt 0. `Held` when a node holds the lease, with nothing changed.
    /// `Unchanged` when the marker stands.
    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Result<Intervention, StoreError>;

    /// Operator: no slot of the job is granted until `until`, or until resumed. Replaces an earlier pause.
    async fn pause(
        &self,
        job: &JobName,
        until: Option<DateTime<Utc>>,
        audit: &Audit,
    ) -> Result<Intervention, StoreError>;

    /// Operator: ends the pause now; wakes the others. The pause then names who ended it beside who began it. `Unchanged` when the job is not
    /// paused.
    async fn resume(&self, job: &JobName, audit: &Audit) -> Result<Intervention, StoreError>;

    /// Every job's last pause, also those that are over.
    async fn pauses(&self) -> Result<Vec<(JobName, Pause)>, StoreError>;

    /// The last pause of one job, also one that is over, with the store's clock at the time of reading, which alone says whether the
    /// pause lasts. One call, however many jobs are paused.
    async fn pause_of(&self, job: &JobName) -> Result<(DateTime<Utc>, Option<Pause>), StoreError>;

    /// Makes the registry know these jobs; answers all that it knows. Of a name the earliest `first_seen` is kept: the known one, the
    /// caller's, or the store's time where the name is new. Kept is also the whole of an entry that a file's daemon made where the new one comes from elsewhere ([`JobEntry::yields_to`]): such a caller
    /// knows no more than its own command line, and the daemon may have spoken since it looked.
    async fn register(&self, jobs: &[JobEntry]) -> Result<Vec<JobEntry>, StoreError>;

    /// Every job that the registry knows, by name.
    async fn jobs(&self) -> Result<Vec<JobEntry>, StoreError>;

    /// Records that the node is alive: one entry per name, the last instance's. Entries older than the retention go.
    async fn heartbeat(&self, report: &NodeReport) -> Result<HeartbeatReply, StoreError>;

    /// Every node that the registry knows, by name.
    async fn nodes(&self) -> Result<(DateTime<Utc>, Vec<NodeEntry>), StoreError>;

    /// Removes records older than the retention, a bounded number at a time; answers how many slots went. Stores whose
    /// records expire by themselves answer 0.
    async fn purge(&self) -> Result<u64, StoreError>;

    /// Keeps what was noted on slots, for people: each page takes the place of the one of its slot with the same id, so the
    /// same call again changes nothing. Of one slot the newest [`crate::slot::MOST_PAGES`] are kept, as long as its records.
    /// No other operation reads them; pages of one call may be kept in more than one step.
    async fn note(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError>;

    /// What was noted on the slot, in the order in which the pages were begun. Reads only.
    async fn notes(&self, slot: &Slot) -> Result<Vec<NotePage>, StoreError>;

    /// What each job has come to lately, in the order asked; nothing of a name that nothing is known of. Reads only. It is written
    /// with the steps that change it, at no call more: the newest slot that is done by [`Store::complete`], and by [`Store::mark_done`]
    /// where it has begun by then;
    /// the last end of a run by [`Store::complete`], [`Store::fail`] and [`Store::give_back`], where they change that run's record;
    /// what failed by [`Store::close`], and taken back by [`Store::reset`]. Kept for [`LATEST_KEPT`] after its last change, so that
    /// a yearly job has one.
    async fn latest(&self, jobs: &[JobName]) -> Result<Vec<JobLatest>, StoreError>;

    /// Claims a message, so that it is told once: the first who asks is `Yours`, and sends it before the lease lapses; who asks
    /// meanwhile is told whose it is. Once the lease has lapsed, or the next try is due, it is `Yours` for the next who asks. What was
    /// told or given up stays so. The same token again is the same claim: `Yours`, with the same number of tries, its lease lasting
    /// from now on and never shorter, unless another was granted or what became of it was recorded.
    ///
    /// Kept for the retention after its last change; of one topic the [`MOST_MESSAGES`](crate::message::MOST_MESSAGES) that go last.
    async fn tell(
        &self,
        message: &MessageKey,
        by: &NodeName,
        token: Token,
        lease: Duration,
    ) -> Result<Telling, StoreError>;

    /// Records what became of a try. `Delivered` is recorded whoever has the claim by now, for it was sent; the rest only while no other
    /// claim was granted, else `Overtaken`, with nothing changed. Again with the same token: `Recorded`, and a wait is not begun anew. Of a
    /// message that the store has lost it is recorded as of a first try.
    async fn told(&self, message: &MessageKey, token: Token, delivery: &Delivery) -> Result<DeliveryReply, StoreError>;

    /// What was begun about these topics and is not told, given up or not; topic by topic in the order asked, each in the order of
    /// first claims. The first part is the store's clock. Reads only.
    async fn untold(&self, topics: &[Topic]) -> Result<(DateTime<Utc>, Vec<UntoldMessage>), StoreError>;

    /// Hints from now on. Never fails: a store that cannot tell, or cannot be reached, stays silent, and says
    /// [`super::Wake::Resync`] when it can again.
    fn subscribe(&self) -> Wakeups;

    /// Hints for whoever looks on, from now on, until the receiver is dropped: the store listens for them only while there is one.
    /// Never fails, as [`Store::subscribe`]; where [`Capability::tells_changes`] is false it is closed at once.
    fn changes(&self) -> Changes {
        broadcast::Sender::new(1).subscribe()
    }

    /// The same store as one that keeps locks, over the same connections; none for one that keeps none.
    fn lock_store(self: Arc<Self>) -> Option<Arc<dyn LockStore>> {
        None
    }
}

/// The operations, for those who write the same for each: its kind, what it takes, what it answers. What is not decided by a
/// [rule](super::rules) has a second name, which [`Ruled`](super::ruled::Ruled) has for it.
macro_rules! operations {
    ($each:ident) => {
        $each! {
            Decided {
                Claim claim(request: &ClaimRequest) -> Claim;
                Renew renew(lease: &Lease) -> Renewal;
                Complete complete(lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Settlement;
                Fail fail(lease: &Lease, run: &RunRecord, retry_after: Duration) -> Release;
                GiveBack give_back(lease: &Lease, run: &RunRecord) -> Release;
                Close close(slot: &Slot, max_attempts: u32, by: &NodeName) -> Closing;
                Reset reset(slot: &Slot, audit: &Audit) -> Intervention;
                Unlock unlock(slot: &Slot, audit: &Audit) -> Intervention;
                MarkDone mark_done(slot: &Slot, audit: &Audit, done_ttl: Duration) -> Intervention;
            }
            Messages {
                Tell tell(message: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Telling;
                Told told(message: &MessageKey, token: Token, delivery: &Delivery) -> DeliveryReply;
                Untold untold(topics: &[Topic]) -> (DateTime<Utc>, Vec<UntoldMessage>);
            }
            Records {
                Inspect inspect as records(slots: &[Slot]) -> (DateTime<Utc>, Vec<SlotRecord>);
                Output output as output_kept(slot: &Slot, attempt: Attempt, token: Token) -> Option<OutputTail>;
                Purge purge as remove_old() -> u64;
            }
            Registry {
                Pause pause as set_pause(job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Intervention;
                Resume resume as end_pause(job: &JobName, audit: &Audit) -> Intervention;
                Pauses pauses as pauses_known() -> Vec<(JobName, Pause)>;
                Pauses pause_of as pause_known(job: &JobName) -> (DateTime<Utc>, Option<Pause>);
                Register register as register_jobs(jobs: &[JobEntry]) -> Vec<JobEntry>;
                Jobs jobs as jobs_known() -> Vec<JobEntry>;
                Heartbeat heartbeat as beat(report: &NodeReport) -> HeartbeatReply;
                Nodes nodes as nodes_known() -> (DateTime<Utc>, Vec<NodeEntry>);
                Latest latest as latest_known(jobs: &[JobName]) -> Vec<JobLatest>;
            }
            Notes {
                Note note as note_pages(pages: &[(Slot, NotePage)]) -> ();
                Notes notes as notes_known(slot: &Slot) -> Vec<NotePage>;
            }
        }
    };
}
pub(super) use operations;

/// Differences between stores that somebody above them has to know.
///
/// [`Capability::new`] promises the least; a store that promises more sets the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The store's name in documents, logs and metrics.
    pub name: &'static str,
    /// Who can share it.
    pub reach: Reach,
    /// Whose clock judges leases and windows.
    pub clock: StoreClock,
    /// True when it tells of releases by itself; otherwise waiting nodes look again every [`Capability::poll`].
    pub push: bool,
    /// How often a node that waits for a release looks again where `push` is false.
    pub poll: Duration,
    /// True when an acknowledged write outlives the process that keeps the store.
    pub durable: bool,
    /// True when old records go by themselves; otherwise the node calls `purge`.
    pub expires_records: bool,
    /// True when it keeps locks besides ([`Store::lock_store`]).
    pub locks: bool,
    /// True when it tells of changes of every node ([`Store::changes`]); otherwise whoever looks on has to look again by a timer.
    pub tells_changes: bool,
    /// The most bytes of an output's JSON that it takes. Of a longer output the end is kept, and the bytes before are counted.
    pub output_bytes: usize,
    /// True when it keeps which messages were told ([`Store::tell`]); otherwise each node sends its own.
    pub messages: bool,
}

impl Capability {
    /// A store that tells of no release and is polled every second, may lose what it acknowledged, has to be purged, and keeps no
    /// locks and no messages.
    pub const fn new(name: &'static str, reach: Reach, clock: StoreClock) -> Self {
        let poll = Duration::from_secs(1);
        Self {
            name,
            reach,
            clock,
            push: false,
            poll,
            durable: false,
            expires_records: false,
            locks: false,
            tells_changes: false,
            output_bytes: OUTPUT_BYTES,
            messages: false,
        }
    }

    /// What a cluster misses with this store, on one line; none where it misses nothing.
    pub fn lacks(&self) -> Option<String> {
        let reach = match self.reach {
            Reach::Process => Some("single process only, the data ends with it".to_owned()),
            Reach::Host => Some("single host only".to_owned()),
            Reach::Network => None,
        };
        let clock = match self.clock {
            StoreClock::Servers => {
                Some("leases rely on the clocks of most servers running at the same rate".to_owned())
            }
            StoreClock::Server | StoreClock::Host | StoreClock::Node => None,
        };
        let push = (!self.push).then(|| format!("waiting nodes poll every {:?} (no push notifications)", self.poll));
        let durable = (!self.durable).then(|| "acknowledged writes may be lost".to_owned());
        let missing: Vec<String> = [reach, clock, push, durable].into_iter().flatten().collect();
        (!missing.is_empty()).then(|| format!("store {}: {}", self.name, missing.join("; ")))
    }
}

/// Who can share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// One process.
    Process,
    /// Every process of one host.
    Host,
    /// Every node that reaches it over the network.
    Network,
}

/// Whose clock judges leases and windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreClock {
    /// The server's: a node's wrong clock cannot start a run early or late.
    Server,
    /// Those of several servers, of which the middle one counts. A lease and its fence are as good as the assumption that
    /// most of these clocks run at one rate, and that most of these servers keep what they acknowledged.
    Servers,
    /// The host's that every user of the store shares.
    Host,
    /// Each node's own judges when a slot begins and ends and how long a wait lasts: a node's wrong clock can start a run
    /// early or late. Leases do not depend on it: the store ends them by itself.
    Node,
}
