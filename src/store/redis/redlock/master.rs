//! One master of the quorum: the scripts that only a quorum needs, with their arguments.

use std::time::Duration;

use super::{answers, script};
use crate::job::{MAX_ATTEMPTS_LIMIT, NodeName};
use crate::reply::ClaimRequest;
use crate::slot::{Attempt, DoneMark, Lease, RunRecord, Slot, Verdict, VerdictRecord};
use crate::store::redis::RedisStore;
use crate::store::redis::adapter::asked_by;
use crate::store::redis::script::Args;
use crate::store::redis::store::ttl;
use crate::store::redlock::claim::{Grant, Look};
use crate::store::redlock::grant::Ack;
use crate::store::redlock::renewal::Answer;
use crate::store::{Op, StoreError, Trial};

/// Since when a server remembers; one key for all namespaces, in none of theirs.
const MEMORY: &str = "cronward::since";

impl RedisStore {
    /// What tells whether this master counts: the job's longest lease, and since when it remembers.
    fn memory(&self, slot: &Slot) -> [String; 2] {
        [self.keys.longest(slot.job()), MEMORY.to_owned()]
    }

    /// Asks this master to reserve the slot for a short while.
    pub(super) async fn reserve(&self, request: &ClaimRequest, reserved: Duration) -> Result<Look, StoreError> {
        let slot = &request.slot;
        let more = std::iter::once(self.keys.pause(slot.job())).chain(self.memory(slot));
        let args = self
            .about(slot, more)
            .arg(request.token)
            .arg(&request.node)
            .arg(ttl(reserved))
            .arg(ttl(request.lease_ttl))
            .arg(request.max_attempts)
            .arg(slot.start().timestamp_millis())
            .arg(MAX_ATTEMPTS_LIMIT)
            .arg(u8::from(request.past))
            .arg(u8::from(request.exclusive));
        self.ask((Op::Claim, &self.keys.mark(slot)), &script::RESERVE, &args, answers::look).await
    }

    /// Writes the lease under its number.
    pub(super) async fn grant(&self, request: &ClaimRequest, grant: Grant) -> Result<Ack, StoreError> {
        let slot = &request.slot;
        let args = self
            .about(slot, self.memory(slot))
            .arg(request.token)
            .arg(&request.node)
            .arg(grant.attempt)
            .arg(ttl(request.lease_ttl))
            .arg(request.trigger.as_str())
            .arg(grant.at.timestamp_millis())
            .arg(grant.forgiven)
            .arg(asked_by(request))
            .arg(u8::from(request.past))
            .arg(u8::from(request.exclusive));
        self.ask((Op::Claim, &self.keys.mark(slot)), &script::GRANT, &args, answers::ack).await
    }

    /// Sees that no later claim is given this number.
    pub(super) async fn burn(&self, slot: &Slot, attempt: Attempt) -> Result<(), StoreError> {
        let args = self.about(slot, []).arg(attempt);
        self.ask((Op::Claim, &self.keys.mark(slot)), &script::BURN, &args, answers::done).await
    }

    /// Takes back what the claim has here under this number.
    pub(super) async fn undo(&self, request: &ClaimRequest, attempt: Attempt) -> Result<(), StoreError> {
        let slot = &request.slot;
        let args = self.about(slot, []).arg(asked_by(request)).arg(request.token).arg(attempt);
        self.ask((Op::Claim, &self.keys.mark(slot)), &script::UNDO, &args, answers::done).await
    }

    /// Renews, and tells for how long this master has kept its data.
    pub(super) async fn renew_counted(&self, lease: &Lease) -> Result<Answer, StoreError> {
        let args = self
            .about(&lease.slot, self.memory(&lease.slot))
            .arg(lease.token)
            .arg(&lease.node)
            .arg(lease.attempt)
            .arg(ttl(lease.ttl))
            .arg(lease.trigger.as_str())
            .arg(lease.claimed_at.timestamp_millis().max(0));
        self.ask((Op::Renew, &self.keys.mark(&lease.slot)), &script::RENEW, &args, answers::renewal).await
    }

    /// Removes what a trial wrote here, the job's longest lease with it.
    pub(super) async fn forget_all(&self, trial: &Trial) -> Result<(), StoreError> {
        // How long its leases may last counts as long as a slot of it may be held.
        let Some(job) = trial.job.as_ref().filter(|_| !trial.slots.is_empty()) else { return self.forget(trial).await };
        let key = self.keys.longest(job);
        let command = redis::cmd("DEL").arg(&key).take();
        let longest = self.call((Op::Purge, &key), &command, |_| Ok(())).await;
        self.forget(trial).await.and(longest)
    }

    /// Brings a done marker here, with the record of its run where that is known.
    pub(super) async fn heal(&self, slot: &Slot, success: &Success) -> Result<(), StoreError> {
        let Success { mark, run, ttl: lasts } = success;
        let token = run.as_ref().map_or_else(|| "-".to_owned(), |run| run.token.to_string());
        let record = run.as_ref().and_then(|run| serde_json::to_string(run).ok()).unwrap_or_default();
        let args: Args = self
            .about(slot, [])
            .arg(token)
            .arg(&mark.by.node)
            .arg(mark.by.attempt)
            .arg(mark.at.timestamp_millis())
            .arg(ttl(*lasts))
            .arg(record);
        self.ask((Op::Complete, &self.keys.mark(slot)), &script::HEAL, &args, answers::done).await
    }

    /// Records the verdict, unless one is recorded; answers what is, and whether it was.
    pub(super) async fn conclude(
        &self,
        slot: &Slot,
        verdict: Verdict,
        by: &NodeName,
    ) -> Result<(bool, VerdictRecord), StoreError> {
        let args = self.about(slot, []).arg(verdict.as_str()).arg(by);
        let keys = self.keys.slot(slot);
        let read = |reply: &_| answers::verdict(reply, &keys.log);
        self.ask((Op::Close, &keys.mark), &script::VERDICT, &args, read).await
    }
}

/// A success as it is brought to a master that does not know of it.
#[derive(Clone, Debug)]
pub(super) struct Success {
    pub(super) mark: DoneMark,
    pub(super) run: Option<RunRecord>,
    pub(super) ttl: Duration,
}
