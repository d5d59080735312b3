//! A lease's life, from the masters' answers: whether there is one, whether it still stands, and how its end was taken.
//!
//! - **Granted.** The second half of a claim: a number was written to the masters. Only what a majority acknowledged within the
//!   lease's validity is a lease, and so the number is on a majority before any run begins.
//! - **Renewed.** A renewal that too few masters answered is no knowledge: it takes nothing from anybody, its own lease least of all.
//! - **Settled.** How a run's end, and an operator's verb, were taken.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::reply::{Claim, Intervention, Release, Renewal, Settlement};
use crate::slot::{DoneMark, Holder, Lease};
use crate::store::redlock::claim::{Grant, Terms};
use crate::store::redlock::{Quorum, drift, lasting};

/// One master's answer to a [`Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// For how long it has kept what it was told.
    pub age: Duration,
    /// What it did.
    pub said: Said,
}

/// What a master did with a [`Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is written there.
    Granted {
        /// The time of the grant, as it stands there: that of the first send.
        at: DateTime<Utc>,
    },
    /// A done marker stands there.
    Done(DoneMark),
    /// Another claim's lease, or reservation, stands there.
    Held {
        /// Whose.
        by: Holder,
        /// How long.
        remaining: Duration,
    },
    /// The number is taken there, or a larger one is known, or the wait after one; or this claim's run is over.
    Taken,
    /// The slot is over by this master's clock.
    Closed,
}

/// What a grant came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a lease.
    Claimed(Claim),
    /// It is none, and no majority has it: see that its number is never given again, then take it back, and answer this; without an
    /// answer, ask anew.
    Void(Option<Claim>),
    /// A done marker was met: read all that is known.
    ReadAll,
    /// Not known. The same token finds out what became of it; nothing is taken back, for it may be a lease.
    Unknown,
}

impl Terms<'_> {
    /// What the grant came to, `spent` after the first request of this claim was sent.
    pub fn after_grants(&self, grant: &Grant, acks: &[Option<Ack>], spent: Duration) -> Outcome {
        let heard: Vec<&Ack> = acks.iter().flatten().collect();
        if !self.done_is_stale && heard.iter().any(|ack| matches!(ack.said, Said::Done(_))) {
            return Outcome::ReadAll;
        }
        let granted = || heard.iter().filter_map(|ack| ack.granted().map(|at| (ack.age, at)));
        let counting = granted().filter(|(age, _)| *age >= self.least_age()).count();
        let valid = spent + drift(self.request.lease_ttl) < self.request.lease_ttl;
        if counting >= self.quorum.majority() && valid {
            let at = granted().map(|(_, at)| at).min().unwrap_or(grant.at);
            return Outcome::Claimed(Claim::Claimed { attempt: grant.attempt, used: grant.used, at, revision: None });
        }
        let refused = heard.len() - granted().count();
        if self.quorum.masters() - refused < self.quorum.majority() {
            return Outcome::Void(self.why(&heard));
        }
        Outcome::Unknown
    }

    fn why(&self, heard: &[&Ack]) -> Option<Claim> {
        let held = |ack: &&&Ack| match &ack.said {
            Said::Held { by, remaining } => Some((by.clone(), *remaining)),
            _ => None,
        };
        let rivals: Vec<(Holder, Duration)> = heard.iter().filter_map(|ack| held(&ack)).collect();
        if let Some((by, _)) = rivals.iter().max_by_key(|(by, _)| by.attempt) {
            let left = rivals.iter().filter(|(other, _)| other == by).map(|(_, left)| *left).collect();
            return Some(Claim::Held { by: by.clone(), remaining: lasting(self.quorum, left) });
        }
        heard.iter().any(|ack| ack.said == Said::Closed).then_some(Claim::Closed)
    }
}

impl Ack {
    const fn granted(&self) -> Option<DateTime<Utc>> {
        match self.said {
            Said::Granted { at } => Some(at),
            _ => None,
        }
    }
}

/// One master's answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRenewal {
    /// For how long it has kept what it was told.
    pub age: Duration,
    /// The longest lease of the job that was asked for there.
    pub longest: Duration,
    /// What it did.
    pub said: Renewal,
}

