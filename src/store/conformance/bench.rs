//! A case: a claim about every store, with the invariants that it checks, and how it is run. And what it works with: connections, a
//! probe, and the words of the protocol made short, which check nothing themselves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};

use crate::clock::{earlier, later};
use crate::job::{JobName, Namespace, NodeName};
use crate::slot::{Audit, Lease, Outcome as Ended, OutputTail, RunRecord, Slot, SlotRecord, Token};
use crate::store::conformance::{CaseOutcome, Failure, Probe, Scale, Setup};
use crate::store::layer::{Chaos, ChaosFault, ChaosStore};
use crate::store::{Claim, ClaimRequest, Op, Store};

type Run = for<'a> fn(&'a Bench) -> Pin<Box<dyn Future<Output = CaseOutcome> + 'a>>;

/// A claim about every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The claim, after its group: `claim::a_free_slot_is_granted_as_attempt_one`.
    pub name: &'static str,
    /// The invariants that it checks, as the protocol numbers them.
    pub invariants: &'static [&'static str],
    pub(super) run: Run,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.invariants)
    }
}

/// A case of the group from an `async fn(&Bench) -> CaseOutcome` and its invariants.
macro_rules! case {
    ($group:literal, $run:ident $(, $invariant:ident)*) => {
        $crate::store::conformance::Case {
            name: concat!($group, "::", stringify!($run)),
            invariants: &[$(stringify!($invariant)),*],
            run: |bench| Box::pin($run(bench)),
        }
    };
}
pub(super) use case;

/// TTL of leases: longer than any case takes.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// The wait after a failure.
pub(super) const WAIT: Duration = Duration::from_secs(40);
/// TTL of done markers.
pub(super) const DONE: Duration = Duration::from_secs(7_200);
/// What a case may take between setting a TTL and looking at it.
pub(super) const SLACK: Duration = Duration::from_secs(15);

/// One case's connections and namespace.
pub struct Bench {
    /// The connection that most cases use.
    pub store: Arc<dyn Store>,
    /// Access behind the store's back.
    pub probe: Box<dyn Probe>,
    /// The store's clock when the case began, in whole seconds.
    pub began: DateTime<Utc>,
    setup: Arc<dyn Setup>,
    namespace: Namespace,
    tokens: AtomicU64,
}

impl Bench {
    /// Opens an empty namespace.
    pub async fn open(setup: Arc<dyn Setup>, namespace: &str) -> Result<Self, Failure> {
        let namespace = Namespace::new(namespace).map_err(|error| Failure::from(error.to_string()))?;
        let probe = setup.probe(&namespace).await?;
        probe.wipe().await?;
        let store = setup.connect(&namespace).await?;
        let (now, _) = store.inspect(&[]).await?;
        Ok(Self { store, probe, began: now.trunc_subsecs(0), setup, namespace, tokens: AtomicU64::new(1) })
    }

    /// Another connection to the same data.
    pub async fn another(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(self.setup.connect(&self.namespace).await?)
    }

    /// A connection to another, empty namespace of the same store, and its probe.
    pub async fn neighbour(&self) -> Result<(Arc<dyn Store>, Box<dyn Probe>), Failure> {
        let name = format!("{}.b", self.namespace);
        let beside = Namespace::new(&name).map_err(|error| Failure::from(error.to_string()))?;
        let probe = self.setup.probe(&beside).await?;
        probe.wipe().await?;
        Ok((self.setup.connect(&beside).await?, probe))
    }

    /// This store behind a network to which `fault` happens at the next `op`.
    pub fn faulty(&self, op: Op, fault: ChaosFault) -> ChaosStore {
        let chaos = Chaos::scripted();
        chaos.next(op, fault);
        chaos.over(Arc::clone(&self.store))
    }

    /// How much the contests ask.
    pub fn scale(&self) -> Scale {
        self.setup.scale()
    }

