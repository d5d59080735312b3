//! Uses the store as nodes and operators do, and measures. It works on a job, a node and slots with a random name that nobody
//! has, and never removes what is not its own: what forgets the old is asked with a retention that nothing outlasts.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use crate::admin::doctor::lock_probe::{LockProbe, LocksSeen};
use crate::clock::{Clock, offset_ms};
use crate::drive::Entropy;
use crate::job::{JobName, LockName, NameError, NodeName};
use crate::slot::{Audit, Decision, Lease, NotePage, Outcome, OutputTail, RunRecord, Slot, SlotError, Trigger};
use crate::store::{
    Applied, Claim, ClaimRequest, Delivery, JobEntry, JobOrigin, LockStore, MessageKey, NodeReport, Op, Station, Store,
    StoreError, Topic, Trial, Wake, WakeKind, Wakeups,
};

/// How often the way to the store is measured, after a first call that connects.
const MEASURED: usize = 9;

/// A hint that has not come by then does not come.
const HINT_LIMIT: Duration = Duration::from_secs(2);

/// How long what is claimed here stands, should doctor be killed.
const LEASE_TTL: Duration = Duration::from_secs(10);

/// How many names are drawn until one is kept by a certain server: one that has a thousandth of all keys is met all but surely.
const DRAWS: usize = 10_000;

/// What was measured.
#[derive(Debug)]
pub(super) struct Observed {
    /// How long each call took; or why there was no answer.
    pub(super) calls: Result<Vec<Duration>, StoreError>,
    /// This machine's clock minus the store's, in milliseconds, by the fastest call.
    pub(super) offset_ms: i64,
    /// Each operation that was tried, with its error.
    pub(super) tried: Vec<(Op, Option<StoreError>)>,
    /// How long a hint took; none when it did not come.
    pub(super) hint: Option<Duration>,
    /// The hint was waited for.
    pub(super) hint_awaited: bool,
    /// What was seen of locks, where the store keeps them.
    pub(super) locks: LocksSeen,
    /// The same at each of several servers by itself.
    pub(super) servers: Vec<AtServer>,
    /// What has been written by now, for it to be removed again.
    pub(super) trials: Vec<Trial>,
    /// What could not be removed.
    pub(super) left: Vec<Left>,
}

/// What was tried at one of several servers.
#[derive(Debug)]
pub(super) struct AtServer {
    /// Each operation, with its error, which names the server.
    pub(super) tried: Vec<(Op, Option<StoreError>)>,
    /// Whether the others do its work while it is away.
    pub(super) is_replaceable: bool,
}

/// What is left of a trial.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) trial: Trial,
    /// Why it could not be removed.
    pub(super) why: String,
}

/// The probe: a store, the clocks, random bits.
pub(super) struct Probe<'a> {
    pub(super) store: &'a dyn Store,
    /// The same store with a retention that nothing outlasts: for what forgets the old.
    pub(super) keeper: &'a dyn Store,
    /// The same store as one that keeps locks.
    pub(super) locks: Option<&'a dyn LockStore>,
    /// The store's servers, where there are several, each with the same one that keeps what is old.
    pub(super) stations: &'a [(Station, Station)],
    pub(super) clock: &'a dyn Clock,
    pub(super) entropy: &'a Entropy,
}

/// The names that are used.
struct Scratch {
    /// It lasts.
    now: Slot,
    /// It is over.
    past: Slot,
    node: NodeName,
    audit: Audit,
}

impl Scratch {
    fn trial(&self) -> Trial {
        let slots = vec![self.now.clone(), self.past.clone()];
        Trial { job: Some(self.now.job().clone()), node: Some(self.node.clone()), slots, lock: None }
    }

    /// The job as a file would have it that never runs it.
    fn entry(&self) -> JobEntry {
        JobEntry {
            name: self.now.job().clone(),
            schedule: "0 0 1 1 *".to_owned(),
            timezone: "UTC".to_owned(),
            period: "hour".to_owned(),
            max_attempts: 1,
            enabled: false,
            planned: None,
            command: None,
            first_seen: self.audit.at,
            origin: JobOrigin::File,
        }
    }

