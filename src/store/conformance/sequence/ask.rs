//! One operation with its arguments, asked of a store and of the ledger; and copies of answers without what may differ between two stores
//! that both keep the contract: instants become the epoch, and what is left of a TTL becomes the TTL that it must have been.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};
use crate::slot::{Audit, DoneMark, JobLatest, LastEnd, LastSuccess, Lease, Mark, RunRecord, Slot, SlotRecord};
use crate::store::conformance::Failure;
use crate::store::conformance::bench::{DONE, LEASE, WAIT};
use crate::store::memory::Ledger;
use crate::store::{Claim, ClaimRequest, Closing, Intervention, Pause, Renewal, Store};

/// An operation with its arguments.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Claim(Box<ClaimRequest>),
    Renew(Box<Lease>),
    Complete(Box<Lease>, Box<RunRecord>, Duration),
    Fail(Box<Lease>, Box<RunRecord>, Duration),
    GiveBack(Box<Lease>, Box<RunRecord>),
    Close(Slot, u32, NodeName),
    Reset(Slot, Audit),
    Unlock(Slot, Audit),
    MarkDone(Slot, Audit, Duration),
    Pause(JobName, Option<DateTime<Utc>>, Audit),
    Resume(JobName, Audit),
}

/// An answer as it is compared, and the claim itself, since a grant has consequences.
pub(super) struct Answer {
    pub(super) shown: String,
    pub(super) claim: Option<Claim>,
}

impl Answer {
    fn of(answer: impl std::fmt::Debug) -> Self {
        Self { shown: format!("{answer:?}"), claim: None }
    }

    fn of_claim(claim: Claim) -> Self {
        Self { shown: format!("{:?}", plain_claim(claim.clone())), claim: Some(claim) }
    }
}

impl Ask {
    pub(super) async fn of_store(&self, store: &dyn Store) -> Result<Answer, Failure> {
        Ok(match self {
            Self::Claim(request) => Answer::of_claim(store.claim(request).await?),
            Self::Renew(lease) => Answer::of(plain_renewal(store.renew(lease).await?)),
            Self::Complete(lease, run, ttl) => Answer::of(store.complete(lease, run, *ttl).await?),
            Self::Fail(lease, run, wait) => Answer::of(store.fail(lease, run, *wait).await?),
            Self::GiveBack(lease, run) => Answer::of(store.give_back(lease, run).await?),
            Self::Close(slot, limit, by) => Answer::of(plain_closing(store.close(slot, *limit, by).await?)),
            Self::Reset(slot, audit) => Answer::of(plain_intervention(store.reset(slot, audit).await?)),
            Self::Unlock(slot, audit) => Answer::of(plain_intervention(store.unlock(slot, audit).await?)),
            Self::MarkDone(slot, audit, ttl) => {
                Answer::of(plain_intervention(store.mark_done(slot, audit, *ttl).await?))
            }
            Self::Pause(job, until, audit) => Answer::of(store.pause(job, *until, audit).await?),
            Self::Resume(job, audit) => Answer::of(store.resume(job, audit).await?),
        })
    }

    pub(super) fn of_ledger(&self, ledger: &mut Ledger, now: DateTime<Utc>) -> Answer {
        match self {
            Self::Claim(request) => Answer::of_claim(ledger.claim(request, now)),
            Self::Renew(lease) => Answer::of(plain_renewal(ledger.renew(lease, now))),
            Self::Complete(lease, run, ttl) => Answer::of(ledger.complete(lease, run, *ttl, now)),
            Self::Fail(lease, run, wait) => Answer::of(ledger.fail(lease, run, *wait, now)),
            Self::GiveBack(lease, run) => Answer::of(ledger.give_back(lease, run, now)),
            Self::Close(slot, limit, by) => Answer::of(plain_closing(ledger.close(slot, *limit, by, now))),
            Self::Reset(slot, audit) => Answer::of(plain_intervention(ledger.reset(slot, audit, now))),
            Self::Unlock(slot, audit) => Answer::of(plain_intervention(ledger.unlock(slot, audit, now))),
            Self::MarkDone(slot, audit, ttl) => {
                Answer::of(plain_intervention(ledger.mark_done(slot, audit, *ttl, now)))
            }
            Self::Pause(job, until, audit) => Answer::of(ledger.pause(job, *until, audit, now)),
            Self::Resume(job, audit) => Answer::of(ledger.resume(job, audit, now)),
        }
    }
}

