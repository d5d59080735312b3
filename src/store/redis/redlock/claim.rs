//! A claim: reserve at all masters, decide, write the number to all of them, decide; and take back what came to nothing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::RedlockStore;
use super::master::Success;
use super::masters::{Heard, Masters};
use crate::clock::{Mono, between, later};
use crate::slot::{Attempt, Mark, Outcome as Ended, SlotRecord};
use crate::store::redis::RedisStore;
use crate::store::redlock::claim::{Found, Grant, Look, Step, Terms};
use crate::store::redlock::lease::{Ack, Outcome, Said};
use crate::store::{Applied, Claim, ClaimRequest, ErrorKind, Op, StoreError};

/// The pause before whoever goes first in a contest looks again: the others take back meanwhile.
const AGAIN: Duration = Duration::from_millis(10);
/// A marker that is brought to a master lasts for so long after the slot's end, as every done marker does at least.
const AFTER_THE_END: Duration = Duration::from_secs(60);

/// What one round of a claim comes to: an answer, or another round.
enum Round {
    Over(Claim),
    Again,
    Stale,
}

impl RedlockStore {
    pub(super) async fn claim_slot(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let began = self.clock.now().mono;
        let request = Arc::new(request.clone());
        let mut stale = false;
        loop {
            match self.round(&request, began, stale).await? {
                Round::Over(claim) => return Ok(claim),
                Round::Stale => stale = true,
                Round::Again => {}
            }
        }
    }