    fn report(&self) -> NodeReport {
        NodeReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: true,
            ..NodeReport::new(self.node.clone(), "doctor", self.audit.at)
        }
    }
}

impl Observed {
    fn nothing() -> Self {
        Self {
            calls: Ok(Vec::new()),
            offset_ms: 0,
            tried: Vec::new(),
            hint: None,
            hint_awaited: false,
            locks: LocksSeen::default(),
            servers: Vec::new(),
            trials: Vec::new(),
            left: Vec::new(),
        }
    }

    fn note(&mut self, op: Op, error: Option<StoreError>) {
        self.tried.push((op, error));
    }

    /// Whether every operation that writes was refused: there is nothing to be removed.
    pub(super) fn has_written_nothing(&self) -> bool {
        let writes = |op: &Op| matches!(op, Op::Claim | Op::Register | Op::Pause | Op::Heartbeat | Op::Note | Op::Tell);
        let mut tried = self.tried.iter().chain(self.servers.iter().flat_map(|server| &server.tried));
        tried.all(|(op, error)| !writes(op) || error.as_ref().is_some_and(|error| error.applied == Applied::No))
    }
}

impl Probe<'_> {
    /// Measures everything. A store that cannot be reached is not asked for more.
    pub(super) async fn observe(&self) -> Observed {
        let mut observed = Observed::nothing();
        let at = match self.measure(&mut observed).await {
            Ok(at) => at,
            Err(error) => return Observed { calls: Err(error), ..observed },
        };
        if let Ok(scratch) = self.scratch(at, |_| true) {
            let mut hints = self.listen().await;
            self.try_all(&scratch, hints.as_mut(), &mut observed).await;
            observed.locks = self.try_locks(&scratch, hints.is_some()).await;
        }
        for (station, keeper) in self.stations {
            let probe = Probe { store: &*station.store, keeper: &*keeper.store, locks: None, stations: &[], ..*self };
            let keeps = |scratch: &Scratch| station.keeps(scratch.now.job());
            let scratch = probe.scratch(at, |job| station.keeps(job)).ok().filter(keeps);
            let Some(scratch) = scratch else { continue };
            // Here too one that cannot be reached is not asked for more. It is told of by whoever looks at the servers.
            if station.store.inspect(std::slice::from_ref(&scratch.now)).await.is_err_and(|error| error.is_transient())
            {
                continue;
            }
            let mut seen = Observed::nothing();
            probe.try_all(&scratch, None, &mut seen).await;
            observed.servers.push(AtServer { tried: seen.tried, is_replaceable: station.is_replaceable });
            observed.trials.append(&mut seen.trials);
        }
        observed
    }

    /// Tries each operation.
    async fn try_all(&self, scratch: &Scratch, hints: Option<&mut Wakeups>, observed: &mut Observed) {
        observed.trials.push(scratch.trial());
        self.try_runs(scratch, hints, observed).await;
        self.try_verbs(scratch, &mut observed.tried).await;
        // Last: what is listed is to be listed for a moment only.
        self.try_registry(scratch, &mut observed.tried).await;
    }

    /// Tries what is asked about locks, under the name of the job.
    async fn try_locks(&self, scratch: &Scratch, tells: bool) -> LocksSeen {
        let (Some(store), Ok(lock)) = (self.locks, LockName::new(scratch.now.job().as_str())) else {
            return LocksSeen::default();
        };
        let Scratch { node, audit, .. } = scratch;
        LockProbe { store, entropy: self.entropy, lock, node: node.clone(), audit, tells }.observe().await
    }

    async fn measure(&self, observed: &mut Observed) -> Result<DateTime<Utc>, StoreError> {
        let (mut at, _) = self.store.inspect(&[]).await?;
        let (mut calls, mut fastest) = (Vec::new(), Duration::MAX);
        for _ in 0..MEASURED {
            let sent = self.clock.now();
            (at, _) = self.store.inspect(&[]).await?;
            let received = self.clock.now();
            let took = received.mono.since(sent.mono);
            if took < fastest {
                fastest = took;
                observed.offset_ms = offset_ms(sent, received, at);
            }
            calls.push(took);
        }
        observed.calls = Ok(calls);
        Ok(at)
    }

    /// Names that nobody has, of a job that `may` be taken if one is found.
    fn scratch(&self, at: DateTime<Utc>, may: impl Fn(&JobName) -> bool) -> Result<Scratch, SlotError> {
        let mut job = self.draw()?;
        for _ in 0..DRAWS {
            if may(&job) {
                break;
            }
            job = self.draw()?;
        }
        let second = at.duration_trunc(TimeDelta::seconds(1)).unwrap_or(at);
        let span = |from: i64, to: i64| {
            Slot::new(job.clone(), second + TimeDelta::seconds(from), second + TimeDelta::seconds(to))
        };
        let who = || "doctor".to_owned();
        let audit = Audit { verb: "doctor".to_owned(), who: who(), host: who(), why: String::new(), at };
        Ok(Scratch { now: span(-60, 120)?, past: span(-600, -300)?, node: NodeName::nearest(job.as_str()), audit })
    }

    /// A name that nobody has.
    fn draw(&self) -> Result<JobName, NameError> {
        let word: String = self.entropy.token().to_string().chars().take(12).collect();
        JobName::new(&format!("doctor-{word}"))
    }

    /// Tries what a run asks for; one that is refused does not keep the others from being tried.
    async fn try_runs(&self, scratch: &Scratch, hints: Option<&mut Wakeups>, observed: &mut Observed) {
        let (store, slot) = (self.store, &scratch.now);
        let (lease, first) = self.claim(scratch).await;
        observed.note(Op::Renew, store.renew(&lease).await.err());
        let failed = ended(&lease, Outcome::Failure);
        observed.note(Op::Fail, store.fail(&lease, &failed, Duration::ZERO).await.err());
        let released = self.clock.now().mono;
        if let Some(hints) = hints {
            observed.hint_awaited = true;
            let came = tokio::time::timeout(HINT_LIMIT, told_of(hints, slot)).await.is_ok_and(|came| came);
            observed.hint = came.then(|| self.clock.now().mono.since(released));
        }
        let (lease, second) = self.claim(scratch).await;
        observed.note(Op::GiveBack, store.give_back(&lease, &ended(&lease, Outcome::GivenBack)).await.err());
        let (lease, third) = self.claim(scratch).await;
        // The claim of a retry may need more rights than the first one did.
        observed.tried.insert(0, (Op::Claim, first.or(second).or(third)));
        let done = ended(&lease, Outcome::Success);
        observed.note(Op::Complete, store.complete(&lease, &done, LEASE_TTL).await.err());
        let mut page = NotePage::new(format!("doctor.{}", lease.token), scratch.node.clone(), None, lease.claimed_at);
        page.add(lease.claimed_at, Decision::Asked);
        observed.note(Op::Note, store.note(&[(slot.clone(), page)]).await.err());
        observed.note(Op::Notes, store.notes(slot).await.err());
    }

    /// Tries what operators ask for, and what is asked about a slot that is over.
    async fn try_verbs(&self, scratch: &Scratch, tried: &mut Vec<(Op, Option<StoreError>)>) {
        let (store, slot, audit) = (self.store, &scratch.now, &scratch.audit);
        tried.push((Op::Inspect, store.inspect(std::slice::from_ref(slot)).await.err()));
        tried.push((Op::Reset, store.reset(slot, audit).await.err()));
        tried.push((Op::MarkDone, store.mark_done(slot, audit, LEASE_TTL).await.err()));
        // Somebody has to hold what is taken.
        let _ = store.reset(slot, audit).await;
        let _ = self.claim(scratch).await;
        tried.push((Op::Unlock, store.unlock(slot, audit).await.err()));
        tried.push((Op::Close, store.close(&scratch.past, 1, &scratch.node).await.err()));
    }

    /// Tries what is not about a slot.
    async fn try_registry(&self, scratch: &Scratch, tried: &mut Vec<(Op, Option<StoreError>)>) {
        let (store, keeper, job) = (self.store, self.keeper, scratch.now.job());
        let until = Some(scratch.now.end());
        tried.push((Op::Register, store.register(&[scratch.entry()]).await.err()));
        tried.push((Op::Jobs, store.jobs().await.err()));
        tried.push((Op::Pause, store.pause(job, until, &scratch.audit).await.err()));
        tried.push((Op::Resume, store.resume(job, &scratch.audit).await.err()));
        tried.push((Op::Pauses, store.pauses().await.err()));
        tried.push((Op::Latest, store.latest(std::slice::from_ref(job)).await.err()));
        if store.capability().messages {
            self.try_messages(scratch, tried).await;
        }
        tried.push((Op::Heartbeat, keeper.heartbeat(&scratch.report()).await.err()));
        tried.push((Op::Nodes, store.nodes().await.err()));
        // Where records expire by themselves it asks for nothing.
        if !keeper.capability().expires_records {
            tried.push((Op::Purge, keeper.purge().await.err()));
        }
    }

    /// Tries what is asked about messages, about the job.
    async fn try_messages(&self, scratch: &Scratch, tried: &mut Vec<(Op, Option<StoreError>)>) {
        let (store, token, topic) = (self.store, self.entropy.token(), Topic::from(scratch.now.job().clone()));
        let Ok(message) = MessageKey::new(topic.clone(), "tried", "doctor") else { return };
        tried.push((Op::Tell, store.tell(&message, &scratch.node, token, LEASE_TTL).await.err()));
        tried.push((Op::Told, store.told(&message, token, &Delivery::Delivered).await.err()));
        tried.push((Op::Untold, store.untold(&[topic]).await.err()));
    }

    /// The lease that was granted, or one that would have been.
    async fn claim(&self, scratch: &Scratch) -> (Lease, Option<StoreError>) {
        let request = ClaimRequest {
            trigger: Trigger::Manual,
            // As most jobs claim: where that takes a right of its own, it is tried.
            exclusive: true,
            ..ClaimRequest::new(scratch.now.clone(), self.entropy.token(), scratch.node.clone(), LEASE_TTL, 9)
        };
        match self.store.claim(&request).await {
            Ok(Claim::Claimed { attempt, at, .. }) => (request.granted(attempt, at), None),
            Ok(_) => (request.granted(1, scratch.audit.at), None),
            Err(error) => (request.granted(1, scratch.audit.at), Some(error)),
        }
    }

    /// Listens, where the store tells; waits until it does.
    async fn listen(&self) -> Option<Wakeups> {
        if !self.store.capability().push {
            return None;
        }
        let mut hints = self.store.subscribe();
        // The first word of a connection that stands; some stores have none to say.
        let _ = tokio::time::timeout(HINT_LIMIT / 2, hints.recv()).await;
        Some(hints)
    }
}

/// Whether the slot's release was told of; false when there will be no more hints.
async fn told_of(hints: &mut Wakeups, slot: &Slot) -> bool {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match hints.recv().await {
            Ok(Wake::Slot { job, key, what: WakeKind::Released }) if job == *slot.job() && key == slot.key() => {
                return true;
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return false,
        }
    }
}

fn ended(lease: &Lease, outcome: Outcome) -> RunRecord {
    // With an output, for which a store may need more rights than for the record.
    let output = Some(OutputTail { text: "tried\n".to_owned(), dropped_bytes: 0, loss: None });
    let message = Some("cronward doctor".to_owned());
    RunRecord { outcome: Some(outcome), message, output, ..RunRecord::begun(lease) }
}
