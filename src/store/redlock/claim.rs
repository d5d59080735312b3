//! The first half of a claim: what the masters found when they were asked to reserve the slot, and what follows from it.
//!
//! Each master reserves the slot for the claim where nothing is in its way there, and says what it knows in any case. From
//! these looks comes the attempt's number, one more than the largest that any of them knows of; or the reason why not.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::between;
use crate::job::MAX_ATTEMPTS_LIMIT;
use crate::reply::{Claim, ClaimRequest};
use crate::slot::{Attempt, DoneMark, Holder, SlotKey, Token};
use crate::store::redlock::{Quorum, lasting, median};

/// On what a claim is judged.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// How many masters there are.
    pub quorum: Quorum,
    /// What is asked for.
    pub request: &'a ClaimRequest,
    /// The longest lease that anybody may hold, as far as is known; the claim's own TTL is counted in any case.
    pub longest_lease: Duration,
    /// All that the masters know was read, and the done markers among it are older than a reset: they do not count.
    pub done_is_stale: bool,
}

/// What one master found, by its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// For how long it has kept what it was told: since its start, or since it lost its data.
    pub age: Duration,
    /// The longest lease of the job that was asked for there.
    pub longest: Duration,
    /// Its clock.
    pub now: DateTime<Utc>,
    /// The largest attempt that it knows of.
    pub counter: Attempt,
    /// Attempts that do not count, as far as it knows.
    pub forgiven: u32,
    /// When the last grant that it knows of was made, by the clocks of that one.
    pub latest: Option<DateTime<Utc>>,
    /// What stands in the way, if anything does.
    pub found: Found,
}

/// Whether a master reserved the slot, and if not, why not: its first reason in the order of [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It did; or this very claim has it from before.
    Reserved {
        /// The grant of this claim that is written there, if one is.
        own: Option<Own>,
    },
    /// Its done marker stands there.
    Done(DoneMark),
    /// It has not begun by this master's clock.
    Early,
    /// It is over by this master's clock.
    Closed,
    /// Another claim's lease, or its reservation: that one is of attempt 0.
    Held {
        /// Whose claim.
        token: Token,
        /// Who.
        by: Holder,
        /// How long it stands there.
        remaining: Duration,
    },
    /// The attempts that it knows of are used up.
    Exhausted,
    /// The wait after a failure.
    Backoff {
        /// Until it is over.
        remaining: Duration,
    },
    /// The run of this very claim has a recorded end.
    Spent,
    /// The job is paused.
    Paused {
        /// Until the pause ends by itself, if it does.
        remaining: Option<Duration>,
    },
    /// Another slot of the job is leased.
    Blocked {
        /// Which; of several the oldest.
        key: SlotKey,
        /// Whose claim. A reservation is of attempt 0.
        token: Token,
        /// To whom.
        by: Holder,
        /// For how long.
        remaining: Duration,
    },
}

/// A grant that a master knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its number.
    pub attempt: Attempt,
    /// When it was made.
    pub at: DateTime<Utc>,
}

/// What to write to the masters: the lease, under this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The number.
    pub attempt: Attempt,
    /// Attempts that count, this one included.
    pub used: u32,
    /// The store's time of the grant.
    pub at: DateTime<Utc>,
    /// Attempts that do not count, as the one who knows most knows.
    pub forgiven: u32,
    /// An earlier send of the same request has written it to a majority: it is never taken back, for it may be held by then.
    pub again: bool,
}

/// What follows from the looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write this lease to all of them.
    Grant(Grant),
    /// A minority has a grant of this very claim: another send of it may be just at that, so look again soon. If that does
    /// not help, write this lease, under the next number: the other may have been taken back.
    Unfinished(Grant),
    /// Nobody has a majority of reservations and this claim goes first: the others yield, so look again soon. Who is in the
    /// way, should there be no more time.
    Again(Claim),
    /// Give up what was reserved, and answer this.
    Answer(Claim),
    /// A done marker was met that not all have: read all that is known before anything else.
    ReadAll,
    /// Too few masters answered.
    Unheard,
    /// Enough answered, and too many of them have not kept their data for long enough to count.
    Young {
        /// Until enough of them do.
        remaining: Duration,
    },
}