    fn terms<'a>(&self, request: &'a ClaimRequest, done_is_stale: bool) -> Terms<'a> {
        let longest_lease = self.longest_lease(request.slot.job(), request.lease_ttl);
        Terms { quorum: self.masters.quorum, request, longest_lease, done_is_stale }
    }

    async fn round(&self, request: &Arc<ClaimRequest>, began: Mono, stale: bool) -> Result<Round, StoreError> {
        let terms = self.terms(request, stale);
        let looks = self.look(request, &terms).await;
        let terms = terms.having_heard(&looks.said);
        match terms.after_looks(&looks.said) {
            Step::Grant(grant) => self.grant(request, &terms, grant, began).await,
            Step::Unfinished(_) if self.clock.now().mono.since(began) < self.options.op_timeout / 10 => {
                pause().await;
                Ok(Round::Again)
            }
            Step::Unfinished(grant) => self.grant(request, &terms, grant, began).await,
            Step::Again(_) if self.clock.now().mono.since(began) < self.options.op_timeout / 2 => {
                pause().await;
                Ok(Round::Again)
            }
            Step::Again(claim) | Step::Answer(claim) => {
                self.take_back(request, &looks, 0).await;
                Ok(Round::Over(claim))
            }
            Step::ReadAll => {
                self.take_back(request, &looks, 0).await;
                self.read_all(request).await
            }
            Step::Unheard => {
                self.take_back(request, &looks, 0).await;
                Err(StoreError { applied: Applied::No, ..self.masters.too_few(Op::Claim, &self.location, looks) })
            }
            Step::Young { remaining } => {
                self.take_back(request, &looks, 0).await;
                Err(self.young(remaining))
            }
        }
    }

    /// Reserves at all masters. A refusal is certain once no majority can come of the answers any more.
    async fn look(&self, request: &Arc<ClaimRequest>, terms: &Terms<'_>) -> Heard<Look> {
        // As long as a claim may take: what is left behind by one that was cut off is gone soon.
        let reserved = self.options.op_timeout;
        let (quorum, least_age) = (self.masters.quorum, terms.least_age());
        let call = |master: Arc<RedisStore>| {
            let request = Arc::clone(request);
            async move { master.reserve(&request, reserved).await }
        };
        let enough = |said: &[Option<Look>]| {
            let counts = |look: &&Look| matches!(look.found, Found::Reserved { .. }) && look.age >= least_age;
            let (heard, yes) = (said.iter().flatten().count(), said.iter().flatten().filter(counts).count());
            yes >= quorum.majority() || (heard >= quorum.majority() && !quorum.may_hold(yes, heard))
        };
        self.masters.ask_until(call, enough).await
    }

    async fn grant(
        &self,
        request: &Arc<ClaimRequest>,
        terms: &Terms<'_>,
        grant: Grant,
        began: Mono,
    ) -> Result<Round, StoreError> {
        let quorum = self.masters.quorum;
        let call = |master: Arc<RedisStore>| {
            let request = Arc::clone(request);
            async move { master.grant(&request, grant).await }
        };
        let enough = |said: &[Option<Ack>]| {
            let yes = said.iter().flatten().filter(|ack| matches!(ack.said, Said::Granted { .. })).count();
            let heard = said.iter().flatten().count();
            yes >= quorum.majority() || !quorum.may_hold(yes, heard)
        };
        let acks = self.masters.ask_until(call, enough).await;
        match terms.after_grants(&grant, &acks.said, self.clock.now().mono.since(began)) {
            Outcome::Claimed(claim) => Ok(Round::Over(claim)),
            Outcome::Void(claim) => {
                self.annul(request, &acks, grant).await;
                claim.map(Round::Over).ok_or_else(|| self.beaten())
            }
            Outcome::ReadAll => {
                self.annul(request, &acks, grant).await;
                self.read_all(request).await
            }
            Outcome::Unknown => {
                let error = self.masters.too_few(Op::Claim, &self.location, acks);
                Err(StoreError { applied: Applied::Maybe, ..error })
            }
        }
    }

    /// A number that came to nothing. It is burnt at a majority before it is taken back anywhere: what takes it back may come
    /// late, and must never meet a lease under the same number.
    async fn annul(&self, request: &Arc<ClaimRequest>, acks: &Heard<Ack>, grant: Grant) {
        let burn = |master: Arc<RedisStore>| {
            let request = Arc::clone(request);
            async move { master.burn(&request.slot, grant.attempt).await }
        };
        let burnt = !grant.again && self.is_enough(&self.masters.ask(burn).await);
        // Otherwise what was granted somewhere lapses by itself.
        self.take_back(request, acks, if burnt { grant.attempt } else { 0 }).await;
    }

    /// Takes back what the claim has anywhere: also where its request failed, for it may have been carried out.
    async fn take_back<T>(&self, request: &Arc<ClaimRequest>, heard: &Heard<T>, attempt: Attempt)
    where
        T: Takes,
    {
        let undo = |master: Arc<RedisStore>| {
            let request = Arc::clone(request);
            async move { master.undo(&request, attempt).await }
        };
        let mut sure: FuturesUnordered<_> = FuturesUnordered::new();
        for (index, said) in heard.said.iter().enumerate() {
            match said.as_ref().map(Takes::has_taken) {
                Some(true) => sure.push(self.masters.send(index, &undo)),
                Some(false) => {}
                None => drop(self.masters.send(index, &undo)),
            }
        }
        // Whoever answered before answers again; the others are told, and not waited for.
        let told = async { while sure.next().await.is_some() {} };
        let _ = tokio::time::timeout(Masters::patience(self.options.op_timeout), told).await;
    }

    /// A done marker that not all have: success that the others have forgotten or never heard of, or one from before a reset.
    /// Success is brought to those that lack it.
    async fn read_all(&self, request: &ClaimRequest) -> Result<Round, StoreError> {
        let reading = |error: StoreError| StoreError { op: Op::Claim, ..error };
        let (now, record) = self.inspect_one(&request.slot).await.map_err(reading)?;
        let Mark::Done(mark) = record.mark.clone() else { return Ok(Round::Stale) };
        let left = between(now, later(request.slot.end(), AFTER_THE_END)).max(AFTER_THE_END);
        let success = Arc::new(Success { run: run_of(&record), mark: mark.clone(), ttl: left });
        let slot = Arc::new(request.slot.clone());
        let heal = |master: Arc<RedisStore>| {
            let (slot, success) = (Arc::clone(&slot), Arc::clone(&success));
            async move { master.heal(&slot, &success).await }
        };
        // Whoever cannot be told now is told by the next claim.
        let _ = self.masters.ask(heal).await;
        Ok(Round::Over(Claim::Done(mark)))
    }

    fn young(&self, remaining: Duration) -> StoreError {
        let message = format!(
            "too many masters lost their data or restarted less than a lease ago: they count again in {} s",
            remaining.as_secs() + 1
        );
        StoreError::new(ErrorKind::Unavailable, Applied::No, Op::Claim, &self.location, message)
    }

    fn beaten(&self) -> StoreError {
        let message = "another claim was faster, and who it was is not known yet: ask again";
        StoreError::new(ErrorKind::Unavailable, Applied::No, Op::Claim, &self.location, message)
    }
}

/// The run that a done marker tells of.
fn run_of(record: &SlotRecord) -> Option<crate::slot::RunRecord> {
    let Mark::Done(mark) = &record.mark else { return None };
    let done = |run: &&crate::slot::RunRecord| run.attempt == mark.by.attempt && run.outcome == Some(Ended::Success);
    record.runs.iter().find(done).cloned()
}

/// Whether a master has something of the claim after this answer.
trait Takes {
    fn has_taken(&self) -> bool;
}

impl Takes for Look {
    fn has_taken(&self) -> bool {
        matches!(self.found, Found::Reserved { .. })
    }
}

impl Takes for Ack {
    /// Where the number was refused the reservation may stand all the same.
    fn has_taken(&self) -> bool {
        matches!(self.said, Said::Granted { .. } | Said::Taken | Said::Closed)
    }
}

#[allow(clippy::disallowed_methods, reason = "the wait of whoever goes first in a contest; the file owns it")]
async fn pause() {
    tokio::time::sleep(AGAIN).await;
}