/// What a renewal came to; none when it is not known.
pub fn renewal(
    quorum: Quorum,
    lease: &Lease,
    longest_lease: Duration,
    answers: &[Option<MasterRenewal>],
) -> Option<Renewal> {
    let heard: Vec<&MasterRenewal> = answers.iter().flatten().collect();
    // A master that lost its data may have forgotten a lease that followed; what it has set again since proves nothing, not
    // even when it is met there the next time.
    let longest = heard.iter().map(|answer| answer.longest).max().unwrap_or_default();
    let least_age = lease.ttl.max(longest_lease).max(longest);
    let count = |said: Renewal| heard.iter().filter(|answer| answer.age >= least_age && answer.said == said).count();
    let (stood, restored) = (count(Renewal::Renewed), count(Renewal::Restored));
    if stood >= quorum.majority() {
        return Some(Renewal::Renewed);
    }
    let done = heard.iter().filter_map(|answer| match &answer.said {
        Renewal::Done(mark) => Some(mark),
        _ => None,
    });
    // An own success that a minority has is not recorded yet.
    let is_own = |mark: &&DoneMark| mark.token == Some(lease.token);
    if done.clone().any(|mark| is_own(&mark)) && done.clone().filter(is_own).count() < quorum.majority() {
        return None;
    }
    if let Some(mark) = done.min_by_key(|mark| (mark.at, mark.by.attempt)) {
        return Some(Renewal::Done(mark.clone()));
    }
    let lost: Vec<&Renewal> = heard.iter().map(|answer| &answer.said).filter(|said| is_lost(said)).collect();
    if lost.len() >= quorum.majority() {
        return Some(Renewal::Lost { to: newest_of(&lost) });
    }
    (lost.is_empty() && stood + restored >= quorum.majority()).then_some(Renewal::Restored)
}

/// A reservation is no lease, and passes.
fn is_lost(said: &Renewal) -> bool {
    match said {
        Renewal::Lost { to } => to.as_ref().is_none_or(|by| by.attempt > 0),
        _ => false,
    }
}

fn newest_of(lost: &[&Renewal]) -> Option<Holder> {
    let named = lost.iter().filter_map(|said| match said {
        Renewal::Lost { to } => to.clone(),
        _ => None,
    });
    named.max_by_key(|by| by.attempt)
}

/// What a completion came to; none when too few masters know of it. A holder that fewer name than could be a majority never
/// had the slot: that was a claim that came to nothing.
pub fn settlement(quorum: Quorum, answers: &[Option<Settlement>]) -> Option<Settlement> {
    let heard: Vec<&Settlement> = answers.iter().flatten().collect();
    let others = heard.iter().filter_map(|answer| match answer {
        Settlement::Overtaken { by } => Some(by),
        Settlement::Recorded => None,
    });
    let by = newest(quorum, heard.len(), others.collect());
    let answer = by.map_or(Settlement::Recorded, |by| Settlement::Overtaken { by });
    (heard.len() >= quorum.majority()).then_some(answer)
}

/// What a release came to; none when too few masters know of it.
pub fn release(quorum: Quorum, answers: &[Option<Release>]) -> Option<Release> {
    let heard: Vec<&Release> = answers.iter().flatten().collect();
    if heard.len() < quorum.majority() {
        return None;
    }
    let others = heard.iter().filter_map(|answer| match answer {
        Release::Overtaken { by } => Some(by),
        Release::Released | Release::Expired => None,
    });
    if let Some(by) = newest(quorum, heard.len(), others.collect()) {
        return Some(Release::Overtaken { by });
    }
    let released = heard.iter().filter(|answer| ***answer == Release::Released).count();
    Some(if quorum.may_hold(released, heard.len()) { Release::Released } else { Release::Expired })
}

/// What an operator's verb came to; none when too few masters agree.
pub fn intervention(quorum: Quorum, answers: &[Option<Intervention>]) -> Option<Intervention> {
    let heard: Vec<&Intervention> = answers.iter().flatten().collect();
    let held: Vec<_> = heard.iter().filter_map(|answer| held(answer)).collect();
    if held.len() >= quorum.majority() {
        let by = held.iter().map(|(by, _)| *by).max_by_key(|by| by.attempt)?.clone();
        return Some(Intervention::Held {
            by,
            remaining: lasting(quorum, held.iter().map(|(_, left)| *left).collect()),
        });
    }
    let applied = heard.iter().any(|answer| **answer == Intervention::Applied);
    let answer = if applied { Intervention::Applied } else { Intervention::Unchanged };
    (heard.len() - held.len() >= quorum.majority()).then_some(answer)
}

const fn held(answer: &Intervention) -> Option<(&Holder, std::time::Duration)> {
    match answer {
        Intervention::Held { by, remaining } => Some((by, *remaining)),
        Intervention::Applied | Intervention::Unchanged => None,
    }
}

/// The latest of those who may have had a majority.
fn newest(quorum: Quorum, heard: usize, named: Vec<&Holder>) -> Option<Holder> {
    let count = |by: &Holder| named.iter().filter(|other| **other == by).count();
    let real = named.iter().filter(|by| quorum.may_hold(count(by), heard));
    real.max_by_key(|by| by.attempt).map(|by| (**by).clone())
}