impl<'a> Terms<'a> {
    /// With what these masters tell of longer leases: whoever has forgotten one may have forgotten such a one.
    #[must_use]
    pub fn having_heard(self, looks: &[Option<Look>]) -> Terms<'a> {
        let longest = looks.iter().flatten().map(|look| look.longest).max().unwrap_or_default();
        Terms { longest_lease: self.longest_lease.max(longest), ..self }
    }

    /// The time for which a master must have kept its data to count: it may have forgotten any lease that is not longer.
    pub fn least_age(&self) -> Duration {
        self.request.lease_ttl.max(self.longest_lease)
    }

    /// What follows from the looks; none where a master gave no answer.
    pub fn after_looks(&self, looks: &[Option<Look>]) -> Step {
        let heard: Vec<&Look> = looks.iter().flatten().collect();
        if let Some(step) = self.done_or_outside(&heard) {
            return step;
        }
        let reserved = heard.iter().filter(|look| matches!(look.found, Found::Reserved { .. }));
        let voters: Vec<&Look> = reserved.filter(|look| look.age >= self.least_age()).copied().collect();
        if voters.len() >= self.quorum.majority() { self.number(&heard, &voters) } else { self.refusal(&heard) }
    }

    /// One marker is enough to stop a claim: success is never repeated because the others have forgotten it (I3).
    fn done_or_outside(&self, heard: &[&Look]) -> Option<Step> {
        let marks: Vec<&DoneMark> = heard.iter().filter_map(|look| look.found.done()).collect();
        if !self.done_is_stale && !marks.is_empty() {
            let agreed = marks.len() == heard.len() && heard.len() >= self.quorum.majority();
            let first = marks.into_iter().min_by_key(|mark| (mark.at, mark.by.attempt)).cloned();
            return first.filter(|_| agreed).map(Claim::Done).map(Step::Answer).or(Some(Step::ReadAll));
        }
        if heard.len() < self.quorum.majority() {
            return Some(Step::Unheard);
        }
        // Whoever did not hear of its grant learns of it after the slot's end too, and gives it back.
        if newest_own(heard).is_some_and(|(_, masters)| masters >= self.quorum.majority()) {
            return None;
        }
        self.outside(heard)
    }

    /// Nothing new is granted outside of the slot, by the median of the masters' clocks (I6).
    fn outside(&self, heard: &[&Look]) -> Option<Step> {
        let (now, slot) = (median(heard.iter().map(|look| look.now))?, &self.request.slot);
        if now < slot.start() {
            return Some(Step::Answer(Claim::Early { remaining: between(now, slot.start()) }));
        }
        (now >= slot.end() && !self.request.past).then_some(Step::Answer(Claim::Closed))
    }

    /// A majority has reserved the slot. Whoever knows of more attempts is right, were it the only one.
    fn number(&self, heard: &[&Look], voters: &[&Look]) -> Step {
        let counter = heard.iter().map(|look| look.counter).max().unwrap_or(0);
        let forgiven = heard.iter().map(|look| look.forgiven).max().unwrap_or(0);
        let own = newest_own(heard).filter(|(own, _)| own.attempt >= counter);
        // A master that knows of this number and not of this claim has another's under it: a majority had that one before it
        // lost its data in part.
        let own_there = |look: &Look, attempt| look.found.own().is_some_and(|own| own.attempt == attempt);
        let is_alone = |own: &Own| heard.iter().all(|look| look.counter < own.attempt || own_there(look, own.attempt));
        if let Some((own, _)) = own.filter(|(own, masters)| *masters >= self.quorum.majority() && is_alone(own)) {
            let used = own.attempt.saturating_sub(forgiven);
            return Step::Grant(Grant { attempt: own.attempt, used, at: own.at, forgiven, again: true });
        }
        if let Some(step) = self.outside(heard) {
            return step;
        }
        let used = counter.saturating_sub(forgiven);
        if used >= self.request.max_attempts || counter >= MAX_ATTEMPTS_LIMIT {
            return Step::Answer(Claim::Exhausted { used });
        }
        let mut clocks: Vec<DateTime<Utc>> = voters.iter().map(|look| look.now).collect();
        clocks.sort_unstable();
        // So late that a lease that lapsed before at a majority is never said to have lasted less than its TTL.
        let at = clocks.get(self.quorum.majority() - 1).or(clocks.last()).copied();
        // Nor earlier than a grant before it, which other clocks may have timed: who came later is told by these times too.
        let at = at.max(heard.iter().filter_map(|look| look.latest).max()).unwrap_or_default();
        let attempt = counter.saturating_add(1);
        let grant = Grant { attempt, used: attempt.saturating_sub(forgiven), at, forgiven, again: false };
        if own.is_some() { Step::Unfinished(grant) } else { Step::Grant(grant) }
    }

    /// The first reason in the order of the contract that any master gave, checked against what the others know.
    fn refusal(&self, heard: &[&Look]) -> Step {
        if let Some(step) = self.outside(heard).or_else(|| self.held(heard)) {
            return step;
        }
        let counter = heard.iter().map(|look| look.counter).max().unwrap_or(0);
        let forgiven = heard.iter().map(|look| look.forgiven).max().unwrap_or(0);
        let used = counter.saturating_sub(forgiven);
        if used >= self.request.max_attempts || counter >= MAX_ATTEMPTS_LIMIT {
            return Step::Answer(Claim::Exhausted { used });
        }
        let reason = heard.iter().filter_map(|look| look.found.reason()).min_by_key(|(order, _)| *order);
        match reason {
            Some((_, Claim::Backoff { .. })) => Step::Answer(Claim::Backoff { remaining: self.wait(heard) }),
            Some((_, claim @ Claim::Blocked { .. })) => self.blocked(heard).unwrap_or(Step::Answer(claim)),
            Some((_, claim)) => Step::Answer(claim),
            None => self.young(heard),
        }
    }

    /// Until a majority is past the wait.
    fn wait(&self, heard: &[&Look]) -> Duration {
        let left = heard.iter().filter_map(|look| match look.found {
            Found::Backoff { remaining } => Some(remaining),
            _ => None,
        });
        lasting(self.quorum, left.collect())
    }

    fn held(&self, heard: &[&Look]) -> Option<Step> {
        let key = self.request.slot.key();
        let rivals = heard.iter().filter_map(|look| look.found.rival(key)).collect();
        self.contest(heard, rivals, |first, remaining| Claim::Held { by: first.by.clone(), remaining })
    }

    /// Another slot of the job: leased, or reserved by a claim that may come to nothing.
    fn blocked(&self, heard: &[&Look]) -> Option<Step> {
        let rivals = heard.iter().filter_map(|look| look.found.beside()).collect();
        self.contest(heard, rivals, |first, remaining| Claim::Blocked {
            key: first.key,
            by: first.by.clone(),
            remaining,
        })
    }

    fn contest<'r>(
        &self,
        heard: &[&Look],
        rivals: Vec<Rival<'r>>,
        lost: impl FnOnce(&Rival<'r>, Duration) -> Claim,
    ) -> Option<Step> {
        // Whoever has a number has had a majority; of those who have none, the smallest token goes first.
        let first = rivals.iter().max_by_key(|rival| (rival.by.attempt, std::cmp::Reverse(rival.token)))?;
        let same = rivals.iter().filter(|rival| rival.token == first.token);
        let left: Vec<Duration> = same.map(|rival| rival.remaining).collect();
        let settled = first.by.attempt > 0 || left.len() >= self.quorum.majority();
        let answer = lost(first, lasting(self.quorum, left));
        let reserves = heard.iter().any(|look| matches!(look.found, Found::Reserved { .. }));
        if !settled && reserves && self.request.token < first.token {
            return Some(Step::Again(answer));
        }
        Some(Step::Answer(answer))
    }

    /// Nothing is in the way but masters that may have forgotten what is.
    fn young(&self, heard: &[&Look]) -> Step {
        let mut waits: Vec<Duration> = heard
            .iter()
            .filter(|look| matches!(look.found, Found::Reserved { .. }))
            .map(|look| self.least_age().saturating_sub(look.age))
            .collect();
        waits.sort_unstable();
        waits.get(self.quorum.majority() - 1).map_or(Step::Unheard, |remaining| Step::Young { remaining: *remaining })
    }
}