    /// A token that no other call of this case has.
    pub fn token(&self) -> Token {
        let index = self.tokens.fetch_add(1, Ordering::Relaxed);
        // Spread over all 128 bits: stores may keep the first digits only where that is enough.
        Token::from_bits(u128::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    /// A slot of `job` that began ten minutes ago and lasts two hours, by the store's clock.
    pub fn slot(&self, job: &str) -> Result<Slot, Failure> {
        self.span(job, -600, 7_200)
    }

    /// A slot from `start` to `end`, in seconds from when the case began.
    pub fn span(&self, job: &str, start: i64, end: i64) -> Result<Slot, Failure> {
        let job = job_name(job)?;
        Slot::new(job, self.at(start), self.at(end)).map_err(|error| Failure::from(error.to_string()))
    }

    /// The instant this many seconds after the case began.
    pub fn at(&self, seconds: i64) -> DateTime<Utc> {
        let span = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { earlier(self.began, span) } else { later(self.began, span) }
    }

    /// A request for the slot with a fresh token, at most three attempts.
    pub fn request(&self, slot: &Slot, node: &str) -> Result<ClaimRequest, Failure> {
        Ok(ClaimRequest::new(slot.clone(), self.token(), node_name(node)?, LEASE, 3))
    }

    /// A fresh claim of the slot, whatever it is answered.
    pub async fn claim(&self, slot: &Slot, node: &str) -> Result<Claim, Failure> {
        Ok(self.store.claim(&self.request(slot, node)?).await?)
    }

    /// A fresh claim of the slot, which must be granted.
    pub async fn grant(&self, slot: &Slot, node: &str) -> Result<Lease, Failure> {
        let request = self.request(slot, node)?;
        granted(&request, self.store.claim(&request).await?)
    }

    /// What is known of the slot, with the outputs of its runs.
    pub async fn record(&self, slot: &Slot) -> Result<SlotRecord, Failure> {
        record(&*self.store, slot).await
    }

    /// The store's clock, once it is past `instant`: what is written from then on bears another time.
    pub async fn after(&self, instant: DateTime<Utc>) -> Result<DateTime<Utc>, Failure> {
        patiently(self, async || {
            let (now, _) = self.store.inspect(&[]).await?;
            Ok((now > instant).then_some(now))
        })
        .await
    }

    /// What stands at the slot's key runs out now.
    pub async fn expire(&self, slot: &Slot) -> Result<(), Failure> {
        Ok(self.probe.expire_mark(slot).await?)
    }
}

pub(super) async fn record(store: &dyn Store, slot: &Slot) -> Result<SlotRecord, Failure> {
    let (_, mut records) = store.inspect(std::slice::from_ref(slot)).await?;
    ensure_eq!(records.len(), 1, "one record for one slot");
    let mut record = records.pop().ok_or_else(|| Failure::from("no record".to_owned()))?;
    for run in &mut record.runs {
        let kept = store.output(slot, run.attempt, run.token).await?;
        match &run.output {
            Some(output) => {
                ensure!(output.is_lost() && kept.is_none(), "outputs are read by their own operation: {output:?}");
            }
            None => run.output = kept,
        }
    }
    Ok(record)
}

pub(super) fn granted(request: &ClaimRequest, claim: Claim) -> Result<Lease, Failure> {
    let (attempt, at) = take!(claim, Claim::Claimed { attempt, at, .. } => (attempt, at));
    Ok(request.granted(attempt, at))
}

pub(super) fn job_name(name: &str) -> Result<JobName, Failure> {
    JobName::new(name).map_err(|error| Failure::from(error.to_string()))
}

pub(super) fn node_name(name: &str) -> Result<NodeName, Failure> {
    NodeName::new(name).map_err(|error| Failure::from(error.to_string()))
}

/// The record of a run that ended like this, a second after it was claimed.
pub(super) fn ended(lease: &Lease, outcome: Ended) -> RunRecord {
    let second = Duration::from_secs(1);
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(later(lease.claimed_at, second)),
        duration_ms: Some(1_000),
        outcome: Some(outcome),
        exit_code: Some(if outcome == Ended::Success { 0 } else { 1 }),
        output: Some(OutputTail { text: format!("attempt {}", lease.attempt), dropped_bytes: 0, loss: None }),
        ..RunRecord::begun(lease)
    }
}

pub(super) fn succeeded(lease: &Lease) -> RunRecord {
    ended(lease, Ended::Success)
}

pub(super) fn failed(lease: &Lease) -> RunRecord {
    ended(lease, Ended::Failure)
}

pub(super) fn given_back(lease: &Lease) -> RunRecord {
    ended(lease, Ended::GivenBack)
}

/// An operator's verb. The instant is wrong on purpose: the store's clock decides.
pub(super) fn audit(verb: &str) -> Audit {
    Audit {
        verb: verb.to_owned(),
        who: "alice".to_owned(),
        host: "ops-1".to_owned(),
        why: "the suite asks".to_owned(),
        at: DateTime::UNIX_EPOCH,
    }
}

/// Whether a TTL was set to `full` not long ago.
pub(super) fn is_about(remaining: Duration, full: Duration) -> bool {
    remaining <= full && remaining.saturating_add(SLACK) > full
}

/// Whether an instant of the store's clock is not far from when the case began.
pub(super) fn is_recent(bench: &Bench, at: DateTime<Utc>) -> bool {
    at >= bench.began && at < later(bench.began, SLACK)
}

/// Asks again every few milliseconds until there is an answer, for as long as the setup's patience lasts. For the few
/// things that only real time brings about.
#[allow(clippy::disallowed_methods, reason = "the one place of the suite that lets real time pass")]
pub(super) async fn patiently<T>(
    bench: &Bench,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let pause = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while waited < bench.scale().patience {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        tokio::time::sleep(pause).await;
        waited += pause;
    }
    Err(Failure::from(format!("nothing changed for {waited:?}")))
}