const THEN: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Every span that a sequence sets, in rising order and far enough apart for the slowest machine.
const SPANS: [Duration; 6] = [Duration::ZERO, WAIT, LEASE, LEASE.saturating_mul(2), Duration::from_secs(3_600), DONE];

/// The span that this is what is left of.
fn whole(remaining: Duration) -> Duration {
    SPANS.into_iter().find(|span| remaining <= *span).unwrap_or(Duration::MAX)
}

fn done(mark: DoneMark) -> DoneMark {
    DoneMark { at: THEN, ..mark }
}

fn plain_claim(answer: Claim) -> Claim {
    match answer {
        Claim::Claimed { attempt, used, .. } => Claim::Claimed { attempt, used, at: THEN, revision: None },
        Claim::Held { by, remaining } => Claim::Held { by, remaining: whole(remaining) },
        Claim::Done(mark) => Claim::Done(done(mark)),
        Claim::Backoff { remaining } => Claim::Backoff { remaining: whole(remaining) },
        Claim::Paused { remaining } => Claim::Paused { remaining: remaining.map(whole) },
        Claim::Blocked { key, by, remaining } => Claim::Blocked { key, by, remaining: whole(remaining) },
        Claim::Early { remaining } => Claim::Early { remaining: whole(remaining) },
        Claim::Exhausted { .. } | Claim::Closed => answer,
    }
}

fn plain_renewal(answer: Renewal) -> Renewal {
    match answer {
        Renewal::Done(mark) => Renewal::Done(done(mark)),
        other => other,
    }
}

fn plain_closing(answer: Closing) -> Closing {
    match answer {
        Closing::Running { by, remaining } => Closing::Running { by, remaining: whole(remaining) },
        Closing::Open { remaining } => Closing::Open { remaining: whole(remaining) },
        other => other,
    }
}

fn plain_intervention(answer: Intervention) -> Intervention {
    match answer {
        Intervention::Held { by, remaining } => Intervention::Held { by, remaining: whole(remaining) },
        other => other,
    }
}

/// Of a pause, whether it still lasts is compared, and until when only if that was asked for.
pub(super) fn plain_pause(pause: Pause, now: DateTime<Utc>) -> (Option<Option<Duration>>, String, Option<String>) {
    let remaining = pause.remaining(now).map(|left| left.map(whole));
    (remaining, pause.audit.verb, pause.ended.map(|ended| ended.verb))
}

pub(super) fn plain_latest(latest: JobLatest) -> JobLatest {
    let success = latest.success.map(|success| LastSuccess { at: THEN, ..success });
    let end = latest.end.map(|end| LastEnd { at: THEN, ..end });
    JobLatest { success, end, ..latest }
}

pub(super) fn plain_record(record: SlotRecord) -> SlotRecord {
    let mark = match record.mark {
        Mark::Leased { by, token, remaining } => Mark::Leased { by, token, remaining: whole(remaining) },
        Mark::Backoff { by, remaining } => Mark::Backoff { by, remaining: whole(remaining) },
        Mark::Done(mark) => Mark::Done(done(mark)),
        Mark::Free => Mark::Free,
    };
    let mut runs = record.runs;
    for run in &mut runs {
        run.claimed_at = THEN;
    }
    runs.sort_by_key(|run| (run.attempt, run.token));
    let mut audit = record.audit;
    for entry in &mut audit {
        entry.at = THEN;
    }
    // A verb that a network delivers twice may be recorded twice.
    audit.dedup();
    let verdict = record.verdict.map(|verdict| crate::slot::VerdictRecord { at: THEN, ..verdict });
    SlotRecord { mark, runs, audit, verdict, ..record }
}