/// The newest grant that is written for this very claim, and at how many masters: an earlier send of the request made it. Where
/// a majority has it, its answer was lost and it is the same grant (I5). With fewer it may have been taken back.
fn newest_own(heard: &[&Look]) -> Option<(Own, usize)> {
    let owns = heard.iter().filter_map(|look| look.found.own());
    let attempt = owns.clone().map(|own| own.attempt).max()?;
    let same: Vec<Own> = owns.filter(|own| own.attempt == attempt).collect();
    let at = same.iter().map(|own| own.at).min()?;
    Some((Own { attempt, at }, same.len()))
}

struct Rival<'a> {
    key: SlotKey,
    token: Token,
    by: &'a Holder,
    remaining: Duration,
}

impl Found {
    const fn done(&self) -> Option<&DoneMark> {
        match self {
            Self::Done(mark) => Some(mark),
            _ => None,
        }
    }

    const fn own(&self) -> Option<Own> {
        match self {
            Self::Reserved { own } => *own,
            _ => None,
        }
    }

    const fn rival(&self, key: SlotKey) -> Option<Rival<'_>> {
        match self {
            Self::Held { token, by, remaining } => Some(Rival { key, token: *token, by, remaining: *remaining }),
            _ => None,
        }
    }

    const fn beside(&self) -> Option<Rival<'_>> {
        match self {
            Self::Blocked { key, token, by, remaining } => {
                Some(Rival { key: *key, token: *token, by, remaining: *remaining })
            }
            _ => None,
        }
    }

    /// Reasons other than a lease, with their place in the order. What is used up is told by the counters of all.
    fn reason(&self) -> Option<(u8, Claim)> {
        Some(match self {
            Self::Backoff { remaining } => (1, Claim::Backoff { remaining: *remaining }),
            Self::Spent => (2, Claim::Backoff { remaining: Duration::ZERO }),
            Self::Paused { remaining } => (3, Claim::Paused { remaining: *remaining }),
            Self::Blocked { key, by, remaining, .. } => {
                (4, Claim::Blocked { key: *key, by: by.clone(), remaining: *remaining })
            }
            _ => return None,
        })
    }
}
