//! One operation with its arguments, asked of a store and of the ledger.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};
use crate::slot::{Audit, Lease, RunRecord, Slot};
use crate::store::conformance::Failure;
use crate::store::conformance::sequence::plain;
use crate::store::memory::Ledger;
use crate::store::{Claim, ClaimRequest, Store};

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
        Self { shown: format!("{:?}", plain::claim(claim.clone())), claim: Some(claim) }
    }
}

impl Ask {
    pub(super) async fn of_store(&self, store: &dyn Store) -> Result<Answer, Failure> {
        Ok(match self {
            Self::Claim(request) => Answer::of_claim(store.claim(request).await?),
            Self::Renew(lease) => Answer::of(plain::renewal(store.renew(lease).await?)),
            Self::Complete(lease, run, ttl) => Answer::of(store.complete(lease, run, *ttl).await?),
            Self::Fail(lease, run, wait) => Answer::of(store.fail(lease, run, *wait).await?),
            Self::GiveBack(lease, run) => Answer::of(store.give_back(lease, run).await?),
            Self::Close(slot, limit, by) => Answer::of(plain::closing(store.close(slot, *limit, by).await?)),
            Self::Reset(slot, audit) => Answer::of(plain::intervention(store.reset(slot, audit).await?)),
            Self::Unlock(slot, audit) => Answer::of(plain::intervention(store.unlock(slot, audit).await?)),
            Self::MarkDone(slot, audit, ttl) => {
                Answer::of(plain::intervention(store.mark_done(slot, audit, *ttl).await?))
            }
            Self::Pause(job, until, audit) => Answer::of(store.pause(job, *until, audit).await?),
            Self::Resume(job, audit) => Answer::of(store.resume(job, audit).await?),
        })
    }

    pub(super) fn of_ledger(&self, ledger: &mut Ledger, now: DateTime<Utc>) -> Answer {
        match self {
            Self::Claim(request) => Answer::of_claim(ledger.claim(request, now)),
            Self::Renew(lease) => Answer::of(plain::renewal(ledger.renew(lease, now))),
            Self::Complete(lease, run, ttl) => Answer::of(ledger.complete(lease, run, *ttl, now)),
            Self::Fail(lease, run, wait) => Answer::of(ledger.fail(lease, run, *wait, now)),
            Self::GiveBack(lease, run) => Answer::of(ledger.give_back(lease, run, now)),
            Self::Close(slot, limit, by) => Answer::of(plain::closing(ledger.close(slot, *limit, by, now))),
            Self::Reset(slot, audit) => Answer::of(plain::intervention(ledger.reset(slot, audit, now))),
            Self::Unlock(slot, audit) => Answer::of(plain::intervention(ledger.unlock(slot, audit, now))),
            Self::MarkDone(slot, audit, ttl) => {
                Answer::of(plain::intervention(ledger.mark_done(slot, audit, *ttl, now)))
            }
            Self::Pause(job, until, audit) => Answer::of(ledger.pause(job, *until, audit, now)),
            Self::Resume(job, audit) => Answer::of(ledger.resume(job, audit, now)),
        }
    }
}
